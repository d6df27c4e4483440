"""Find the solution of least cost for a problem of exchanges, and the most even loads that the problem allows.

What it decides: which brokers hold each partition, so that the loads are as even as they can be (or within given
bounds), as few replicas as possible are new, and, among such solutions, as few former leaders as possible are lost.

Every rule on a partition's brokers counts replicas of one group, and every bound on a load those of one broker (or of a
block of brokers), so the problem is a flow with unit capacities, whose optimum in whole numbers is its optimum.

The most even loads. The loads that can be reached form an M-convex set, which has one least majorised vector. All
brokers begin as one block whose loads should be the floor or the ceiling of the mean. If that cannot be, the search
ends with a set of brokers that no unit can leave: what it holds is the least that it can hold. Such a set and the rest
become blocks of their own, each with the mean of its own total, and the search goes on. At the end every block holds
its floors and ceilings.

Prices. A solution comes with the prices that prove it: no exchange costs less than nothing after prices. Those of
moves and of leaders are whole numbers apart; certificate.py turns them into a bound.

Example: three partitions on broker 0 alone, which a second broker without load joins: one replica is new.

    >>> problem = Problem.of_rows([[0], [0], [0]], group=[0, 0])
    >>> solution = solve(problem)
    >>> solution.now.tolist(), solution.low.tolist(), solution.high.tolist()
    ([[1], [0], [0]], [1, 1], [2, 2])

Left out: costs by bytes; bounds on leaders and replicas in one solve, which is no flow.

Source: Frank & Murota, "Decreasing minimization on M-convex sets", Mathematical Programming, 2021, for the blocks;
Ford & Fulkerson's primal-dual method for the cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.row_flags import count_each
from placement.planning.exchange_graph import Buckets, Holdings, Search, Shape, State, Workspace
from placement.planning.exchange_kernel import keep_former, take_back_leaders
from placement.planning.problem import Bounds, InfeasibleError, Problem, Solution
from placement.planning.settle_kernel import NO_ROOM, NOTHING_SENT, SETTLED, settle

_KEYS_FIRST: Final = 1 << 10  # Prices of a few values on a few levels; there is more room where it does not do.


def solve(problem: Problem, bounds: Bounds | None = None, *, leaders_last: bool = True) -> Solution:
    """Return the solution of least cost within `bounds`, or the most even one of least cost.

    Raises InfeasibleError when nothing lies within the bounds given, or when a partition has no place at all.
    """
    if problem.factor.max(initial=0) > 1:
        return _solved(problem, bounds, leaders_last)
    # A search reads the partitions of one broker after the other; so they lie side by side in memory.
    order = np.argsort(problem.leader, kind="stable")
    found = _solved(problem.taken(order), bounds, leaders_last)
    now = np.empty_like(found.now)
    now[order] = found.now
    return attrs.evolve(found, now=now)


def _solved(problem: Problem, bounds: Bounds | None, leaders_last: bool) -> Solution:
    one_block = Bounds.even(np.where(problem.live, 0, -1), np.array([problem.total], dtype=np.int64), problem.share)
    work = Work(problem, one_block if bounds is None else bounds)
    while True:
        reached = work.settle(np.full_like(problem.leader, -1), "moves")
        if reached is None:
            break
        if bounds is not None:
            raise InfeasibleError("no placement lies within these bounds")
        work.split(reached)
    if leaders_last and bool((problem.leader >= 0).any()):
        work.reconsider()
        stuck = work.settle(problem.leader, "leads")
        assert stuck is None, "a solution was there before"
    return work.solution()


class Work:
    """Carry one solve: the graph, the solution so far, and which block each node belongs to, lowest prices first."""

    def __init__(self, problem: Problem, bounds: Bounds) -> None:
        self.problem = problem
        cells = problem.topic_low.shape[0] if problem.topic_low is not None else 1
        self.cell_count = cells * problem.group.size
        self.per_topic = problem.topic_low is not None
        width = int(problem.factor.max(initial=1))
        now = np.full((problem.before.shape[0], width), -1, dtype=np.int32)
        self.shape = self._graph(bounds)
        keep_former(self.shape, now)
        nodes = self.shape.parent.size
        self.order = np.zeros(nodes, dtype=np.int64)
        zeros = [np.zeros(nodes, dtype=np.int64) for _ in range(4)]
        self.state = State(now, *zeros)
        self.raised = zeros[0]  # By how much prices would rise where units are stuck.
        self.bounds = bounds
        self._rebalance()

    # --- the graph ---------------------------------------------------------------------------------------------------

    def _graph(self, bounds: Bounds) -> Shape:
        problem, count = self.problem, self.problem.group.size
        roots = bounds.totals.size
        first_root = self.cell_count + (count if self.per_topic else 0)
        nodes = first_root + roots + 1
        parent = np.full(nodes, -1, dtype=np.int64)
        low, high = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
        brokers = slice(first_root - count, first_root)
        parent[brokers] = np.where(bounds.block >= 0, first_root + bounds.block, -1)
        low[brokers], high[brokers] = bounds.low, bounds.high
        if problem.topic_low is not None and problem.topic_high is not None:
            parent[: self.cell_count] = self.cell_count + np.arange(self.cell_count) % count
            low[: self.cell_count], high[: self.cell_count] = problem.topic_low.ravel(), problem.topic_high.ravel()
        children = np.argsort(parent, kind="stable")
        children = children[np.count_nonzero(parent < 0) :]
        first_child = np.searchsorted(parent[children], np.arange(nodes + 1)).astype(np.int64)
        self.brokers, self.first_root = brokers, first_root
        return Shape.of(
            problem,
            parent=parent,
            first_child=first_child,
            child=children.astype(np.int64),
            low=low,
            high=high,
        )

    def _rebalance(self) -> None:
        """Set what arcs to parents carry, as their prices allow, and every excess."""
        shape, state, problem, count = self.shape, self.state, self.problem, self.problem.group.size
        held = state.now >= 0
        cells = (problem.topic.astype(np.int64)[:, None] * count + state.now)[held]
        inflow = np.bincount(cells, minlength=shape.parent.size).astype(np.int64)
        inflow[self.brokers] += np.where(problem.live, problem.base, 0)
        for part in (slice(0, self.cell_count), self.brokers) if self.per_topic else (self.brokers,):
            parent, low, high = shape.parent[part], shape.low[part], shape.high[part]
            rises = np.sign(state.moves[part] - state.moves[parent])
            carried = np.select([rises > 0, rises < 0], [low, high], np.clip(inflow[part], low, high))
            carried = np.where(parent >= 0, carried, 0)
            state.carried[part] = carried
            state.excess[part] = np.where(parent >= 0, inflow[part] - carried, 0)
            np.add.at(inflow, parent[parent >= 0], carried[parent >= 0])
        state.excess[self.first_root : -1] = inflow[self.first_root : -1] - self.bounds.totals
        state.excess[-1] = problem.factor[problem.kind[problem.kind >= 0]].sum() - cells.size
        assert state.excess.sum() == 0, "every unit is somewhere"

    # --- phases ------------------------------------------------------------------------------------------------------

    def settle(self, leader: Int32Array, level: str) -> NDArray[np.bool_] | None:
        """Send units until no node has an excess; return the nodes reached if some can never be sent, bool[N]."""
        shape, state = self.shape._replace(leader=leader), self.state
        nodes, topic_count = shape.parent.size, self.cell_count // shape.group.size
        price: Int64Array = getattr(state, level)
        partitions = np.empty(state.now.size + shape.kind.size, dtype=np.int32)
        held = Holdings(np.empty(nodes + 1, dtype=np.int64), partitions)
        workspace = _workspace(nodes, topic_count)
        key_count = bucket_count = _KEYS_FIRST
        while True:
            values = np.zeros(6, dtype=np.int64)
            levels, key, key_of = _empty(nodes, self.cell_count, key_count)
            search = Search(levels, key, key_of, values)
            buckets = Buckets(*_empty(bucket_count + 1, bucket_count, self.cell_count, self.cell_count))
            status = settle(shape, state, self.order, price, held, search, buckets, workspace)
            if status != NO_ROOM:
                break
            key_count = max(key_count, 2 * int(values[1] * values[3] * values[5]))
            bucket_count = max(bucket_count, 2 * topic_count * int(values[4]) * shape.room.shape[1])
        assert status != NOTHING_SENT, "a node that lacks units was reached"
        if status == SETTLED:
            return None
        self.raised = workspace.raised
        return np.asarray(search.level >= 0)

    # --- blocks and leaders ------------------------------------------------------------------------------------------

    def split(self, reached: NDArray[np.bool_]) -> None:
        """Split blocks into reached and unreached nodes, and recompute all excesses."""
        state, old = self.state, self.bounds
        cut = self.order * 2 + np.where(np.isin(self.order, np.unique(self.order[reached])), ~reached, 0)
        order = np.unique(cut, return_inverse=True)[1]
        block = np.where(old.block >= 0, order[self.brokers], -1)
        roots = slice(self.first_root, self.first_root + old.totals.size)
        held = state.excess.copy()
        held[roots] = 0
        held[self.brokers] += state.carried[self.brokers]
        totals = np.zeros(int(order.max()) + 1, dtype=np.int64)
        np.add.at(totals, order, held)
        members = count_each(block, totals.size)
        if totals[members == 0].any():
            raise InfeasibleError("a partition has no place")
        kept = np.flatnonzero(members)
        assert kept.size > old.totals.size, "a split makes one block two"
        number = np.full(totals.size, -1, dtype=np.int64)
        number[kept] = np.arange(kept.size)
        self.bounds = Bounds.even(np.where(block >= 0, number[block], -1), totals[kept], self.problem.share)
        self._regrow(order, kept, state.moves + 2 * self.raised)

    def _regrow(self, order: Int64Array, kept: Int64Array, prices: Int64Array) -> None:
        """Build the graph of the new bounds; what a lower block can give to a higher one is nothing."""
        cut = self.first_root
        self.shape = self._graph(self.bounds)
        members = [prices[self.brokers][self.bounds.block == one] for one in range(kept.size)]
        roots = np.array([int(np.median(prices_of)) for prices_of in members], dtype=np.int64)
        moves = np.concatenate([prices[:cut], roots, prices[-1:]])
        self.order = np.concatenate([order[:cut], kept, order[-1:]])
        zeros = [np.zeros(moves.size, dtype=np.int64) for _ in range(3)]
        self.state = State(self.state.now, zeros[0], zeros[1], moves, zeros[2])
        self._rebalance()

    def reconsider(self) -> None:
        """Take former leaders back wherever it costs no move, and set everything's excess anew."""
        take_back_leaders(self.shape, self.state)
        self._rebalance()

    def solution(self) -> Solution:
        """Return what was found, with prices of units at brokers."""
        cells, state = slice(0, self.cell_count), self.state
        topics = (self.cell_count // self.problem.group.size, self.problem.group.size)
        return Solution(
            now=state.now,
            low=self.bounds.low,
            high=self.bounds.high,
            block=self.bounds.block,
            totals=self.bounds.totals,
            move_price=-state.moves[self.brokers],
            leader_price=-state.leads[self.brokers],
            topic_move_price=-state.moves[cells].reshape(topics) if self.per_topic else None,
            topic_leader_price=-state.leads[cells].reshape(topics) if self.per_topic else None,
        )


def _empty(*sizes: int) -> Iterator[Int64Array]:
    """Yield an array of int64 of each size, not filled."""
    return (np.empty(size, dtype=np.int64) for size in sizes)


def _workspace(nodes: int, topic_count: int) -> Workspace:
    queue, way, rows, left, raised, below, highest, lowest = _empty(*[nodes] * 3, topic_count, *[nodes] * 4)
    turns = np.array([0, -1], dtype=np.int64)
    return Workspace(queue, way, rows, left, raised, np.empty(nodes, dtype=np.bool_), below, highest, lowest, turns)
