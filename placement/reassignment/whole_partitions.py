"""Place whole partitions near the places of their parts, and exchange them until few bytes are copied.

What it decides: a placement of whole partitions, given the flow of parts that some partitions, decided before, leave.

How. Each partition chooses one of the sets of brokers that its parts have, the greatest partitions first, each so that
brokers stay nearest to the bytes of the parts; then whole partitions are exchanged until all bands are kept and no
single exchange saves anything (band_kernel.py).

Constraints: the placement may lie outside the bands; it keeps every other rule.

Example: partitions of 5 and 3 bytes on broker 0, which a second broker joins, with bands of 2 to 6 bytes: parts of 2
bytes move, and so the partition of 3 does.

Left out: what else to try where that is not good enough (least_band.py).

Source: ours.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.row_flags import count_in_row
from placement.reassignment.band_kernel import (
    NO_SPREAD,
    Best,
    Loads,
    Sorted,
    Spread,
    repair,
    sort_cells,
    sort_held,
    trim,
)
from placement.reassignment.check_input import bytes_of
from placement.reassignment.exchange import Work, solve
from placement.reassignment.exchange_graph import Shape
from placement.reassignment.parts import Parts
from placement.reassignment.problem import Bounds, InfeasibleError, Problem, Solution
from placement.reassignment.sets_kernel import SETS_MAX, choose_sets, fill_missing

_LEVELS_MAX: Final = 8
_DECIDED_RATIO: Final = 4
_ROUNDS_MAX: Final = 40
_SAVED_LEAST: Final = 1e-5  # Of all copied bytes: a round that saves less is the last.


@attrs.frozen(eq=False, kw_only=True)
class Found:
    """Hold a placement `now` int32[P, V], packed, -1 pads; the bytes of brokers; prices int64[B]; the bytes copied."""

    now: Int32Array
    loads: Int64Array
    price: Int64Array
    copied: int

    def outside(self, low: Int64Array, high: Int64Array) -> int:
        """Return the bytes of all brokers outside their bands."""
        return int(np.maximum(np.maximum(self.loads - high, low - self.loads), 0).sum())


def better(one: Found, other: Found, low: Int64Array, high: Int64Array) -> Found:
    """Return the placement that is nearer to the bands `low` to `high` int64[B], or else copies fewer bytes."""
    return min((one, other), key=lambda found: (found.outside(low, high), found.copied))


@attrs.frozen(eq=False)
class Near:
    """Hold parts and their flow within the bands `low` to `high` int64[B], which are those asked or narrower ones."""

    parts: Parts
    flow: Solution
    low: Int64Array
    high: Int64Array

    @classmethod
    def within(cls, parts: Parts, low: Int64Array, high: Int64Array) -> Near:
        """Return the least moves of parts within bands, or their most even loads where the bands are too narrow."""
        try:
            flow = parts.flow(low, high)
        except InfeasibleError:
            flow = solve(parts.cut, leaders_last=False)
        return cls(parts, flow, low, high)

    def without(self, rows: Int64Array, now: Int32Array) -> Near:
        """Return the parts of the other partitions beside `rows`, whose brokers are in `now` int32[P, V]."""
        held = bytes_of(now[rows], self.parts.sizes[rows], self.low.size)
        return Near.within(self.parts.without(rows, held), self.low, self.high)


def place(near: Near, low: Int64Array, high: Int64Array, decided: tuple[Int64Array, Int32Array] | None = None) -> Found:
    """Return a placement of whole partitions, near parts or beside the partitions `decided` with their brokers."""
    parts, flow = near.parts, near.flow
    problem, sizes = parts.whole, parts.sizes
    shape, now = shape_of(problem, low, high)
    ascending = by_size(problem, sizes)
    order = ascending[::-1].copy()
    if decided is not None:
        rows, sets = decided
        now[rows] = np.take_along_axis(sets, np.argsort(sets < 0, axis=1, kind="stable"), axis=1)
        order = order[~np.isin(order, rows)]
        near = near.without(rows, now)
    _choose(near, shape, now, order)
    loads = Loads(parts.base + bytes_of(now, sizes, low.size), low, high, sizes)
    incomplete = np.count_nonzero(now >= 0, axis=1) < problem.factor[np.maximum(problem.kind, 0)]
    order = ascending[::-1][incomplete[ascending[::-1]]]
    if fill_missing(shape, now, order, loads, (low + high) // 2, flow.move_price) >= 0:
        raise InfeasibleError("a partition has no place")
    exchange_whole(shape, now, loads, ascending, problem)
    return Found(now=now, loads=loads.load, price=flow.move_price, copied=copied_bytes(problem, now, sizes))


def is_new(problem: Problem, now: Int32Array) -> NDArray[np.bool_]:
    """Return which replicas are new, bool[P, V]."""
    fresh = (now >= 0) & (problem.kind >= 0)[:, None]
    for column in range(problem.before.shape[1]):
        fresh &= now != problem.before[:, column : column + 1]
    return np.asarray(fresh)


def copied_bytes(problem: Problem, now: Int32Array, sizes: Int64Array) -> int:
    """Return the bytes of new replicas."""
    return int((sizes * count_in_row(is_new(problem, now))).sum())


def _choose(near: Near, shape: Shape, now: Int32Array, order: Int64Array) -> None:
    """Choose the brokers of all partitions in `now`, the greatest in `order` first.

    The parts of some partitions stand apart. Those, and all that are as great, are decided; then the parts of the rest
    are placed anew beside them.
    """
    sizes, room = near.parts.sizes, np.zeros(SETS_MAX, dtype=np.int64)
    for level in range(_LEVELS_MAX):
        sets, apart = near.parts.apart(near.flow)
        least = int(sizes[apart].max(initial=0)) if level < _LEVELS_MAX - 1 else 0
        least = -(-least // _DECIDED_RATIO)  # The size from which on partitions are decided, 0 where all are.
        chosen = order[sizes[order] >= least]
        error = np.zeros(near.low.size, dtype=np.float64)
        choose_sets(shape, sets, near.parts.start, chosen, sizes, now, error, room)
        order = order[sizes[order] < least]
        if not least or not order.size:
            return
        near = near.without(chosen, now)


def shape_of(problem: Problem, low: Int64Array, high: Int64Array) -> tuple[Shape, Int32Array]:
    """Return the rules as kernels take them, and replicas int32[P, V] that stay where the rules allow it."""
    none = np.zeros_like(problem.topic)
    bare = attrs.evolve(
        problem,
        leader=np.full_like(problem.leader, -1),
        base=np.zeros_like(problem.base),
        topic=none,
        topic_low=None,
        topic_high=None,
    )
    whole = np.array([bare.total], dtype=np.int64)
    work = Work(bare, Bounds(low=low, high=high, block=np.where(problem.live, 0, -1), totals=whole))
    return work.shape, work.state.now


def by_size(problem: Problem, sizes: Int64Array) -> Int64Array:
    """Return the partitions that may change, the smallest first."""
    ascending = np.argsort(sizes, kind="stable").astype(np.int64)
    return ascending[problem.kind[ascending] >= 0]


def room_for(now: Int32Array, brokers: int) -> Sorted:
    """Return room for the partitions of each broker."""
    return Sorted(np.zeros(brokers + 1, dtype=np.int64), np.empty(int(np.count_nonzero(now >= 0)), dtype=np.int32))


def spread_of(problem: Problem) -> Spread:
    """Return the bounds by topic as kernels take them, and room to list and count partitions; none without bounds."""
    if problem.topic_low is None or problem.topic_high is None:
        return NO_SPREAD
    low, count = problem.topic_low, int(problem.factor[problem.kind[problem.kind >= 0]].sum())
    start, row = np.zeros(low.size + 1, dtype=np.int64), np.empty(count, dtype=np.int32)
    return Spread(problem.topic, np.zeros_like(low), low, problem.topic_high, start, row)


def list_held(now: Int32Array, ascending: Int64Array, held: Sorted, loads: Loads) -> None:
    """List the partitions of each broker, and of each topic on it where topics have bounds."""
    sort_held(now, ascending, held)
    if loads.spread.held.size:
        sort_cells(now, ascending, loads.spread)


def exchange_whole(shape: Shape, now: Int32Array, loads: Loads, ascending: Int64Array, problem: Problem) -> None:
    """Exchange partitions until bands are kept and nothing is saved any more."""
    brokers = loads.load.size
    held = room_for(now, brokers)
    best = Best(np.zeros(1, dtype=np.float64), np.zeros(2, dtype=np.int64))
    tried = np.zeros(brokers, dtype=np.int64)
    copied = float(copied_bytes(problem, now, loads.size))
    least = max(int(copied * _SAVED_LEAST / max(brokers, 1)), 1)
    for _ in range(_ROUNDS_MAX):
        list_held(now, ascending, held, loads)
        if repair(shape, now, loads, held, best, tried):
            continue
        saved = trim(shape, now, loads, held, best, tried, least)
        if saved <= copied * _SAVED_LEAST:
            break
