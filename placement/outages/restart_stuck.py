"""Find the partitions that no order of restarts keeps at min.insync.replicas, or that forbid restarts.

What it decides: a partition with a budget (restart_budget.py) of 0 or less is *stuck*: it falls under
min.insync.replicas, or loses its margin, whenever one of its in-sync replicas restarts. If a replica of it is out of
sync, waiting helps: such a partition *forbids a restart*, as the next broker to go may be its last leader.

Constraints: observers are out of sync by design and forbid nothing, nor does a partition whose brokers are all
known to be down: no restart can make it worse. Brokers in no ISR may be dead, and a describe does not show it; that is
why a schedule is refused unless the caller asks for one.

Example: broker 2 is gone, so that broker 1 alone holds what is committed.

    >>> from broker.cluster import PartitionTable, TopicView
    >>> from placement.outages.succession import successions
    >>> table = PartitionTable(topic_index=[0], partition_ids=[0], replicas=[[1, 2]], isr=[[1, -1]])
    >>> topics = [TopicView("t", min_insync_replicas=1)]
    >>> view = ClusterView.build(name="n", source="s", format="f", partitions=table, topics=topics)
    >>> found = stuck_partitions(view, successions(view), budget=np.array([0], dtype=np.int32))
    >>> found.forbidding.tolist(), found.replica_count_by_broker
    ([0], ((2, 1),))
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from broker.cluster import PAD, BoolArray, ClusterView, Int32Array, Int64Array
from broker.errors import RefusedError
from broker.ids import NO_LEADER, BrokerId
from broker.row_flags import any_in_row, members
from broker.wording import counted
from placement.balance.out_of_sync import may_lead
from placement.outages.succession import Successions, rows_of

_BROKERS_NAMED_MAX: Final = 5


@attrs.frozen(kw_only=True, eq=False)
class Stuck:
    """Hold the partitions whose budget is 0 or less, in columns: rows of `view.partitions`, and what they lack.

    `missing_count` int32[S] in-sync replicas more would give a budget of 1; `out_of_sync_count` of its replicas are
    live but not in sync, and no observers, so that many would come by waiting. `min_isr` is what they must keep.
    `rows` have a live in-sync replica; `forbidding` int64[F] are the rows of all that forbid a restart, also those
    without one, and `replica_count_by_broker` where their replicas out of sync stand, most first.
    """

    rows: Int64Array
    min_isr: Int32Array
    missing_count: Int32Array
    out_of_sync_count: Int32Array
    forbidding: Int64Array
    replica_count_by_broker: tuple[tuple[BrokerId, int], ...]


def stuck_partitions(view: ClusterView, found: Successions, budget: Int32Array) -> Stuck:
    """Return the partitions of `view` whose `budget` int32[P] is 0 or less. Cost: O(replicas)."""
    rows = np.flatnonzero((budget < 1) & (found.in_sync_count > 0)).astype(np.int64)
    order, counts = found.order[rows], found.in_sync_count[rows]
    behind = (np.arange(order.shape[1])[None, :] >= counts[:, None]) & follows(view, rows, order)
    forbidding, by_broker = _forbidding(view, found, np.flatnonzero(budget < 1))
    return Stuck(
        rows=rows,
        min_isr=np.maximum(found.min_isr[rows], 1),
        missing_count=(1 - budget[rows]).astype(np.int32),
        out_of_sync_count=behind.sum(axis=1, dtype=np.int32),
        forbidding=forbidding,
        replica_count_by_broker=by_broker,
    )


def check_in_sync(view: ClusterView, stuck: Stuck, *, margin: int) -> None:
    """Raise RefusedError if a partition forbids a restart; the message names how many, the brokers, and what to do."""
    if not stuck.forbidding.size:
        return
    count = stuck.forbidding.size
    down = {number: f", {how.value}" for number, how in view.down.items()}
    named = [
        f"{broker} ({counted(replicas, 'replica')}{down.get(broker, '')})"
        for broker, replicas in stuck.replica_count_by_broker[:_BROKERS_NAMED_MAX]
    ]
    more = len(stuck.replica_count_by_broker) - len(named)
    where = ", ".join(named) + (f" and {counted(more, 'more broker')}" if more else "")
    least = "min.insync.replicas" + (f" plus the margin of {margin}" if margin else "")
    raise RefusedError(
        f"{count:,} of {counted(view.partitions.count, 'partition')} {'is' if count == 1 else 'are'} at or under "
        f"{least} because replicas are out of sync, "
        f"on broker{'' if len(stuck.replica_count_by_broker) == 1 else 's'} {where}; "
        "bring these brokers back and wait until every replica is in sync"
    )


def _forbidding(
    view: ClusterView, found: Successions, rows: Int64Array
) -> tuple[Int64Array, tuple[tuple[BrokerId, int], ...]]:
    """Return those of `rows` with a replica out of sync or down, and the number of these replicas by broker."""
    replicas = rows_of(view.broker_ids, view.partitions.replicas[rows])
    order = found.order[rows]
    in_sync = np.where(np.arange(order.shape[1])[None, :] < found.in_sync_count[rows][:, None], order, PAD)
    behind = follows(view, rows, replicas) & ~members(replicas, in_sync)
    # Of a partition without a leader those that may lead it are what is missing.
    table = view.partitions
    if table.leader is not None:
        hit = table.leader[rows] == NO_LEADER
        leads = may_lead(table, rows[hit])
        behind[hit] = np.where(any_in_row(leads)[:, None], leads, behind[hit])
    restarts = np.append(found.live, np.bool_(False))[replicas]
    behind &= restarts.any(axis=1, keepdims=True)
    brokers, counts = np.unique(view.broker_ids[replicas[behind]], return_counts=True)
    most_first = np.lexsort((brokers, -counts))
    pairs = zip(brokers[most_first].tolist(), counts[most_first].tolist(), strict=True)
    return rows[behind.any(axis=1)], tuple((BrokerId(broker), count) for broker, count in pairs)


def follows(view: ClusterView, rows: Int64Array, order: Int32Array) -> BoolArray:
    """Return which of the rows of brokers in `order` int32[R, W] come into sync by waiting: all but observers and -1.

    `rows` int64[R] are the partitions that `order` is of.
    """
    observers = view.partitions.observers
    if observers is None:
        return np.asarray(order >= 0)
    ids = np.append(view.broker_ids, np.int32(PAD))[order]
    return (order >= 0) & ~members(ids, observers[rows])
