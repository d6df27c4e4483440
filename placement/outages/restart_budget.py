"""Say which brokers may restart together: the constraints that min.insync.replicas puts on a batch of restarts.

What it decides: a partition with k live in-sync replicas, min.insync.replicas m and a margin may lose

    budget = k - m - margin

of them at once. So a batch may hold at most `budget` of its k brokers: an edge between each two of them if the budget
is 1, a hyperedge if it is more.

Constraints: a budget of 0 or less cannot be kept by any schedule: such a partition falls under min.insync.replicas (or
loses its margin) whenever one of its brokers restarts. It is listed as `stuck`, and the brokers of all its live
replicas but observers still restart one at a time: a batch begins when they are in sync, so that it then keeps a leader
where two of them are live, and min.insync.replicas where too few were in sync only for now. Where replicas out of sync
are why it is stuck, no schedule is given at all unless the caller asks for one (restart_stuck.py). Other out-of-sync
replicas do not count: each that comes back into sync raises its partition's budget by one. A broker that is not alive
(broker/liveness.py), or that holds nothing and is no controller, is not restarted; `left_out` names it.

How: partitions with equal brokers and equal budgets are one constraint, with the number of partitions behind it. Where
a set of brokers has several budgets the smallest holds. Where min.insync.replicas is not shown, Kafka's default, 1, is
taken, and a note says so; 0, which Kafka refuses, counts as 1, so that a partition keeps a leader.

Example: two partitions of factor 3 on the brokers 1, 2, 3 with min.insync.replicas 2 and 1: a budget of 1 and one of 2,
of which the first holds.

    >>> from broker.cluster import PartitionTable, TopicView
    >>> table = PartitionTable(topic_index=[0, 1], partition_ids=[0, 0], replicas=[[1, 2, 3], [1, 2, 3]])
    >>> topics = [TopicView("a", min_insync_replicas=2), TopicView("b", min_insync_replicas=1)]
    >>> view = ClusterView.build(name="n", source="s", format="f", partitions=table, topics=topics)
    >>> found = restart_limits(view)
    >>> found.members.tolist(), found.budget.tolist(), found.partition_count.tolist()
    ([[0, 1, 2]], [1], [1])

Source: Kafka core Partition.effectiveMinIsr, ReplicaManager (NOT_ENOUGH_REPLICAS), LogConfig (least and default), 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import PAD, ClusterView, Int32Array, Int64Array
from broker.errors import UsageError
from broker.ids import BrokerId
from broker.row_flags import any_in_row, count_each, count_in_row
from broker.wording import counted
from placement.outages.restart_stuck import Stuck, check_in_sync, follows, stuck_partitions
from placement.outages.succession import Successions, rows_of, successions

MIN_ISR_LEAST: Final = 1
"""Kafka's default of min.insync.replicas, and the least that a topic may set (TopicConfig, atLeast(1))."""
EMPTY: Final = "holds nothing"
"""Why a broker that is alive is left out."""
MARGIN_MAX: Final = 32_767
"""A partition has no more replicas than this (a factor is an int16), so that a greater margin asks nothing else."""
_PACKED_MAX: Final = (1 << 63) - 1  # The digits of a row are one number of int64.


@attrs.frozen(kw_only=True, eq=False)
class Limits:
    """Hold the constraints on a batch: at most `budget` of each row of `members` at once, and `batch_max` in all.

    `brokers` int64[N] are the rows of `view.brokers` that restart; `members` int32[C, W] are places in it, ascending,
    -1 pads; `budget` int32[C]; `partition_count` int64[C] the partitions behind each. `batch_max` is N if not given.
    """

    brokers: Int64Array
    members: Int32Array
    budget: Int32Array
    partition_count: Int64Array
    batch_max: int


