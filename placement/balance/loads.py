"""Count what each broker, rack and topic of a cluster holds: replicas, leaders, bytes.

What is not known is None: leaders are known when every partition's row names its leader or says that it has none, bytes
when every partition's size is. Counts come from the partitions when the view lists all of them, else from the totals.
Sums are int64, as floats lose bytes above 2**53. The leader of a placement that has not run yet is the preferred
replica, the first (KIP-460).
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.broker_rows import broker_rows
from broker.cluster import SIZE_UNKNOWN, ClusterView, Int32Array, Int64Array, PartitionTable
from broker.ids import NO_LEADER
from broker.row_flags import any_in_row, count_each, count_in_row

LEADER_NOT_SAID: Final = -2  # ClusterView's mark for a row whose leader the dump does not give.


@attrs.frozen(eq=False, kw_only=True)
class GroupLoads:
    """Hold the loads of all groups of one scope; entry i of every array belongs to the group `names[i]`.

    `replica_count`, `leader_count` and `size_bytes` are int64[groups], or None where the input does not say.
    """

    scope: str
    names: tuple[str | None, ...]
    replica_count: Int64Array | None = None
    leader_count: Int64Array | None = None
    size_bytes: Int64Array | None = None


@attrs.frozen(eq=False, kw_only=True)
class Loads:
    """Hold the loads of every broker, rack and topic of one cluster.

    `brokers` are in ascending order of id. `racks` are in order of name, the brokers without a
    rack gathered last under None; it is None when no broker's rack is known. `topics` are in the
    order of the view; None when the view does not list every partition.
    """

    brokers: GroupLoads
    racks: GroupLoads | None
    topics: GroupLoads | None


def loads(view: ClusterView, *, assume_preferred: bool = False) -> Loads:
    """Return the loads of each broker, rack and topic of `view`.

    With `assume_preferred`, the first replica leads wherever the view does not say who does: right for
    a placement that has not run yet (a simulation, a reassignment plan), a guess for a running cluster.
    """
    leader = leaders(view.partitions, assume_preferred=assume_preferred)
    brokers = _broker_loads(view, leader)
    return Loads(
        brokers=brokers,
        racks=_rack_loads(view, brokers),
        topics=_topic_loads(view, leader) if view.partitions_complete else None,
    )


def broker_loads(view: ClusterView, *, assume_preferred: bool = False) -> GroupLoads:
    """Return the loads of each broker of `view` alone, as `loads` does."""
    return _broker_loads(view, leaders(view.partitions, assume_preferred=assume_preferred))


def leaders(partitions: PartitionTable, *, assume_preferred: bool = False) -> Int32Array | None:
    """Return each partition's leader, int32[P], -1 for none; None if the view is silent about some partition.

    With `assume_preferred`, rows that do not say take their first replica.
    """
    known = partitions.leader
    if known is not None and not (known == LEADER_NOT_SAID).any():
        return known
    if not assume_preferred:
        return None
    width = partitions.replicas.shape[1]
    preferred = partitions.replicas[:, 0] if width else np.full(partitions.count, NO_LEADER, dtype=np.int32)
    return preferred if known is None else np.where(known == LEADER_NOT_SAID, preferred, known)


def _broker_loads(view: ClusterView, leader: Int32Array | None) -> GroupLoads:
    ids = view.broker_ids
    counted: dict[str, Int64Array | None] = {"replica_count": None, "leader_count": None, "size_bytes": None}
    if view.partitions_complete:
        rows = view.replica_rows
        counted["replica_count"] = count_each(rows, ids.size)
        counted["leader_count"] = None if leader is None else count_each(broker_rows(ids, leader), ids.size)
        counted["size_bytes"] = _replica_bytes(view.partitions, rows, ids.size)
    for name, shares in counted.items():
        if shares is None and view.totals is not None:
            counted[name] = getattr(view.totals, name)
    return GroupLoads(scope="broker", names=tuple(str(number) for number in ids.tolist()), **counted)


def _rack_loads(view: ClusterView, brokers: GroupLoads) -> GroupLoads | None:
    if not view.racks:
        return None
    racks, rows = racks_by_name(view)
    names: tuple[str | None, ...] = racks
    if (rows < 0).any():
        names += (None,)
        rows = np.where(rows < 0, len(racks), rows)
    return GroupLoads(
        scope="rack",
        names=names,
        replica_count=_regroup(brokers.replica_count, rows, len(names)),
        leader_count=_regroup(brokers.leader_count, rows, len(names)),
        size_bytes=_regroup(brokers.size_bytes, rows, len(names)),
    )


def racks_by_name(view: ClusterView) -> tuple[tuple[str, ...], Int64Array]:
    """Return the racks by code point, as Spark compares strings, and each broker's place there, -1 without a rack.

    Among equals Spark and this process so name the same rack; `ClusterView.rack_places` is by Java's order.
    """
    names = tuple(sorted(view.racks))
    place = {name: row for row, name in enumerate(names)}
    return names, np.array([-1 if one.rack is None else place[one.rack] for one in view.brokers], dtype=np.int64)


def _topic_loads(view: ClusterView, leader: Int32Array | None) -> GroupLoads:
    table, count = view.partitions, len(view.topics)
    factors = count_in_row(table.replicas >= 0).astype(np.int64)
    sizes = partition_bytes(table)
    return GroupLoads(
        scope="topic",
        names=tuple(topic.name for topic in view.topics),
        replica_count=_regroup(factors, table.topic_index, count),
        leader_count=None if leader is None else count_each(table.topic_index[leader >= 0], count),
        size_bytes=_regroup(sizes, table.topic_index, count),
    )


def partition_bytes(partitions: PartitionTable) -> Int64Array | None:
    """Return the bytes of all replicas of each partition, int64[P]; None unless every size is known."""
    sizes = replica_bytes(partitions)
    return None if sizes is None else np.where(partitions.replicas >= 0, sizes, 0).sum(axis=1, dtype=np.int64)


def known_bytes(partitions: PartitionTable, group: Int64Array, group_count: int) -> list[int | None]:
    """Return the bytes of all replicas of each group of partitions whose size is known; None where no size is."""
    sizes = partitions.replica_size_bytes
    if sizes is None and partitions.size_bytes is not None:
        sizes = np.broadcast_to(partitions.size_bytes[:, None], partitions.replicas.shape)
    if sizes is None:
        return [None] * group_count
    known = (partitions.replicas >= 0) & (sizes != SIZE_UNKNOWN)
    has = np.bincount(group[any_in_row(known)], minlength=group_count) > 0
    sums = summed_by(group, np.where(known, sizes, 0).sum(axis=1, dtype=np.int64), group_count)
    return [size if is_known else None for size, is_known in zip(sums.tolist(), has.tolist(), strict=True)]


def replica_bytes(partitions: PartitionTable) -> Int64Array | None:
    """Return the bytes of each replica, int64[P, W]; None unless all are known. Padding holds any number."""
    if partitions.replica_size_bytes is not None:
        unknown = (partitions.replicas >= 0) & (partitions.replica_size_bytes == SIZE_UNKNOWN)
        return None if unknown.any() else partitions.replica_size_bytes
    sizes = partitions.size_bytes
    if sizes is None or (sizes == SIZE_UNKNOWN).any():
        return None
    return np.broadcast_to(sizes[:, None], partitions.replicas.shape)


def _replica_bytes(partitions: PartitionTable, rows: Int32Array, group_count: int) -> Int64Array | None:
    sizes = replica_bytes(partitions)
    if sizes is None:
        return None
    held = rows >= 0
    return summed_by(rows[held], sizes[held], group_count)


def _regroup(shares: Int64Array | None, rows: Int64Array | Int32Array, group_count: int) -> Int64Array | None:
    return None if shares is None else summed_by(rows, shares, group_count)


def summed_by(groups: NDArray[np.integer], values: NDArray[np.integer], group_count: int) -> Int64Array:
    """Return the sum of `values` of each group, int64[group_count]; exact, as no float is involved."""
    sums = np.zeros(group_count, dtype=np.int64)
    np.add.at(sums, groups, values)
    return sums
