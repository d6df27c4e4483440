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

    >>> plain = Problem.of_rows([[0], [0], [0]], group=[0, 0])
    >>> solution = solve(plain)
    >>> solution.now.tolist(), solution.low.tolist(), solution.high.tolist()
    ([[1], [0], [0]], [1, 1], [2, 2])

Left out: costs by bytes; bounds on leaders and replicas in one solve, which is no flow.

Source: Frank & Murota, "Decreasing minimization on M-convex sets", Mathematical Programming, 2021, for the blocks;
Ford & Fulkerson's primal-dual method for the cost.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from placement.reassignment.exchange_graph import Buckets, Holdings, Search, Shape, State, hold
from placement.reassignment.exchange_kernel import (
    keep_former,
    push_units,
    search_levels,
    take_back_leaders,
)
from placement.reassignment.problem import Bounds, InfeasibleError, Problem, Solution


def solve(problem: Problem, bounds: Bounds | None = None, *, leaders_last: bool = True) -> Solution:
    """Return the solution of least cost within `bounds`, or the most even one of least cost.

    Raises InfeasibleError when nothing lies within the bounds given, or when a partition has no place at all.
    """
    if problem.factor.max(initial=0) > 1:
        return _solved(problem, bounds, leaders_last)
    # A search reads the partitions of one broker after the other; so they lie side by side in memory.
    order = np.argsort(problem.leader, kind="stable")
    found = _solved(problem.reordered(order), bounds, leaders_last)
    now = np.empty_like(found.now)
    now[order] = found.now
    return attrs.evolve(found, now=now)