@attrs.frozen(kw_only=True, eq=False)
class RestartLimits:
    """Hold everything that a schedule of restarts must respect, and what it cannot.

    `together` int32[P, W] are the replicas of each partition that the constraint counts as places in `limits.brokers`,
    -1 elsewhere: the live in-sync ones, the first `in_sync_count` int32[P] of a row, and of a stuck partition those
    that will be; `allowed` int32[P] how many of them one batch may hold. `left_out` are the brokers that do not
    restart, and why.
    """

    limits: Limits
    together: Int32Array
    in_sync_count: Int32Array
    allowed: Int32Array
    stuck: Stuck
    left_out: tuple[tuple[BrokerId, str], ...]
    notes: tuple[str, ...]

    @property
    def members(self) -> Int32Array:
        """Return the brokers of each constraint, as places in `limits.brokers`."""
        return self.limits.members

    @property
    def budget(self) -> Int32Array:
        """Return how many of a constraint's brokers one batch may hold."""
        return self.limits.budget

    @property
    def partition_count(self) -> Int64Array:
        """Return the number of partitions behind each constraint."""
        return self.limits.partition_count


def restart_limits(
    view: ClusterView,
    *,
    margin: int = 0,
    batch_max: int | None = None,
    controllers: Iterable[BrokerId] = (),
    despite_out_of_sync: bool = False,
) -> RestartLimits:
    """Return the constraints on restarting the brokers of `view` that are alive; raise UsageError for a wrong argument.

    `controllers` are brokers that are KRaft controllers too: a batch leaves a majority of them. Raises RefusedError if
    replicas out of sync leave a partition nothing to lose, unless `despite_out_of_sync`.
    """
    if not 0 <= margin <= MARGIN_MAX:
        what = f"allowed are 0 to {MARGIN_MAX:,} in-sync replicas above min.insync.replicas"
        raise UsageError(f"the margin is {margin}; {what}")
    if batch_max is not None and batch_max < 1:
        raise UsageError(f"a batch holds at most {batch_max} brokers; allowed are 1 and more")
    found, voters = successions(view), tuple(controllers)
    held = count_each(view.replica_rows, found.live.size) > 0
    restarts = view.alive & (held | np.isin(view.broker_ids, voters))
    live = np.flatnonzero(restarts).astype(np.int64)
    place = np.full(found.live.size + 1, PAD, dtype=np.int32)
    place[live] = np.arange(live.size)
    columns = np.arange(found.order.shape[1], dtype=np.int32)[None, :]
    counts = found.in_sync_count
    budget = counts - np.maximum(found.min_isr, MIN_ISR_LEAST) - margin
    counted_now = columns < counts[:, None]
    will_be_in_sync = (budget < 1)[:, None] & follows(view, np.arange(budget.size), found.order)
    members_rows = place[np.where(counted_now | will_be_in_sync, found.order, PAD)]
    quorum, notes = _quorum(view, place, voters)
    stuck = stuck_partitions(view, found, budget)
    if not despite_out_of_sync:
        check_in_sync(view, stuck, margin=margin)
    # Nothing says which of the brokers of a partition without a leader are up.
    unled = stuck.forbidding[counts[stuck.forbidding] == 0]
    rows = rows_of(view.broker_ids, view.partitions.replicas[unled])
    members_rows[unled] = place[np.where(follows(view, unled, rows), rows, PAD)]
    members, budgets, partition_count = _distinct(members_rows, np.maximum(budget, 1), quorum)
    return RestartLimits(
        limits=Limits(
            brokers=live,
            members=members,
            budget=budgets,
            partition_count=partition_count,
            batch_max=max(live.size, 1) if batch_max is None else min(batch_max, max(live.size, 1)),
        ),
        together=members_rows,
        in_sync_count=found.in_sync_count,
        allowed=np.maximum(budget, 1).astype(np.int32),
        stuck=stuck,
        left_out=tuple(
            (broker.id, view.down[broker.id].value if broker.id in view.down else EMPTY)
            for broker, restarted in zip(view.brokers, restarts.tolist(), strict=True)
            if not restarted
        ),
        notes=(*found.isr_notes, *_unknown(found), *notes),
    )


