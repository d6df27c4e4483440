"""Compare two moments of one cluster and list what happened to each partition; only what both views know is compared.

Two dumps may be hours apart, so that a new leader outside the earlier ISR and ELR, S, is no proof of loss: leadership
may have moved through S. A change is an "unclean election" when the new leader is not in S, no member of S is in sync
in the later view, and there was no leader earlier, or all of S is offline in the later view, or that does not say and
still has all of S as replicas. Otherwise it is "leader moved" or "leader elected", with a note.

Source: ours; ELR: KIP-966. Kafka itself counts UncleanLeaderElectionsPerSec on the controller.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import ClusterView, Int32Array, Int64Array, PartitionTable
from broker.ids import NO_LEADER
from placement.balance.loads import LEADER_NOT_SAID

PARTITION_APPEARED: Final = "partition appeared"
PARTITION_GONE: Final = "partition gone"
LEADER_LOST: Final = "leader lost"
LEADER_ELECTED: Final = "leader elected"
UNCLEAN_ELECTION: Final = "unclean election"
LEADER_MOVED: Final = "leader moved"
ISR_SHRUNK: Final = "ISR shrunk"
ISR_GROWN: Final = "ISR grown"
ISR_CHANGED: Final = "ISR changed"
REPLICAS_CHANGED: Final = "replicas changed"


@attrs.frozen
class ClusterChange:
    """Describe one event of one partition; `detail` gives the state before and after in words."""

    topic: str
    partition: int
    change: str
    detail: str


def changes(before: ClusterView, after: ClusterView) -> tuple[ClusterChange, ...]:
    """Return the events between two views of one cluster, ordered by topic name, then partition.

    A partition that only one view lists has appeared or gone only if the other view is complete.
    Cost: O(P log P) for P partitions, plus words for those that changed.
    """
    names, earlier, later = _all_keys(before, after)
    shared, rows_before, rows_after = np.intersect1d(earlier, later, return_indices=True)
    found: list[ClusterChange] = []
    if after.partitions_complete:
        found += [_one_sided(key, names, PARTITION_GONE) for key in np.delete(earlier, rows_before).tolist()]
    if before.partitions_complete:
        found += [_one_sided(key, names, PARTITION_APPEARED) for key in np.delete(later, rows_after).tolist()]
    differ = np.flatnonzero(_differ(before.partitions, after.partitions, rows_before, rows_after))
    for place in differ.tolist():
        one = _PartitionStatus.of(before.partitions, int(rows_before[place]))
        other = _PartitionStatus.of(after.partitions, int(rows_after[place]))
        topic, partition = names[int(shared[place]) >> 32], int(shared[place]) & 0xFFFF_FFFF
        found += [ClusterChange(topic, partition, change, detail) for change, detail in _compare(one, other)]
    return tuple(sorted(found, key=lambda change: (change.topic, change.partition)))


def matched_rows(before: ClusterView, after: ClusterView) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the partitions that both views list: a key each, ascending, and their rows in either view."""
    _, earlier, later = _all_keys(before, after)
    shared, rows_before, rows_after = np.intersect1d(earlier, later, return_indices=True)
    return shared, rows_before, rows_after


def _all_keys(before: ClusterView, after: ClusterView) -> tuple[list[str], Int64Array, Int64Array]:
    """Return the names of topics, and the key of each row of both views: the place of its topic, then the partition.

    A topic that was created again has a place of its own in the later view: its partitions are others.
    """
    again = recreated(before, after)
    names = sorted({topic.name for topic in (*before.topics, *after.topics)})
    numbers = {name: index for index, name in enumerate(names)}
    later = numbers | {name: len(names) + place for place, name in enumerate(again)}
    return [*names, *again], _keys(before, numbers), _keys(after, later)


def recreated(before: ClusterView, after: ClusterView) -> tuple[str, ...]:
    """Return the topics that were deleted and created again, by name: both views give an id, and not the same."""
    ids = {topic.name: topic.topic_id for topic in before.topics if topic.topic_id is not None}
    found = (topic for topic in after.topics if topic.topic_id is not None)
    return tuple(sorted(topic.name for topic in found if ids.get(topic.name, topic.topic_id) != topic.topic_id))


