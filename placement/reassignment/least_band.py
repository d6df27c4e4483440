"""Find a placement that copies few bytes and keeps each broker's bytes within a band, and prices that bound any other.

What it decides: which brokers hold each partition, so that each broker's bytes lie within its band and few bytes are
copied. The least is NP-hard (partition), so the answer comes with a lower bound, and the gap between both is known.

How. Every partition is cut into parts of about equal size (parts.py), whose least moves within the bands are a flow
with prices of brokers. These prices bound what whole partitions need (certificate.py); the bound holds for any prices,
so that nothing is lost but sharpness where parts do not fit sizes. Then each partition chooses one of the sets of
brokers that its parts have, the greatest partitions first, each so that brokers stay nearest to the bytes of the parts;
and whole partitions are exchanged until all bands are kept and no single exchange saves anything (band_kernel.py).
Where that copies noticeably more than parts do, some partitions are large: those are decided one by one first
(large_partitions.py), and the better of both placements is taken. Where exchanges are stuck outside the bands, all
brokers of a rack may be full: then parts aim at narrower bands, and exchanges take back what need not move.

Constraints: a placement may exist where none is found.

Example: partitions of 5 and 3 bytes on broker 0, which a second broker joins, with bands of 2 to 6 bytes:

    >>> import numpy as np
    >>> plain = Problem.of_rows([[0], [0]], group=[0, 0])
    >>> band = np.array([2, 2]), np.array([6, 6])
    >>> found = solve_band(Parts.of(plain, np.array([5, 3]), np.zeros(2, dtype=np.int64)), *band)
    >>> found.now.tolist(), found.loads.tolist()
    ([[0], [1]], [5, 3])

Left out: fewest replicas or lost leaders among placements that copy as many bytes.

Source: ours.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.reassignment.band_kernel import (
    SETS_MAX,
    Best,
    Loads,
    Sorted,
    choose_sets,
    fill_missing,
    repair,
    sort_held,
    trim,
)
from placement.reassignment.exchange import Work, solve
from placement.reassignment.exchange_graph import Shape
from placement.reassignment.large_partitions import decide_large
from placement.reassignment.parts import Parts
from placement.reassignment.problem import Bounds, InfeasibleError, Problem, Solution

_LEVELS_MAX: Final = 8
_DECIDED_RATIO: Final = 4
_ABOVE_FLOW_MAX: Final = 1.002  # Of the bytes that parts copy; what copies more is searched for longer.
_MARGINS: Final = (32, 8, 3)
"""Parts of the bands' width that are left free at either end, one after the other, where exchanges are stuck."""

_ROUNDS_MAX: Final = 40
_SAVED_LEAST: Final = 1e-5  # Of all copied bytes: a round that saves less is the last.


@attrs.frozen(eq=False, kw_only=True)
class Found:
    """Hold a placement `now` int32[P, V], packed, -1 pads; the bytes of brokers; prices int64[B]; the bytes copied."""

    now: Int32Array
    loads: Int64Array
    price: Int64Array
    copied: int


def solve_band(parts: Parts, low: Int64Array, high: Int64Array) -> Found:
    """Return a placement that copies few bytes, within `low` to `high` int64[B] bytes of brokers if one is found.

    Raises InfeasibleError when a partition has no place.
    """
    near = _Near.within(parts, low, high)
    first = _place(near, low, high)
    if not _outside(first, low, high) and first.copied <= parts.copied_bytes(near.flow) * _ABOVE_FLOW_MAX:
        return first
    found = [first]
    rows, sets = decide_large(parts, low, high)
    if rows.size:
        found.append(_place(near, low, high, (rows, sets)))
    for margin in _MARGINS:  # Where a rack is full, no broker takes what a whole partition is more than its parts.
        if any(not _outside(one, low, high) for one in found):
            break
        free = (high - low) // margin
        inner = _place(_Near.within(parts, low + free, high - free), low, high)
        found.append(attrs.evolve(inner, price=first.price))
    return min(found, key=lambda one: (_outside(one, low, high), one.copied))


