"""Make the plan with the fewest moves: replicas first, then leaders by reordering, with a proof of the minimum.

Goals, most important first: the rules; loads as even as the goal asks; fewest new replicas; fewest leaders that lose
their replica; leaders as even as reordering allows; fewest leaders that change for these replicas; replicas that stay
keep their order. By bytes, the third and the fourth are: few bytes copied, in few moves.

How: replicas are one flow (by bytes a greedy, even_bytes.py), leaders a second one over the replicas found. With equal
factors and replicas at floor and ceiling, leaders always reach floor and ceiling too; with mixed factors they reach the
least majorised loads.

Example: broker 3 joins brokers 1 and 2, which hold three partitions of factor 1 each:

    >>> from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
    >>> from broker.ids import BrokerId
    >>> view = ClusterView.build(
    ...     name="demo",
    ...     source="inline",
    ...     format="example",
    ...     topics=(TopicView("t"),),
    ...     partitions=PartitionTable(
    ...         topic_index=[0] * 6, partition_ids=range(6), replicas=[[1], [2], [1], [2], [1], [2]]
    ...     ),
    ... )
    >>> plan = make_plan(view, Goal(kind="add", add=((BrokerId(3), None),)))
    >>> plan.tally.moved, plan.tally.moved_bound, plan.reassignment.replicas.tolist()
    (2, 2, [[3], [3]])
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import attrs
import numpy as np

from broker.cluster import PAD, ClusterView, Int32Array, Int64Array
from broker.errors import RefusedError, UsageError
from broker.ids import BrokerId
from broker.row_flags import any_in_row, count_each, count_in_row, members
from placement.planning.certificate import Proof, TopicProof
from placement.planning.check import Certificate, Tally, faults, tally
from placement.planning.completion import completed_view
from placement.planning.even_bytes import solve_bytes
from placement.planning.exchange import solve
from placement.planning.given import Given, replica_question, staying_leaders, target_rows
from placement.planning.goal import Goal, with_added
from placement.planning.impact import fewer_racks
from placement.planning.problem import Bounds, InfeasibleError, Problem, Solution
from placement.planning.question import first_without_place
from placement.planning.reassignment import Reassignment, packed, widened
from placement.planning.refusals import check_completes, check_given, check_sources, check_view, refuse_row
from placement.planning.rules import leader_problem, replica_problem

_WEIGHT_DIGITS_LEAST = 3
_TRIED_PARTITIONS_MAX = 100_000


@attrs.frozen(kw_only=True, eq=False)
class Plan:
    """Hold a plan: the changed rows of the view, their cost, and the certificate of minimal cost.

    `view` has the brokers that the goal adds.
    """

    view: ClusterView
    goal: Goal
    reassignment: Reassignment
    certificate: Certificate
    tally: Tally

    @property
    def target(self) -> Int32Array:
        """Return the replicas of all partitions after the plan, positions of brokers in `view`, int32[P, V]."""
        return target_rows(self.view, self.reassignment.rows, self.reassignment.replicas)

    def faults(self) -> tuple[str, ...]:
        """Return what the independent checker finds wrong; nothing for a plan made here."""
        return faults(self.view, self.goal, self.target, self.certificate)


def make_plan(view: ClusterView, goal: Goal) -> Plan:
    """Return the plan that reaches `goal` with the fewest moves.

    Raises PlanRefusedError when the goal cannot be reached. Cost: 0.1 to 1 s of CPU for 100,000 partitions on 100
    brokers, 2 to 10 s for a million on 1,000.
    """
    check_view(view, goal)
    check_sources(view, goal)
    known = with_added(view, goal)
    given = Given.read(known, goal)
    check_given(known, goal, given)
    now, proof = given.rows, None
    if not goal.only_leaders:
        problem = replica_problem(known, goal, given)
        try:
            problem = _by_topic(problem, known) if goal.per_topic else problem
            if goal.by_bytes:
                placed, proof = solve_bytes(problem, replica_question(known, goal, given), known, goal)
            else:
                solution, proof = _solved(problem, goal, count_each(given.rows, given.live.size))
                placed = solution.now
        except InfeasibleError:
            raise refuse_row(known, goal, first_without_place(replica_question(known, goal, given))) from None
        now = _with_staying(given, placed)
    leaders = leader_problem(given, now)
    chosen, leader_proof = _solved(leaders, goal, count_each(given.leader, given.live.size))
    leader = np.where(leaders.kind >= 0, chosen.now[:, 0], staying_leaders(given, now))
    target = _ordered(given, now, np.where(given.changes, leader, PAD).astype(np.int32))
    certificate = Certificate(replicas=proof, leaders=leader_proof)
    changed = _changed(known, given, target)
    check_completes(changed, goal)
    return Plan(
        view=known,
        goal=goal,
        reassignment=changed,
        certificate=certificate,
        tally=tally(known, goal, target, certificate),
    )


@attrs.frozen(kw_only=True)
class Drain:
    """Say by which goal brokers are drained, or why that is refused.

    Goal `racks` is that of a drain that would leave partitions it moves on fewer racks than they could stand on.
    """

    goal: str = "drain"
    refused: str | None = None


def drain_of(view: ClusterView, ids: Sequence[int]) -> Drain:
    """Return how brokers are drained; above 100,000 partitions no plan is tried."""
    if view.partitions.count > _TRIED_PARTITIONS_MAX:
        return Drain()
    remove = tuple(BrokerId(each) for each in ids)
    try:
        plan = make_plan(view, Goal(kind="drain", remove=remove))
    except (RefusedError, UsageError) as refused:
        return Drain(refused=str(refused))
    moved = plan.reassignment
    crowded = fewer_racks(completed_view(moved))
    if crowded is None or not crowded[moved.rows].any():
        return Drain()
    with suppress(RefusedError, UsageError):
        make_plan(view, Goal(kind="racks", remove=remove))
        return Drain(goal="racks")
    return Drain()


def _solved(problem: Problem, goal: Goal, before: Int64Array) -> tuple[Solution, Proof]:
    """Return the solution that the goal asks for, and its proof; `before` int64[B] are the loads before the plan."""
    even = solve(problem, leaders_last=goal.is_even)
    found = even
    if not goal.is_even:
        bounds = Bounds(
            low=np.where(problem.live, np.minimum(before, even.low), 0),
            high=np.where(problem.live, np.maximum(before, even.high), 0),
            block=np.where(problem.live, 0, -1),
            totals=np.array([problem.total], dtype=np.int64),
        )
        found = solve(problem, bounds)
    weight, topics = _weight(problem, found), None
    if found.topic_move_price is not None and found.topic_leader_price is not None:
        assert problem.topic_low is not None
        assert problem.topic_high is not None
        each = weight * found.topic_move_price + found.topic_leader_price
        topics = TopicProof(low=problem.topic_low, high=problem.topic_high, price=each)
    return found, Proof(
        low=found.low,
        high=found.high,
        even_low=even.low,
        even_high=even.high,
        block=even.block,
        totals=even.totals,
        price=weight * found.move_price + found.leader_price,
        weight=weight,
        is_even=goal.is_even,
        topics=topics,
    )


def _weight(problem: Problem, found: Solution) -> int:
    """Return a power of ten that no number of lost leaders reaches, nor any difference of their prices."""
    prices = found.leader_price if found.topic_leader_price is None else found.topic_leader_price
    least = max(problem.kind.size + 1, 2 * int(np.ptp(prices)) + 4)
    return int(10 ** max(_WEIGHT_DIGITS_LEAST, len(str(least))))


def _by_topic(problem: Problem, view: ClusterView) -> Problem:
    """Return the problem with each topic's replicas as even over brokers as the topic by itself can be."""
    topic = view.partitions.topic_index
    low = np.zeros((len(view.topics), problem.group.size), dtype=np.int64)
    high = np.zeros_like(low)
    order = np.argsort(topic, kind="stable")
    starts = np.searchsorted(topic[order], np.arange(len(view.topics) + 1))
    for number in range(len(view.topics)):
        rows = order[starts[number] : starts[number + 1]]
        if (problem.kind[rows] < 0).all():
            continue
        part = problem.taken(rows, topic=np.zeros(rows.size, dtype=np.int32), base=np.zeros_like(problem.base))
        alone = solve(part, leaders_last=False)
        low[number], high[number] = alone.low, alone.high
    return attrs.evolve(problem, topic=topic, topic_low=low, topic_high=high)