def _keys(view: ClusterView, numbers: dict[str, int]) -> Int64Array:
    by_topic = np.array([numbers[topic.name] for topic in view.topics], dtype=np.int64)
    if not view.partitions.count:
        return np.empty(0, dtype=np.int64)
    return np.asarray(by_topic[view.partitions.topic_index] << 32 | view.partitions.partition_ids)


def _one_sided(key: int, names: list[str], change: str) -> ClusterChange:
    return ClusterChange(names[key >> 32], key & 0xFFFF_FFFF, change, "")


def _differ(
    before: PartitionTable, after: PartitionTable, rows_before: Int64Array, rows_after: Int64Array
) -> NDArray[np.bool_]:
    differ = np.zeros(rows_before.size, dtype=np.bool_)
    for name in ("leader", "isr", "replicas"):
        one, other = getattr(before, name), getattr(after, name)
        if one is None or other is None:
            continue
        one, other = one[rows_before], other[rows_after]
        if name == "leader":
            differ |= one != other
        else:
            width = max(one.shape[1], other.shape[1])
            differ |= (_widened(one, width) != _widened(other, width)).any(axis=1)
    return differ


def _widened(matrix: Int32Array, width: int) -> Int32Array:
    return np.pad(matrix, ((0, 0), (0, width - matrix.shape[1])), constant_values=-1)


@attrs.frozen
class _PartitionStatus:
    """The status of one partition in one view; None where the view does not say."""

    leader: int | None
    replicas: tuple[int, ...]
    isr: frozenset[int] | None
    elr: frozenset[int]
    offline: frozenset[int] | None

    @classmethod
    def of(cls, table: PartitionTable, row: int) -> _PartitionStatus:
        leader = LEADER_NOT_SAID if table.leader is None else int(table.leader[row])
        return cls(
            leader=None if leader == LEADER_NOT_SAID else leader,
            replicas=tuple(number for number in table.replicas[row].tolist() if number >= 0),
            isr=_members(table.isr, row),
            elr=_members(table.elr, row) or frozenset(),
            offline=_members(table.offline, row),
        )


def _members(matrix: Int32Array | None, row: int) -> frozenset[int] | None:
    return None if matrix is None else frozenset(number for number in matrix[row].tolist() if number >= 0)


def _compare(before: _PartitionStatus, after: _PartitionStatus) -> Iterator[tuple[str, str]]:
    if before.leader is not None and after.leader is not None and before.leader != after.leader:
        yield _leader_change(before, after)
    if before.isr is not None and after.isr is not None and before.isr != after.isr:
        change = ISR_SHRUNK if after.isr < before.isr else ISR_GROWN if after.isr > before.isr else ISR_CHANGED
        yield change, f"in sync {_listed(before.isr)}, then {_listed(after.isr)}"
    if before.replicas != after.replicas:
        words = [", ".join(map(str, replicas)) or "none" for replicas in (before.replicas, after.replicas)]
        yield REPLICAS_CHANGED, f"replicas {words[0]}, then {words[1]}"


def _leader_change(before: _PartitionStatus, after: _PartitionStatus) -> tuple[str, str]:
    detail = f"{_leader_text(before.leader)}, then {_leader_text(after.leader)}"
    if after.leader == NO_LEADER:
        return LEADER_LOST, detail
    safe = before.elr if before.isr is None else before.isr | before.elr
    outside = before.isr is not None and after.leader not in safe
    if outside:
        detail += f"; broker {after.leader} was not in sync before, but {_listed(safe)}"
    if outside and _nobody_safe_is_left(before, after, safe):
        return UNCLEAN_ELECTION, detail
    return LEADER_ELECTED if before.leader == NO_LEADER else LEADER_MOVED, detail


def _nobody_safe_is_left(before: _PartitionStatus, after: _PartitionStatus, safe: frozenset[int]) -> bool:
    if after.isr is not None and after.isr & safe:
        return False
    gone = frozenset(after.replicas) if after.offline is None else after.offline
    return before.leader == NO_LEADER or safe <= gone


def _leader_text(leader: int | None) -> str:
    return "no leader" if leader == NO_LEADER else f"leader {leader}"


def _listed(members: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(members))) or "nobody"