def _solved(problem: Problem, bounds: Bounds | None, leaders_last: bool) -> Solution:
    one_block = Bounds.even(np.where(problem.live, 0, -1), np.array([problem.total], dtype=np.int64), problem.share)
    work = Work(problem, one_block if bounds is None else bounds)
    while True:
        reached = work.settle(problem.leader * 0 - 1, "moves")
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
        self.bounds = bounds
        self._rebalance(np.zeros(nodes, dtype=np.int64))

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
        return Shape(
            before=problem.before,
            kind=problem.kind,
            topic=problem.topic,
            leader=problem.leader,
            factor=problem.factor,
            must_count=problem.must.sum(axis=1),
            must=problem.must,
            room=problem.room,
            group=problem.group,
            receives=problem.receives,
            parent=parent,
            first_child=first_child,
            child=children.astype(np.int64),
            low=low,
            high=high,
        )

    def _loads(self) -> Int64Array:
        """Return what each cell holds by itself."""
        now, problem = self.state.now, self.problem
        cells = problem.topic.astype(np.int64)[:, None] * problem.group.size + now
        return np.bincount(cells[now >= 0], minlength=self.cell_count).astype(np.int64)

    def _rebalance(self, sign: Int64Array) -> None:
        """Set what arcs to parents carry, as their prices allow (`sign` of each arc's cost), and every excess."""
        shape, state = self.shape, self.state
        inflow = np.zeros(shape.parent.size, dtype=np.int64)
        inflow[: self.cell_count] = self._loads()
        inflow[self.brokers] += np.where(self.problem.live, self.problem.base, 0)
        layers = [slice(0, self.cell_count), self.brokers] if self.per_topic else [self.brokers]
        for layer in layers:
            low, high, signs = shape.low[layer], shape.high[layer], sign[layer]
            even = np.clip(inflow[layer], low, high)
            carried = np.where(signs > 0, low, np.where(signs < 0, high, even))
            held = shape.parent[layer] >= 0
            state.carried[layer] = np.where(held, carried, 0)
            state.excess[layer] = np.where(held, inflow[layer] - carried, 0)
            np.add.at(inflow, shape.parent[layer][held], carried[held])
        roots = slice(self.first_root, self.first_root + self.bounds.totals.size)
        state.excess[roots] = inflow[roots] - self.bounds.totals
        changing = self.problem.kind >= 0
        wanted = int(self.problem.factor[self.problem.kind[changing]].sum())
        state.excess[-1] = wanted - int(np.count_nonzero(state.now[changing] >= 0))
        assert state.excess.sum() == 0, "every unit is somewhere"

    # --- phases ------------------------------------------------------------------------------------------------------

    def settle(self, leader: Int32Array, level: str) -> NDArray[np.bool_] | None:
        """Send units until no node has an excess; return the nodes reached if some can never be sent, bool[N]."""
        shape, state = self.shape._replace(leader=leader), self.state
        price: Int64Array = getattr(state, level)
        nodes = price.size
        wanted = int(self.problem.factor[self.problem.kind[self.problem.kind >= 0]].sum())
        held = Holdings(np.zeros(nodes + 1, dtype=np.int64), np.empty(wanted + self.problem.kind.size, dtype=np.int32))
        room = [np.empty(nodes, dtype=np.int64) for _ in range(3)]
        left = np.empty(self.cell_count // self.problem.group.size, dtype=np.int64)
        patience, last = 0, -1
        while (state.excess > 0).any():
            hold(shape, state.now, held.start, held.partition)
            search, buckets = self._search()
            if search_levels(shape, state, held, search, buckets, room[0], left):
                search, buckets = self._by_level(search)
                sent = push_units(shape, state, held, search, buckets, *room)
                assert sent > 0, "a node that lacks units was reached"
                last = -1
                continue
            reached = search.level >= 0
            count = int(np.count_nonzero(reached))
            if count != last:
                patience, last = self._patience(price, reached), count
            patience -= 1
            if patience < 0:
                return reached
            price += self._raised(reached)  # In place: the array is the state's own.
        return None

    def _patience(self, price: Int64Array, reached: NDArray[np.bool_]) -> int:
        """Return how often prices can rise before every arc out of the reached nodes must have become tight."""
        most = 0
        for block in np.unique(self.order[reached]).tolist():
            inside = self.order == block
            left = price[inside & ~reached]
            if left.size:
                most = max(most, int(price[inside & reached].max() - left.min()) + 2)
        return most

    def _raised(self, reached: NDArray[np.bool_]) -> Int64Array:
        """Return by how much prices rise: by one for what a block did not reach, and for every block above it."""
        rises = np.zeros(int(self.order.max()) + 2, dtype=np.int64)
        blocks = np.unique(self.order[reached])
        rises[blocks + 1] = 1
        above = np.cumsum(rises)[:-1][self.order]
        stays = np.isin(self.order, blocks) & ~reached
        return np.asarray(above + stays)

    def _values(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return the value of the prices of each cell, the limits of prices, and the distinct values."""
        moves, leads = self.state.moves[: self.cell_count], self.state.leads[: self.cell_count]
        limits = np.array([moves.min(), np.ptp(moves) + 1, leads.min(), np.ptp(leads) + 1, 0], dtype=np.int64)
        value = (moves - limits[0]) * limits[3] + leads - limits[2]
        present = np.zeros(int(limits[1] * limits[3]), dtype=np.bool_)
        present[value] = True
        return value, limits, np.flatnonzero(present)

    def _search(self) -> tuple[Search, Buckets]:
        value, limits, distinct = self._values()
        key_of = np.full((1, int(limits[1] * limits[3])), -1, dtype=np.int64)
        key_of[0, distinct] = np.arange(distinct.size)
        limits[4] = distinct.size
        level = np.empty(self.shape.parent.size, dtype=np.int64)
        return Search(level, key_of[0, value], key_of, limits), self._buckets(distinct.size)

    def _by_level(self, found: Search) -> tuple[Search, Buckets]:
        value, limits, _ = self._values()
        level = found.level[: self.cell_count]
        span = int(limits[1] * limits[3])
        both = level * span + value
        distinct = np.unique(both[level >= 0])
        key_of = np.full((int(found.level.max()) + 1) * span, -1, dtype=np.int64)
        key_of[distinct] = np.arange(distinct.size)
        limits[4] = distinct.size
        key = np.where(level >= 0, key_of[np.maximum(both, 0)], -1)
        return Search(found.level, key, key_of.reshape(-1, span), limits), self._buckets(distinct.size)

    def _buckets(self, key_count: int) -> Buckets:
        topics = self.cell_count // self.problem.group.size
        count = topics * key_count * self.problem.room.shape[1]
        cells = self.cell_count
        return Buckets(
            np.empty(count + 1, dtype=np.int64),
            np.empty(count, dtype=np.int64),
            np.empty(cells, dtype=np.int64),
            np.empty(cells, dtype=np.int64),
        )

    # --- blocks and leaders ------------------------------------------------------------------------------------------

    def split(self, reached: NDArray[np.bool_]) -> None:
        """Make blocks of what each block reached and of what it did not reach, and set everything's excess anew."""
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
        members = np.bincount(block[block >= 0], minlength=totals.size)
        if totals[members == 0].any():
            raise InfeasibleError("a partition has no place")
        kept = np.flatnonzero(members)
        assert kept.size > old.totals.size, "a split makes one block two"
        number = np.full(totals.size, -1, dtype=np.int64)
        number[kept] = np.arange(kept.size)
        self.bounds = Bounds.even(np.where(block >= 0, number[block], -1), totals[kept], self.problem.share)
        self._regrow(order, kept, state.moves + 2 * self._raised(reached))

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
        self._rebalance(self._signs())

    def _signs(self) -> Int64Array:
        """Return the sign of what each arc to a parent costs after the prices of moves."""
        moves, parent = self.state.moves, self.shape.parent
        return np.where(parent >= 0, np.sign(moves - moves[parent]), 0)

    def reconsider(self) -> None:
        """Take former leaders back wherever it costs no move, and set everything's excess anew."""
        take_back_leaders(self.shape, self.state)
        self._rebalance(self._signs())

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