def broken_rows(found: RestartLimits, batch_of: Int32Array) -> Int64Array:
    """Return the rows of the partitions of which some batch holds more than it may, given each broker's batch."""
    batch = np.where(found.together >= 0, np.append(batch_of, -1)[found.together], PAD)
    together = np.zeros(batch.shape[0], dtype=np.int64)
    for column in batch.T:
        with_it = ((batch == column[:, None]) & (column >= 0)[:, None]).sum(axis=1)
        together = np.maximum(together, with_it)
    return np.flatnonzero((together > found.allowed) & (together > 1)).astype(np.int64)


def _unknown(found: Successions) -> Sequence[str]:
    count = int(np.count_nonzero(found.min_isr < 0))
    if not count:
        return []
    verb = "does" if count == 1 else "do"
    return [f"{counted(count, 'partition')} {verb} not show min.insync.replicas; Kafka's default, 1, is taken"]


def _quorum(
    view: ClusterView, place: Int32Array, controllers: tuple[BrokerId, ...]
) -> tuple[tuple[list[int], int] | None, list[str]]:
    """Return the constraint that keeps a majority of the controllers, if there is one, and what to say of it."""
    if not controllers:
        return None, []
    rows = {broker.id: row for row, broker in enumerate(view.brokers)}
    unknown = [each for each in controllers if each not in rows]
    if unknown:
        raise UsageError(f"controller {unknown[0]} is not one of the brokers of {view.name}")
    voters = sorted(set(controllers))
    down = [each for each in voters if each in view.down]
    spare = (len(voters) - 1) // 2 - len(down)
    members = [int(place[rows[each]]) for each in voters if each not in down]
    if spare < 1:
        return (members, 1), [
            f"{len(voters)} controllers, {len(down)} of them down: any restart ends the quorum's majority"
        ]
    return (members, spare), []


def _distinct(
    together: Int32Array, budget: Int32Array, quorum: tuple[list[int], int] | None
) -> tuple[Int32Array, Int32Array, Int64Array]:
    """Return each set of brokers that some batch could break once, with its smallest budget."""
    counts = count_in_row(together >= 0)
    binding = np.flatnonzero((counts > 1) & (budget < counts))
    end = int(together.max(initial=PAD)) + 1  # Stands behind the last broker of a row.
    rows = np.sort(np.where(together[binding] < 0, end, together[binding]), axis=1)
    distinct, times = distinct_rows(np.column_stack([rows, budget[binding]]).astype(np.int64))
    # Of the budgets of one set of brokers the smallest comes first.
    first = np.ones(distinct.shape[0], dtype=np.bool_)
    first[1:] = any_in_row(distinct[1:, :-1] != distinct[:-1, :-1])
    members, smallest = distinct[first, :-1].astype(np.int32), distinct[first, -1]
    members[members == end] = PAD
    partition_count = times[first].astype(np.int64)
    if quorum is not None and quorum[1] < len(quorum[0]):
        width = max(members.shape[1], len(quorum[0]))
        padded = np.full((members.shape[0] + 1, width), PAD, dtype=np.int32)
        padded[:-1, : members.shape[1]] = members
        padded[-1, : len(quorum[0])] = sorted(quorum[0])
        return (
            padded,
            np.append(smallest, quorum[1]).astype(np.int32),
            np.append(partition_count, 0).astype(np.int64),
        )
    return members, smallest.astype(np.int32), partition_count


def distinct_rows(matrix: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the distinct rows of a matrix of numbers from 0 on, in order, and how often each is there.

    >>> rows, times = distinct_rows(np.array([[2, 7], [0, 9], [2, 7]]))
    >>> rows.tolist(), times.tolist()
    ([[0, 9], [2, 7]], [1, 2])
    """
    radix = int(matrix.max(initial=0)) + 1
    if radix ** matrix.shape[1] > _PACKED_MAX:
        rows, times = np.unique(matrix, axis=0, return_counts=True)
        return rows, times
    # A row as one number, its columns being the digits: sorted in a tenth of the time.
    packed = np.zeros(matrix.shape[0], dtype=np.int64)
    for column in matrix.T:
        packed = packed * radix + column
    keys, times = np.unique(packed, return_counts=True)
    digits = [keys // radix**place % radix for place in range(matrix.shape[1])]
    return np.column_stack(digits[::-1]), times
