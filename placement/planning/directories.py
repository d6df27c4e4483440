"""Count what a plan copies between the log directories of each broker, and name unusable ones.

Where a directory changes inside a broker, both copies are there until the new one has caught up.

Source: Kafka 4.4.0 ReassignPartitionsCommand (executeMoves), ReplicaManager.alterReplicaLogDirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
import numpy as np

from broker.cluster import SIZE_UNKNOWN, ClusterView, Int64Array
from broker.ids import BrokerId
from placement.planning.reassignment import LogDirTarget, Reassignment

DIRECTORY_COLUMNS: Final = (
    *("broker_id", "log_dir", "replica_count_in", "replica_count_out", "bytes_in", "bytes_out", "size_bytes_before"),
)


@attrs.frozen(kw_only=True)
class DirectoryCopy:
    """Hold one replica that is copied inside its broker: `size_bytes` is -1 where it is not known."""

    batch: int
    broker_id: BrokerId
    source: str
    target: str
    size_bytes: int


@attrs.frozen(kw_only=True)
class DirectoryMoves:
    """Hold the copies inside brokers, and the targets that name no directory of their broker, or a dead one.

    `uncounted` targets are on replicas that stay, in a directory that is not known.
    """

    copies: tuple[DirectoryCopy, ...] = ()
    unknown: tuple[LogDirTarget, ...] = ()
    offline: tuple[LogDirTarget, ...] = ()
    uncounted: int = 0

    @property
    def size_bytes(self) -> int | None:
        """Return the bytes of all copies; None where a size is not known."""
        return _sum([one.size_bytes for one in self.copies])

    def rows(self, view: ClusterView) -> Iterator[dict[str, Any]]:
        """Yield what is copied into and out of each directory concerned, by broker and path."""
        held = {(one.broker_id, one.path): one.size_bytes for one in view.log_dirs}
        sizes: dict[tuple[BrokerId, str], tuple[list[int], list[int]]] = {}
        for one in self.copies:
            sizes.setdefault((one.broker_id, one.target), ([], []))[0].append(one.size_bytes)
            sizes.setdefault((one.broker_id, one.source), ([], []))[1].append(one.size_bytes)
        for (broker, path), (into, out) in sorted(sizes.items()):
            figures = len(into), len(out), _sum(into), _sum(out), held.get((broker, path))
            yield dict(zip(DIRECTORY_COLUMNS, (int(broker), path, *figures), strict=True))

    def bytes_inside(self, view: ClusterView, batch: int) -> Int64Array:
        """Return what `batch` copies inside each broker, int64[B]; unknown sizes count nothing."""
        row = {int(broker): place for place, broker in enumerate(view.broker_ids.tolist())}
        total = np.zeros(len(view.brokers), dtype=np.int64)
        for one in self.copies:
            total[row[int(one.broker_id)]] += max(one.size_bytes, 0) if one.batch == batch else 0
        return total


def directory_moves(plans: Sequence[Reassignment]) -> DirectoryMoves:
    """Return the copies between directories made by `plans`, each applied to the view after the previous one."""
    if not any(plan.log_dirs for plan in plans):
        return DirectoryMoves()
    known = {(one.broker_id, one.path): one for one in plans[0].view.log_dirs}
    listed = {broker for broker, _ in known}
    now = {(each.broker_id, replica): each.path for each in known.values() for replica in each.replicas}
    copies: list[DirectoryCopy] = []
    unknown: list[LogDirTarget] = []
    offline: list[LogDirTarget] = []
    uncounted = 0
    for batch, plan in enumerate(plans):
        for target in plan.log_dirs:
            found = known.get((target.broker_id, target.path))
            if (found is None and target.broker_id in listed) or (found is not None and found.error is not None):
                (unknown if found is None else offline).append(target)
                continue
            place = (target.broker_id, _replica(plan, target))
            before, stays = now.get(place), int(target.broker_id) in plan.current[target.place].tolist()
            uncounted += stays and before is None
            if stays and before not in (None, target.path):
                assert before is not None
                size = _size(plan, target)
                copies.append(
                    DirectoryCopy(
                        batch=batch, broker_id=target.broker_id, source=before, target=target.path, size_bytes=size
                    )
                )
            now[place] = target.path
    return DirectoryMoves(copies=tuple(copies), unknown=tuple(unknown), offline=tuple(offline), uncounted=uncounted)


def _replica(plan: Reassignment, target: LogDirTarget) -> tuple[str, int]:
    table, row = plan.view.partitions, int(plan.rows[target.place])
    return plan.view.topics[int(table.topic_index[row])].name, int(table.partition_ids[row])


def _size(plan: Reassignment, target: LogDirTarget) -> int:
    """Return the bytes of the replica on the target's own broker; -1 where they are not known."""
    table, row = plan.view.partitions, int(plan.rows[target.place])
    if table.replica_size_bytes is not None:
        return int(table.replica_size_bytes[row][table.replicas[row] == int(target.broker_id)].max(initial=-1))
    return SIZE_UNKNOWN if table.size_bytes is None else int(table.size_bytes[row])


def _sum(sizes: Sequence[int]) -> int | None:
    return None if SIZE_UNKNOWN in sizes else sum(sizes)