def _with_staying(given: Given, now: Int32Array) -> Int32Array:
    """Return all replicas: those placed, those that stay on fenced brokers, and the rows that may not change."""
    kept = np.where(given.stays | ~given.changes[:, None], given.rows, PAD)
    return np.concatenate([np.where(given.changes[:, None], now, PAD), kept], axis=1).astype(np.int32)


def _ordered(given: Given, now: Int32Array, leader: Int32Array) -> Int32Array:
    """Return the replicas `now` int32[P, V] in the order of the plan, int32[P, widest].

    Who stays keeps its place, a new replica takes that of one that leaves, and what is more stands at the end. Then the
    leader comes first, unless it leads anyway: it is the first live replica, or it led before and the first, which was
    the first before, is down.
    """
    before = given.rows
    fresh = packed(np.where(members(now, before), PAD, now))
    kept = np.where(members(before, now), before, PAD)
    left = np.cumsum((before >= 0) & (kept < 0), axis=1)
    taken = np.take_along_axis(fresh, np.clip(left - 1, 0, fresh.shape[1] - 1), axis=1)
    takes = (before >= 0) & (kept < 0) & (left <= count_in_row(fresh >= 0)[:, None])
    rest = np.where(np.arange(fresh.shape[1]) >= left[:, -1:], fresh, PAD)
    target = packed(np.concatenate([np.where(takes, taken, kept), rest], axis=1))
    target = target[:, : int(count_in_row(now >= 0).max(initial=1))]
    if not target.shape[1]:  # No partition has a replica.
        return target.astype(np.int32)
    first, down = target[:, 0], np.append(given.fenced | given.removed, False)
    is_down = down[first] | any_in_row(given.offline == first[:, None])
    leads_anyway = is_down & (first == before[:, 0]) & (leader == given.leader)
    turns = (leader >= 0) & (first != leader) & ~leads_anyway
    key = np.where(turns[:, None] & (target == leader[:, None]), -1, np.arange(target.shape[1]))
    return np.take_along_axis(target, np.argsort(key, axis=1, kind="stable"), axis=1).astype(np.int32)


def _changed(view: ClusterView, given: Given, target: Int32Array) -> Reassignment:
    """Return the rows that the plan changes, in the view's order."""
    width = max(target.shape[1], given.rows.shape[1])
    rows = np.flatnonzero(any_in_row(widened(target, width) != widened(given.rows, width)))
    ids = np.append(view.broker_ids, PAD).astype(np.int32)
    return Reassignment(view=view, rows=rows, replicas=ids[target[rows]])