@attrs.frozen(eq=False)
class _Near:
    """Hold parts and their flow within the bands `low` to `high` int64[B], which are those asked or narrower ones."""

    parts: Parts
    flow: Solution
    low: Int64Array
    high: Int64Array

    @classmethod
    def within(cls, parts: Parts, low: Int64Array, high: Int64Array) -> _Near:
        """Return the least moves of parts within bands, or their most even loads where the bands are too narrow."""
        try:
            flow = parts.flow(low, high)
        except InfeasibleError:
            flow = solve(parts.cut, leaders_last=False)
        return cls(parts, flow, low, high)

    def without(self, rows: Int64Array, now: Int32Array) -> _Near:
        """Return the parts of the other partitions beside `rows`, whose brokers are in `now` int32[P, V]."""
        held = _bytes_of(now[rows], self.parts.sizes[rows], self.low.size)
        return _Near.within(self.parts.without(rows, held), self.low, self.high)


def _outside(found: Found, low: Int64Array, high: Int64Array) -> int:
    """Return the bytes of all brokers outside their bands."""
    return int(np.maximum(np.maximum(found.loads - high, low - found.loads), 0).sum())


def _place(
    near: _Near, low: Int64Array, high: Int64Array, decided: tuple[Int64Array, Int32Array] | None = None
) -> Found:
    """Return a placement of whole partitions, near parts or beside the partitions `decided` with their brokers."""
    parts, flow = near.parts, near.flow
    problem, sizes = parts.whole, parts.sizes
    bounds = Bounds(low=low, high=high, block=np.where(problem.live, 0, -1), totals=np.array([0], dtype=np.int64))
    bare = attrs.evolve(problem, leader=np.full_like(problem.leader, -1), base=np.zeros_like(problem.base))
    shape, now = _shape(bare, bounds)
    ascending = np.argsort(sizes, kind="stable").astype(np.int64)
    ascending = ascending[problem.kind[ascending] >= 0]
    order = ascending[::-1].copy()
    if decided is not None:
        rows, sets = decided
        now[rows] = np.take_along_axis(sets, np.argsort(sets < 0, axis=1, kind="stable"), axis=1)
        order = order[~np.isin(order, rows)]
        near = near.without(rows, now)
    _choose(near, shape, now, order)
    loads = Loads(parts.base + _bytes_of(now, sizes, low.size), low, high, sizes)
    incomplete = np.count_nonzero(now >= 0, axis=1) < problem.factor[np.maximum(problem.kind, 0)]
    order = ascending[::-1][incomplete[ascending[::-1]]]
    if fill_missing(shape, now, order, loads, (low + high) // 2, flow.move_price) >= 0:
        raise InfeasibleError("a partition has no place")
    _exchange(shape, now, loads, ascending, problem)
    return Found(now=now, loads=loads.load, price=flow.move_price, copied=_copied(problem, now, sizes))


def _copied(problem: Problem, now: Int32Array, sizes: Int64Array) -> int:
    """Return the bytes of new replicas."""
    fresh = (now >= 0) & (problem.kind >= 0)[:, None]
    for column in range(problem.before.shape[1]):
        fresh &= now != problem.before[:, column : column + 1]
    return int((sizes * np.count_nonzero(fresh, axis=1)).sum())


def _choose(near: _Near, shape: Shape, now: Int32Array, order: Int64Array) -> None:
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


def _shape(problem: Problem, bounds: Bounds) -> tuple[Shape, Int32Array]:
    work = Work(problem, attrs.evolve(bounds, totals=np.array([problem.total], dtype=np.int64)))
    return work.shape, work.state.now


def _bytes_of(now: Int32Array, sizes: Int64Array, count: int) -> Int64Array:
    """Return the bytes of each broker, exactly: sums of float64 would round."""
    loads = np.zeros(count + 1, dtype=np.int64)
    for column in range(now.shape[1]):
        np.add.at(loads, now[:, column], sizes)
    return loads[:count]


def _exchange(shape: Shape, now: Int32Array, loads: Loads, ascending: Int64Array, problem: Problem) -> None:
    """Exchange partitions until bands are kept and nothing is saved any more."""
    brokers = loads.load.size
    held = Sorted(np.zeros(brokers + 1, dtype=np.int64), np.empty(int(np.count_nonzero(now >= 0)), dtype=np.int32))
    best = Best(np.zeros(1, dtype=np.float64), np.zeros(2, dtype=np.int64))
    tried = np.zeros(brokers, dtype=np.int64)
    copied = float(_copied(problem, now, loads.size))
    least = max(int(copied * _SAVED_LEAST / max(brokers, 1)), 1)
    for _ in range(_ROUNDS_MAX):
        sort_held(now, ascending, held)
        if repair(shape, now, loads, held, best, tried):
            continue
        saved = trim(shape, now, loads, held, best, tried, least)
        if saved <= copied * _SAVED_LEAST:
            break
