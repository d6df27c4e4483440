"""Find a placement that copies few bytes and keeps each broker's bytes within a band, and prices that bound any other.

What it decides: which brokers hold each partition, so that each broker's bytes lie within its band and few bytes are
copied. The least is NP-hard (partition), so the answer comes with a lower bound, and the gap between both is known.

How. Every partition is cut into parts of about equal size, as many as its bytes ask for. Parts may stand apart from
each other, so the least moves of parts within the bands are a flow, which exchange.py solves exactly, with prices of
brokers. These prices bound what whole partitions need (certificate.py); the bound holds for any prices, so that nothing
is lost but sharpness where parts do not fit sizes. Then each partition chooses one of the sets of brokers that its
parts have, the greatest partitions first, each so that brokers stay nearest to the bytes of the parts; and whole
partitions are exchanged until all bands are kept and no single exchange saves anything (band_kernel.py).

The reachable means come from the same parts: the most even loads that exchange.py finds. Where partitions spread over
all brokers by their shares break no rule, one mean serves all.

Constraints: at most `PART_COUNT_MAX` parts besides one for each partition. A placement may exist where none is found.

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
    round_sizes,
    sort_held,
    trim,
)
from placement.reassignment.exchange import Work, solve
from placement.reassignment.exchange_graph import Shape
from placement.reassignment.problem import Bounds, InfeasibleError, Problem, Solution

PART_COUNT_MAX: Final = 300_000
_PARTS_PER_PARTITION: Final = 64
_PART_COUNT_MIN: Final = 4_000
_LEVELS_MAX: Final = 8
_DECIDED_RATIO: Final = 4
_MEAN_MIN: Final = 4_000  # Parts of a broker, so that floors and ceilings of means are near them.
_ROUNDS_MAX: Final = 40
_SAVED_LEAST: Final = 1e-5  # Of all copied bytes: a round that saves less is the last.


@attrs.frozen(eq=False, kw_only=True)
class Parts:
    """Hold a problem with its partitions cut into parts: `whole`, `cut`, the bytes of a part, and whose each part is.

    `sizes` int64[P] are the bytes of each partition; `base` int64[B] those of partitions that may not change; `start`
    int64[P + 1] are the parts of each partition.
    """

    whole: Problem
    cut: Problem
    sizes: Int64Array
    base: Int64Array
    unit: int
    start: Int64Array

    @classmethod
    def of(cls, whole: Problem, sizes: Int64Array, base: Int64Array, share: Int64Array | None = None) -> Parts:
        """Return the problem with parts of about equal bytes; `share` int64[B] are the capacities of brokers."""
        chosen = whole.kind >= 0
        total = int(sizes[chosen].sum())
        partitions = int(np.count_nonzero(chosen))
        most = min(max(_PARTS_PER_PARTITION * partitions, _PART_COUNT_MIN), PART_COUNT_MAX + partitions)
        divisor = max(int(np.gcd.reduce(sizes[chosen])) if partitions else 1, 1)
        unit = divisor * max(-(-total // (most * divisor)), 1)
        count = np.zeros(sizes.size, dtype=np.int64)
        round_sizes(whole.before, whole.kind, sizes, unit, count, np.zeros(whole.group.size, dtype=np.int64))
        rows = np.repeat(np.arange(sizes.size), count)
        cut = attrs.evolve(
            whole,
            before=whole.before[rows],
            kind=whole.kind[rows],
            leader=np.full(rows.size, -1, dtype=np.int32),
            base=(base + unit // 2) // unit,
            topic=np.zeros(rows.size, dtype=np.int32),
            share=share,
        )
        start = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        return cls(whole=whole, cut=cut, sizes=sizes, base=base, unit=unit, start=start)

    def without(self, rows: Int64Array, held: Int64Array) -> Parts:
        """Return the problem without partitions that are decided, which `held` int64[B] are the bytes of."""
        kind = self.whole.kind.copy()
        kind[rows] = -1
        return Parts.of(attrs.evolve(self.whole, kind=kind), self.sizes, self.base + held, self.cut.share)

    def blocks(self) -> Int64Array:
        """Return the block of each broker, int64[B], the fullest first, -1 for brokers that may hold nothing."""
        if not self.base[self.cut.live].any() and _is_one_block(self.cut):
            return np.where(self.cut.live, 0, -1)
        return solve(self._finer(), leaders_last=False).block

    def _finer(self) -> Problem:
        """Return the cut problem with so many parts that the mean of brokers is no small number of them."""
        cut = self.cut
        mean = cut.total // max(int(np.count_nonzero(cut.live)), 1)
        times = max(-(-_MEAN_MIN // max(mean, 1)), 1)
        rows = np.repeat(np.arange(cut.kind.size), times)
        return attrs.evolve(
            cut,
            before=cut.before[rows],
            kind=cut.kind[rows],
            leader=cut.leader[rows],
            topic=cut.topic[rows],
            base=(self.base * times + self.unit // 2) // self.unit,
        )


@attrs.frozen(eq=False, kw_only=True)
class Found:
    """Hold a placement `now` int32[P, V], packed, -1 pads; the bytes of brokers; and prices int64[B]."""

    now: Int32Array
    loads: Int64Array
    price: Int64Array


def _is_one_block(problem: Problem) -> bool:
    """Return whether every partition, spread over all live brokers by their shares, keeps the rules."""
    live = problem.live
    share = np.ones(live.size, dtype=np.int64) if problem.share is None else problem.share
    if not problem.receives[live].all() or not live.any():
        return False
    share, group = share[live].astype(np.float64), problem.group[live]
    whole = share.sum()
    of_group = np.bincount(group, weights=share, minlength=problem.room.shape[1])
    spread = problem.factor[:, None] * of_group / whole
    slack = 1e-9
    fits = (spread >= problem.must - slack) & (spread <= np.maximum(problem.room, 0) + slack)
    return bool(fits.all()) and float(problem.factor.max(initial=0)) * share.max() <= whole * (1 + slack)


def solve_band(parts: Parts, low: Int64Array, high: Int64Array) -> Found:
    """Return a placement that copies few bytes, within `low` to `high` int64[B] bytes of brokers if one is found.

    Raises InfeasibleError when a partition has no place.
    """
    problem, sizes = parts.whole, parts.sizes
    bounds = Bounds(low=low, high=high, block=np.where(problem.live, 0, -1), totals=np.array([0], dtype=np.int64))
    bare = attrs.evolve(problem, leader=np.full_like(problem.leader, -1), base=np.zeros_like(problem.base))
    shape, now = _shape(bare, bounds)
    ascending = np.argsort(sizes, kind="stable").astype(np.int64)
    ascending = ascending[problem.kind[ascending] >= 0]
    price = _choose(parts, shape, now, ascending[::-1].copy(), low, high)
    loads = Loads(parts.base + _bytes_of(now, sizes, low.size), low, high, sizes)
    incomplete = np.count_nonzero(now >= 0, axis=1) < problem.factor[np.maximum(problem.kind, 0)]
    order = ascending[::-1][incomplete[ascending[::-1]]]
    if fill_missing(shape, now, order, loads, (low + high) // 2, price) >= 0:
        raise InfeasibleError("a partition has no place")
    _exchange(shape, now, loads, ascending, problem)
    return Found(now=now, loads=loads.load, price=price)


def _choose(
    parts: Parts, shape: Shape, now: Int32Array, order: Int64Array, low: Int64Array, high: Int64Array
) -> Int64Array:
    """Choose the brokers of all partitions in `now`, the greatest in `order` first; return the prices of the parts.

    The parts of some partitions stand apart. Those, and all that are as great, are decided; then the parts of the rest
    are placed anew beside them.
    """
    sizes, room = parts.sizes, np.zeros(SETS_MAX, dtype=np.int64)
    price: Int64Array | None = None
    for level in range(_LEVELS_MAX):
        flow = _flow(parts, low, high)
        price = flow.move_price if price is None else price
        sets = np.sort(flow.now, axis=1)
        least = _least_decided(parts, sets) if level < _LEVELS_MAX - 1 else 0
        chosen = order[sizes[order] >= least]
        choose_sets(shape, sets, parts.start, chosen, sizes, now, np.zeros(low.size, dtype=np.float64), room)
        order = order[sizes[order] < least]
        if not least or not order.size:
            break
        parts = parts.without(chosen, _bytes_of(now[chosen], sizes[chosen], low.size))
    assert price is not None
    return price


def _least_decided(parts: Parts, sets: Int32Array) -> int:
    """Return the size from which on partitions are decided, 0 where all are."""
    owner = np.repeat(np.arange(parts.sizes.size), np.diff(parts.start))
    apart = (sets != sets[parts.start[owner]]).any(axis=1)
    greatest = int(parts.sizes[owner[apart]].max(initial=0))
    return -(-greatest // _DECIDED_RATIO)


def _flow(parts: Parts, low: Int64Array, high: Int64Array) -> Solution:
    """Return the least moves of parts within bands, which are made wider until parts fit."""
    problem, unit = parts.cut, parts.unit
    least, most = low // unit, -(-high // unit)
    one = np.where(problem.live, 0, -1)
    for wider in (0, 1, 2, 4, 8, 16, 64, 256):
        bounds = Bounds(
            low=np.where(problem.live, np.maximum(least - wider, 0), 0),
            high=np.where(problem.live, most + wider, 0),
            block=one,
            totals=np.array([problem.total], dtype=np.int64),
        )
        try:
            return solve(problem, bounds, leaders_last=False)
        except InfeasibleError:
            continue
    return solve(problem, leaders_last=False)


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
    fresh = (now >= 0) & (problem.kind >= 0)[:, None]
    for column in range(problem.before.shape[1]):
        fresh &= now != problem.before[:, column : column + 1]
    copied = float((loads.size * np.count_nonzero(fresh, axis=1)).sum())
    least = max(int(copied * _SAVED_LEAST / max(brokers, 1)), 1)
    for _ in range(_ROUNDS_MAX):
        sort_held(now, ascending, held)
        if repair(shape, now, loads, held, best, tried):
            continue
        saved = trim(shape, now, loads, held, best, tried, least)
        if saved <= copied * _SAVED_LEAST:
            break
