"""Find the partitions and racks of a cluster that need attention.

States, as `kafka-topics --describe` filters them (`leader` is none when the partition has no leader):

    leaderless            leader is none                                  --unavailable-partitions
    sole_copy             led, and of several replicas one live has every committed record: ISR and ELR hold no other
    under_min_isr         leader is none, or ISR size < min.insync.replicas
    at_min_isr            ISR size = min.insync.replicas (leader or not)
    under_replicated      ISR size < replicas, less those being added by a reassignment
    not_preferred_leader  there is a leader, and it is not the first replica

`sole_copy` is ours: the loss of one broker more loses records. Confluent's observers stay out of the ISR on purpose:
they count on neither side of "under_replicated". What is not known is None, never zero; in a view that lists only some
partitions, none found is None, too.

Source: Kafka 4.0 tools TopicCommand.PartitionDescription.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import ClusterView, Int32Array, Int64Array, PartitionTable
from broker.clusters import Clusters
from broker.ids import NO_LEADER
from broker.min_isr import min_isr_by_topic
from broker.row_flags import count_in_row, members
from placement.balance.constraints import RACK_SPREAD, Violation, explain_partition
from placement.balance.loads import LEADER_NOT_SAID
from placement.spec import Assignment

LEADERLESS: Final = "leaderless"
SOLE_COPY: Final = "sole-copy"
UNDER_MIN_ISR: Final = "under-min-isr"
AT_MIN_ISR: Final = "at-min-isr"
UNDER_REPLICATED: Final = "under-replicated"
NOT_PREFERRED_LEADER: Final = "not-preferred-leader"


def assignment_of(view: ClusterView) -> Assignment:
    """Return the replicas of `view` as an Assignment, without a copy, for the constraints to check."""
    table = view.partitions
    names = tuple(topic.name for topic in view.topics)
    return Assignment(names, table.topic_index, table.partition_ids, table.replicas)


@attrs.frozen(eq=False, kw_only=True)
class RackAudit:
    """Hold the racks of a cluster and the partitions that use too few of them.

    `fewer_racks` holds the rows of `view.partitions`, ascending; None when no broker has a rack.
    `rack_broker_count_min` and `…_max` are the brokers of the smallest and largest rack, None without racks.
    """

    rack_count: int
    rack_broker_count_min: int | None
    rack_broker_count_max: int | None
    unracked_brokers: tuple[int, ...]
    fewer_racks: Int64Array | None

    @property
    def uneven(self) -> bool:
        """Return whether racks have unequal numbers of brokers, so that equal loads of racks mean unequal brokers."""
        return self.rack_broker_count_min != self.rack_broker_count_max


def rack_audit(view: ClusterView) -> RackAudit:
    """Return the rack audit of `view`; only replicas with a known rack count."""
    sizes = dict.fromkeys(view.racks, 0)
    for broker in view.brokers:
        if broker.rack is not None:
            sizes[broker.rack] += 1
    return RackAudit(
        rack_count=len(sizes),
        rack_broker_count_min=min(sizes.values(), default=None),
        rack_broker_count_max=max(sizes.values(), default=None),
        unracked_brokers=tuple(broker.id for broker in view.brokers if broker.rack is None),
        fewer_racks=RACK_SPREAD.violations(assignment_of(view), view.brokers).subjects if sizes else None,
    )


@attrs.frozen(eq=False, kw_only=True)
class PartitionStates:
    """Hold the rows of `view.partitions` in each state, int64, ascending; None for a state that is unknown."""

    leaderless: Int64Array | None
    sole_copy: Int64Array | None
    under_min_isr: Int64Array | None
    at_min_isr: Int64Array | None
    under_replicated: Int64Array | None
    not_preferred_leader: Int64Array | None


def partition_states(view: ClusterView, *, min_insync_replicas: int | None = None) -> PartitionStates:
    """Return the partitions in each state.

    `min_insync_replicas` holds for topics whose setting the view does not show; without it they are in no state of it.
    """
    table = view.partitions
    leader_known = _leader_known(table)
    leaderless = None if table.leader is None else table.leader == NO_LEADER
    isr_size = None if table.isr is None else count_in_row(table.isr >= 0)
    least = least_isr(view, min_insync_replicas)
    under_min = at_min = None
    if isr_size is not None and least is not None:
        missing = np.False_ if leaderless is None else leaderless
        under_min = _rows(view, missing | (isr_size < least), least >= 0)
        at_min = _rows(view, isr_size == least, least >= 0)
    return PartitionStates(
        leaderless=None if leaderless is None else _rows(view, leaderless, leader_known),
        sole_copy=None if isr_size is None else _rows(view, _sole_copy(view), np.True_),
        under_min_isr=under_min,
        at_min_isr=at_min,
        under_replicated=None if isr_size is None else _rows(view, _under_replicated(table), np.True_),
        not_preferred_leader=None if table.leader is None else _rows(view, _not_preferred(table), leader_known),
    )


def state_counts(
    clusters: Clusters, states: PartitionStates, *, min_insync_replicas: int | None = None
) -> dict[str, list[int | None]]:
    """Return for each state the partitions of each cluster, None where that is not known of it.

    `states` and `min_insync_replicas` are those of the view of all clusters.
    """
    view, of = clusters.view, clusters.of_partition
    least = least_isr(view, min_insync_replicas)
    by_leader = _leader_known(view.partitions)
    by_least = np.zeros(of.size, dtype=np.bool_) if least is None else least >= 0
    known = {"under_min_isr": by_least, "at_min_isr": by_least}
    known |= {"leaderless": by_leader, "not_preferred_leader": by_leader}
    found: dict[str, list[int | None]] = {}
    for field in attrs.fields(PartitionStates):
        rows = getattr(states, field.name)
        if rows is None:
            found[field.name] = [None] * clusters.count
            continue
        counts = clusters.counted(of[rows])
        silent = (counts == 0) & np.bool_(not view.partitions_complete)
        if field.name in known:
            silent |= (clusters.counted(of) > 0) & (clusters.counted(of[known[field.name]]) == 0)
        pairs = zip(counts.tolist(), silent.tolist(), strict=True)
        found[field.name] = [None if is_silent else count for count, is_silent in pairs]
    return found


def explain_states(view: ClusterView, states: PartitionStates, limit: int = 100) -> tuple[Violation, ...]:
    """Return the first `limit` partitions of each state in words, with the columns of the table of violations."""
    assignment = assignment_of(view)
    return tuple(
        explain_partition(name, assignment, view.brokers, row, _state_detail(view, row))
        for name, rows in (
            (LEADERLESS, states.leaderless),
            (SOLE_COPY, states.sole_copy),
            (UNDER_MIN_ISR, states.under_min_isr),
            (AT_MIN_ISR, states.at_min_isr),
            (UNDER_REPLICATED, states.under_replicated),
            (NOT_PREFERRED_LEADER, states.not_preferred_leader),
        )
        if rows is not None
        for row in rows[:limit].tolist()
    )


def _rows(view: ClusterView, wanted: NDArray[np.bool_], known: NDArray[np.bool_] | np.bool_) -> Int64Array | None:
    if view.partitions.count and not known.any():
        return None
    rows = np.flatnonzero(wanted & known).astype(np.int64, copy=False)
    return rows if rows.size or view.partitions_complete else None


def _leader_known(table: PartitionTable) -> NDArray[np.bool_]:
    if table.leader is None:
        return np.zeros(table.count, dtype=np.bool_)
    return np.asarray(table.leader != LEADER_NOT_SAID)


def least_isr(view: ClusterView, default: int | None) -> Int64Array | None:
    """Return min.insync.replicas of each partition, -1 where unknown; None when all are unknown."""
    by_topic = min_isr_by_topic(view.topics, default).astype(np.int64)
    if by_topic.size and not (by_topic >= 0).any():
        return None
    return by_topic[view.partitions.topic_index]


def _under_replicated(table: PartitionTable) -> NDArray[np.bool_]:
    assert table.isr is not None
    needed = count_in_row(table.replicas >= 0)
    synced = count_in_row(table.isr >= 0)
    if table.adding is not None:
        needed -= _members(table.replicas, table.adding)
    if table.observers is not None:
        needed -= _members(table.replicas, table.observers)
        synced -= _members(table.isr, table.observers)
    return np.asarray(synced < needed)


def _sole_copy(view: ClusterView) -> NDArray[np.bool_]:
    table = view.partitions
    live = view.broker_ids[view.alive]
    copies = sum(count_in_row(np.isin(column, live)) for column in (table.isr, table.elr) if column is not None)
    led = np.True_ if table.leader is None else table.leader != NO_LEADER
    return np.asarray((copies == 1) & led & _under_replicated(table))


def _members(rows: Int32Array, others: Int32Array) -> Int64Array:
    """Return how many ids of each row occur in the same row of `others`."""
    return count_in_row((rows >= 0) & members(rows, others))


def _not_preferred(table: PartitionTable) -> NDArray[np.bool_]:
    assert table.leader is not None
    if not table.replicas.shape[1]:
        return np.zeros(table.count, dtype=np.bool_)
    return np.asarray((table.leader >= 0) & (table.leader != table.replicas[:, 0]))


def _state_detail(view: ClusterView, row: int) -> str:
    table = view.partitions
    leader = None if table.leader is None else int(table.leader[row])
    words = {None: "leader not known", LEADER_NOT_SAID: "leader not known", NO_LEADER: "no leader"}
    parts = [words.get(leader, f"leader {leader}")]
    if table.isr is not None:
        members = [str(number) for number in table.isr[row].tolist() if number >= 0]
        parts.append(f"in sync {', '.join(members) or 'none'}")
    least = view.topics[table.topic_index[row]].min_insync_replicas
    if least is not None:
        parts.append(f"min.insync.replicas {least}")
    return "; ".join(parts)
