"""Find which lost brokers must return before a partition is led again without losing a committed record.

What it decides: for every partition at risk (no live replica has every committed record), the brokers that may have
every committed record, and how many of them must return for certain.

Constraints: a broker "returns" with its log as it was: unfenced, or after a clean stop. One that lost its power or its
disk may have lost the end of its log; with ELR the controller then takes it out of ISR and ELR.

How: brokers are fenced one at a time, in an order that nobody chooses.

- Without ELR the last member of the ISR is never taken out of it, so it is the one that was fenced last that must
  return. Of several lost members any may have been the last: it depends on the order, and only the return of all of
  them is certain to do.
- With ELR, members fenced while the ISR has min.insync.replicas or fewer join the ELR, and each member of the ELR may
  lead. Of k lost ISR members and m = min.insync.replicas the last m fenced may lead; with k <= m each may, whatever the
  order. k - m + 1 that return are certain to have one of them among them.

Example: min.insync.replicas is 2 and all of ISR 1, 2, 3 are lost. Without ELR the one fenced last must return, of ELR
the two fenced last may lead; so all three, or any two, are certain to do.

    >>> lost, min_isr = np.array([3, 2], np.int32), np.array([2, 2], np.int32)
    >>> needed_count(lost, min_isr, with_elr=False).tolist(), needed_count(lost, min_isr, with_elr=True).tolist()
    ([3, 2], [2, 1])

Source: Kafka metadata PartitionChangeBuilder.build and maybePopulateTargetElr, 4.3; KIP-966.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from broker.cluster import PAD, BoolArray, ClusterView, Int32Array, Int64Array
from broker.ids import NO_LEADER, BrokerId
from broker.min_isr import min_isr_by_topic
from broker.row_flags import any_in_row, count_in_row
from placement.outages.arrow import lists_column, partition_columns, table_of
from placement.outages.succession import Successions

if TYPE_CHECKING:
    import pyarrow as pa


@attrs.frozen(kw_only=True, eq=False)
class Returns:
    """Hold the partitions at risk and the brokers of which some must return, in columns; -1 pads a row of brokers.

    `rows` int64[N] are rows of `view.partitions`. Any `needed_count` of a row of `brokers` are certain to have one that
    leads without loss; fewer may do, depending on the order of fencing. The `with_elr` columns say the same of a
    cluster with eligible leader replicas.
    """

    rows: Int64Array
    brokers: Int32Array
    needed_count: Int32Array
    brokers_with_elr: Int32Array
    needed_count_with_elr: Int32Array

    def must_return(self, *, with_elr: bool) -> tuple[BrokerId, ...]:
        """Return the brokers, ascending, that alone can lead some partition without loss."""
        brokers = self.brokers_with_elr if with_elr else self.brokers
        alone = brokers[count_in_row(brokers != PAD) == 1]
        return tuple(BrokerId(each) for each in np.unique(alone[alone != PAD]).tolist())

    def order_matters_count(self, *, with_elr: bool) -> int:
        """Return the number of partitions for which the order of fencing decides who must return."""
        needed = self.needed_count_with_elr if with_elr else self.needed_count
        return int(np.count_nonzero(needed > 1))


def needed_count(lost_count: Int32Array, min_isr: Int32Array, *, with_elr: bool) -> Int32Array:
    """Return how many of `lost_count` lost ISR members must return for certain, by partition."""
    if with_elr:
        return np.maximum(lost_count - np.maximum(min_isr, 1) + 1, 1).astype(np.int32)
    return np.maximum(lost_count, 1).astype(np.int32)


def returns(view: ClusterView, found: Successions, gone: BoolArray) -> Returns:
    """Return the partitions that are at risk once the brokers marked in `gone` bool[B] are lost. Cost: O(replicas)."""
    table = view.partitions
    place = np.arange(found.order.shape[1], dtype=np.int32)[None, :]
    clean = (found.order >= 0) & (place < found.clean_count[:, None])
    rows = np.flatnonzero(~any_in_row(clean & ~np.append(gone, True)[found.order])).astype(np.int64)
    in_sync = np.where(place < found.in_sync_count[rows, None], found.order[rows], PAD)
    live = np.append(view.broker_ids, np.int32(PAD))[in_sync]
    # Without live members the partition is leaderless already: any member of its ISR that returns leads.
    listed = (table.replicas if table.isr is None else table.isr)[rows]
    width = max(live.shape[1], listed.shape[1])
    members = np.where((found.in_sync_count[rows] > 0)[:, None], _wide(live, width), _wide(listed, width))
    eligible = np.empty((rows.size, 0), dtype=np.int32) if table.elr is None else table.elr[rows]
    member_count = count_in_row(members != PAD).astype(np.int32)
    has_eligible = any_in_row(eligible != PAD)
    both = max(width, eligible.shape[1])
    without = np.where((member_count == 0)[:, None], _wide(eligible, both), _wide(members, both))
    is_unled = np.zeros(rows.size, dtype=np.bool_) if table.leader is None else table.leader[rows] == NO_LEADER
    lost_count = np.where(is_unled, 1, member_count).astype(np.int32)
    needed_with = needed_count(lost_count, controller_min_isr(view)[rows], with_elr=True)
    return Returns(
        rows=rows,
        brokers=ascending(without),
        needed_count=needed_count(lost_count, lost_count, with_elr=False),
        brokers_with_elr=ascending(np.concatenate((members, eligible), axis=1)),
        # An ELR that is not empty says that the ISR was below min.insync.replicas: each lost member joins it.
        needed_count_with_elr=np.where(has_eligible, 1, needed_with).astype(np.int32),
    )


def controller_min_isr(view: ClusterView) -> Int32Array:
    """Return min.insync.replicas as the controller bounds it for the ELR: by the replicas of the topic's partition 0.

    A topic that does not show it has Kafka's default, 1.
    """
    table = view.partitions
    shown = np.maximum(min_isr_by_topic(view.topics, given=1), 1)[table.topic_index]
    factors = count_in_row(table.replicas >= 0)
    of_topic = np.full(len(view.topics), -1, dtype=np.int64)
    first = table.partition_ids == 0
    of_topic[table.topic_index[first]] = factors[first]
    bound = of_topic[table.topic_index]
    return np.minimum(shown, np.where(bound < 0, factors, bound)).astype(np.int32)


def returns_table(view: ClusterView, found: Returns) -> pa.Table:
    """Return one row for each partition at risk, as an Arrow table."""
    return table_of(
        partition_columns(view, found.rows)
        | {
            "brokers": lists_column(found.brokers),
            "needed_count": found.needed_count,
            "brokers_with_elr": lists_column(found.brokers_with_elr),
            "needed_count_with_elr": found.needed_count_with_elr,
        }
    )


def _wide(matrix: Int32Array, width: int) -> Int32Array:
    """Return the matrix with as many columns as `width`, padded."""
    padding = np.full((matrix.shape[0], width - matrix.shape[1]), PAD, dtype=np.int32)
    return np.concatenate((matrix, padding), axis=1).astype(np.int32)


def ascending(matrix: Int32Array) -> Int32Array:
    """Return each row's ids ascending, once each, the padding last."""
    ordered = np.sort(np.where(matrix == PAD, np.iinfo(np.int32).max, matrix), axis=1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = np.iinfo(np.int32).max
    ordered.sort(axis=1)
    return np.where(ordered == np.iinfo(np.int32).max, PAD, ordered).astype(np.int32)
