"""Order the replicas of each partition by who leads next: the column form of Kafka's leader election.

What it decides: for every partition the order in which its live replicas would lead if those before them were lost.
Kafka elects the first of three groups that has a live member:

1. in sync: the current leader, which stays, then the other ISR members in the order of the replicas;
2. eligible: the members of the ELR, which count once the ISR is empty, in the order of the replicas;
3. the rest, in the order of the replicas, where unclean.leader.election.enable is true.

So for any set of lost brokers, the leader is the first broker of the row that is not lost, among its first
`led_count`; and every state of a partition is a threshold on a part of its row:

    leaderless      all of the first led_count are lost
    at risk         all of the first clean_count are lost: no live replica has every committed record
    under min-ISR   leaderless, or fewer than min_isr of the first in_sync_count are left
    no replica      all of the first live_count are lost

Constraints: a replica is live if its broker is not known to be down (broker/liveness.py) and the view does not list
it as offline. A cordoned broker leads as any other: cordoning is about new replicas (KIP-1066). Where the view says
that a partition has no leader, those that could lead it are down too, though a dump of topics fences nobody: the
controller would have elected one. The result does not depend on the order in which the lost brokers are fenced; what
depends on it is in returning.py. min.insync.replicas is bounded by the partition's replicas, as the leader bounds it
since 3.7 (kafka-topics does not, so it counts a partition of one replica with min.insync.replicas 2 as under min-ISR
for ever).

How: where the view has no ISR, every live replica but an observer is taken to be in sync, and a note says so; where it
has no leader, the first of the order.

Example: replicas 1, 2, 3 of which 2 leads and 3 is out of sync:

    >>> from broker.cluster import TopicView
    >>> table = PartitionTable(topic_index=[0], partition_ids=[0], replicas=[[1, 2, 3]], isr=[[1, 2]], leader=[2])
    >>> view = ClusterView.build(name="n", source="s", format="f", partitions=table, topics=[TopicView("t")])
    >>> found = successions(view)
    >>> view.broker_ids[found.order].tolist(), found.in_sync_count.tolist(), found.led_count.tolist()
    ([[2, 1, 3]], [2], [2])

Left out: the last known leader of KIP-966, which leads only if ISR and ELR are both empty, and fencing never makes
them so; the cluster-wide default of unclean.leader.election.enable, which no dump of topics shows.

Source: Kafka metadata PartitionChangeBuilder.electAnyLeader and isValidNewLeader, ClusterControlManager.isActive, core
Partition.effectiveMinIsr, 4.3; KIP-966. A test compares it with `replication.rules` over all sets of lost brokers.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from broker.broker_rows import broker_rows
from broker.cluster import PAD, SIZE_UNKNOWN, BoolArray, ClusterView, Int32Array, Int64Array, PartitionTable
from broker.compiled import compiled_with
from broker.ids import NO_LEADER
from broker.min_isr import MIN_ISR_UNKNOWN as MIN_ISR_UNKNOWN
from broker.min_isr import effective_by_row, min_isr_by_topic
from broker.row_flags import count_in_row, members
from placement.balance.loads import LEADER_NOT_SAID

UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
_DENSE_IDS_MAX: Final = 1 << 20  # Ids below this are looked up in an array of 4 MiB.


@attrs.frozen(kw_only=True, eq=False)
class Successions:
    """Hold the order of succession of every partition, and how much of it counts for what.

    `order` int32[P, W] holds the rows of `view.brokers`, -1 pads. The counts are int32[P], each the length of a prefix
    of a row: in_sync_count <= clean_count <= led_count <= live_count. `min_isr` int32[P] is the effective
    min.insync.replicas, -1 where unknown; `size_bytes` int64[P] that of one replica, None unless all are known.
    `live` bool[B] marks the brokers that may lead. `notes` say what was assumed; `isr_notes` are those on the ISR.
    """

    order: Int32Array
    in_sync_count: Int32Array
    clean_count: Int32Array
    led_count: Int32Array
    live_count: Int32Array
    min_isr: Int32Array
    size_bytes: Int64Array | None
    live: BoolArray
    notes: tuple[str, ...] = ()
    isr_notes: tuple[str, ...] = ()


def successions(view: ClusterView) -> Successions:
    """Return the order of succession of every partition of `view`. Cost: O(replicas)."""
    table = view.partitions
    rows = view.replica_rows
    live = view.alive
    isr, notes = _isr(table)
    leader = np.full(table.count, LEADER_NOT_SAID, dtype=np.int32) if table.leader is None else table.leader
    order = np.full(rows.shape, PAD, dtype=np.int32)
    counts = np.zeros((3, table.count), dtype=np.int32)
    nothing = np.empty((table.count, 0), dtype=np.int32)
    lists = (
        isr,
        nothing if table.elr is None else table.elr,
        nothing if table.offline is None else table.offline,
    )
    unclean = _unclean(view)
    fill_successions(table.replicas, rows, lists, (leader, unclean), live, order, counts)
    in_sync, clean, all_live = counts
    return Successions(
        order=order,
        in_sync_count=in_sync,
        clean_count=clean,
        led_count=np.where(unclean, all_live, clean).astype(np.int32),
        live_count=all_live,
        min_isr=_min_isr(view),
        size_bytes=_size_bytes(table),
        live=live,
        notes=notes + min_isr_notes(sum(topic.min_insync_replicas is None for topic in view.topics), len(view.topics)),
        isr_notes=notes,
    )


def rows_of(broker_ids: Int32Array, values: Int32Array) -> Int32Array:
    """Return the row of each of `values` in the ascending `broker_ids`, same shape; -1 for a negative value."""
    if not broker_ids.size or int(broker_ids[-1]) >= _DENSE_IDS_MAX:
        return broker_rows(broker_ids, values).astype(np.int32)
    lookup = np.full(int(broker_ids[-1]) + 2, PAD, dtype=np.int32)
    lookup[broker_ids] = np.arange(broker_ids.size, dtype=np.int32)
    rows = lookup[values]  # The last entry answers -1.
    return rows.astype(np.int32, copy=False)


def _isr(table: PartitionTable) -> tuple[Int32Array, tuple[str, ...]]:
    """Return the ISR of each partition, and a note if it is assumed."""
    if table.isr is not None:
        return table.isr, ()
    if table.observers is None:
        return table.replicas, ("no ISR is shown: every live replica is taken to be in sync",)
    observes = members(table.replicas, table.observers)
    note = "no ISR is shown: every live replica that is no observer is taken to be in sync"
    return np.where(observes, PAD, table.replicas).astype(np.int32), (note,)


def _unclean(view: ClusterView) -> BoolArray:
    """Return for each partition whether its topic allows an unclean election, bool[P]."""
    allowed = [dict(topic.configs).get(UNCLEAN_ELECTION, "").lower() == "true" for topic in view.topics]
    return np.array(allowed, dtype=np.bool_)[view.partitions.topic_index]


def _min_isr(view: ClusterView) -> Int32Array:
    """Return the effective min.insync.replicas of each partition, int32[P]; -1 where its topic does not show it."""
    by_partition = min_isr_by_topic(view.topics)[view.partitions.topic_index]
    factors = count_in_row(view.partitions.replicas >= 0)
    return effective_by_row(by_partition, factors)


def min_isr_notes(unknown: int, count: int) -> tuple[str, ...]:
    """Return the note on so many of `count` topics that do not show min.insync.replicas; none if all do."""
    if not unknown:
        return ()
    return (
        f"{unknown} of {count} topics do not show min.insync.replicas; their partitions are not judged by "
        "it (--min-isr gives it)",
    )


def _size_bytes(table: PartitionTable) -> Int64Array | None:
    sizes = table.size_bytes
    return None if sizes is None or (sizes == SIZE_UNKNOWN).any() else sizes


def names(matrix: Int32Array, row: int, broker: int) -> bool:
    """Return whether a row of `matrix` names a broker."""
    found = False
    for column in range(matrix.shape[1]):
        found = found or matrix[row, column] == broker
    return found


@compiled_with(names)
def fill_successions(
    replicas: Int32Array,
    rows: Int32Array,
    lists: tuple[Int32Array, Int32Array, Int32Array],
    led_by: tuple[Int32Array, BoolArray],
    live: BoolArray,
    order: Int32Array,
    counts: Int32Array,
) -> None:
    """Fill `order` and `counts` (in sync, clean, live), given the ISR, ELR and offline replicas of each partition.

    `led_by` holds each partition's leader and whether its topic allows an unclean election.
    """
    isr, elr, offline = lists
    leader, unclean = led_by
    width = replicas.shape[1]
    group = np.zeros(width, np.int8)
    for row in range(replicas.shape[0]):
        for place in range(width):
            broker = replicas[row, place]
            group[place] = -1
            if broker < 0 or not live[rows[row, place]] or names(offline, row, broker):
                continue
            group[place] = 2
            if names(isr, row, broker):
                group[place] = 0
            elif names(elr, row, broker):
                group[place] = 1
            if leader[row] == NO_LEADER and (group[place] < 2 or unclean[row]):
                group[place] = -1
        filled = 0
        for place in range(width):
            if group[place] == 0 and replicas[row, place] == leader[row]:
                order[row, filled] = rows[row, place]
                filled += 1
                group[place] = -1
        for wanted in range(3):
            for place in range(width):
                if group[place] == wanted:
                    order[row, filled] = rows[row, place]
                    filled += 1
            counts[wanted, row] = filled
