"""Decide the brokers of the largest partitions one after the other, each by what the rest then costs.

What it decides: which brokers hold the partitions that are large beside what a plan copies. A broker that receives one
must often give others away, which parts of partitions (parts.py) do not see: they spread a large one over many.

How. Of the partitions whose parts stand apart, the largest is put on each set of brokers that its parts have, the parts
of all others are placed anew beside it, and the set with the fewest copied bytes is kept; then the next one, until none
that is large stands apart. Afterwards one, two and three of those decided, which share a broker, are taken back
and decided anew with the others where they are, as long as that saves bytes. At first as many large partitions as can
stay where they are at next to no cost may be left there (staying.py); these are not taken back.

Constraints: the work is bounded by the number of parts placed, so that the same input gives the same plan everywhere.

Example: of partitions of 6, 4, 3 and 1 bytes on broker 0, which a second broker joins, 7 bytes are to move: 6 and 1, or
4 and 3.

    >>> import numpy as np
    >>> from placement.reassignment.problem import Problem
    >>> plain = Problem.of_rows([[0]] * 4, group=[0, 0])
    >>> parts = Parts.of(plain, np.array([6, 4, 3, 1]), np.zeros(2, dtype=np.int64))
    >>> rows, sets = decide_large(parts, np.array([7, 7]), np.array([7, 7]))
    >>> int(parts.sizes[rows[sets[:, 0] == 1]].sum()) <= 7
    True

Left out: a proof that no other decision is better.

Source: ours; the search is a dive with repair, as solvers of mixed integer programs do.
"""

from __future__ import annotations

import itertools
from typing import Final, TypeAlias

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.reassignment.parts import Parts
from placement.reassignment.problem import InfeasibleError, Solution
from placement.reassignment.staying import keep_largest, staying

_LARGE_LEAST: Final = 0.005  # Of the copied bytes; what is smaller finds a place later.
_SAVED_LEAST: Final = 0.0005  # Of the copied bytes: a change that saves less is not worth its search.
_KEPT_LEAST: Final = 0.0005  # Of the copied bytes: a partition as small as that may move.
_KEPT_MORE_MAX: Final = 0.001  # Of the copied bytes, which all that stay may cost together.
_PARTS_PLACED_MAX: Final = 5_000_000  # All told: 500 flows of 10,000 parts, about a second of CPU.
_PART_COUNT_MIN: Final = 10_000
_PARTS_PER_BROKER: Final = 100
_TOGETHER_MAX: Final = 3
_FAR: Final = 1 << 62

Decided: TypeAlias = dict[int, Int32Array]
"""The brokers of each partition that is decided, sorted, -1 first where there are fewer."""


def decide_large(
    parts: Parts, low: Int64Array, high: Int64Array, *, keeping: bool = False
) -> tuple[Int64Array, Int32Array]:
    """Return large partitions, int64[N], and their brokers, int32[N, V], so that few bytes are copied in all.

    `low` to `high` int64[B] are the bands of brokers. With `keeping` what can stay at next to no cost stays.
    """
    search = _Search(parts, low, high)
    kept = search.keep() if keeping else {}
    value, decided = search.descend(kept, _FAR)
    count = 1
    while count <= _TOGETHER_MAX and value < _FAR and value > search.first * (1 + _SAVED_LEAST):
        better = search.improve(value, decided, count)
        if better is None:
            count += 1
            continue
        value, decided = better
        count = 1
    rows = np.array(sorted(decided), dtype=np.int64)
    width = parts.whole.factor.max(initial=1)
    return rows, np.array([decided[row] for row in rows.tolist()], dtype=np.int32).reshape(rows.size, width)


@attrs.frozen(eq=False)
class _Placed:
    """Hold the parts beside decided partitions, their flow, None where there is none, and the bytes of both."""

    parts: Parts
    flow: Solution | None
    copied: int


class _Search:
    """Hold the state of one search: the problem, the work left, and the bytes of a flow where nothing is decided."""

    def __init__(self, parts: Parts, low: Int64Array, high: Int64Array) -> None:
        self.whole, self.low, self.high = parts, low, high
        self.count_max = max(_PART_COUNT_MIN, _PARTS_PER_BROKER * low.size)
        self.left = _PARTS_PLACED_MAX
        self.first = self.place({}).copied
        self.least = self.first * _LARGE_LEAST
        self.kept: Decided = {}

    def keep(self) -> Decided:
        """Return the partitions that stay where they are, as those decided before all others."""
        limit, width = self.first * (1 + _KEPT_MORE_MAX), int(self.whole.whole.factor.max(initial=1))
        rows = staying(self.whole.whole, self.whole.sizes, int(self.first * _KEPT_LEAST))

        def where_it_is(row: int) -> Int32Array:
            return np.sort(self.whole.whole.before[row])[-width:]

        def costs_nothing(some: Int64Array) -> bool:
            return self.left > 0 and self.place({row: where_it_is(row) for row in some.tolist()}).copied <= limit

        self.kept = {row: where_it_is(row) for row in keep_largest(rows, costs_nothing).tolist()}
        return self.kept

    def place(self, decided: Decided) -> _Placed:
        """Return the flow of parts beside decided partitions."""
        rows = np.array(sorted(decided), dtype=np.int64)
        sizes, before = self.whole.sizes, self.whole.whole.before
        held, fixed = np.zeros(self.low.size, dtype=np.int64), 0
        for row in rows.tolist():
            brokers = decided[row][decided[row] >= 0]
            held[brokers] += sizes[row]
            fixed += int(sizes[row]) * int(np.count_nonzero(~np.isin(brokers, before[row])))
        parts = self.whole.without(rows, held, self.count_max)
        self.left -= max(int(parts.start[-1]), 1)
        try:
            flow = parts.flow(self.low, self.high, widenings=(1,))
        except InfeasibleError:
            return _Placed(parts, None, _FAR)
        return _Placed(parts, flow, fixed + parts.copied_bytes(flow))

    def descend(self, decided: Decided, limit: int) -> tuple[int, Decided]:
        """Decide what is large and stands apart; return the bytes, or too many where they come to `limit`."""
        placed = self.place(decided)
        while placed.flow is not None and placed.copied < limit and self.left > 0:
            sets, apart = placed.parts.apart(placed.flow)
            row = int(apart[np.argmax(self.whole.sizes[apart])]) if apart.size else -1
            if row < 0 or self.whole.sizes[row] < self.least:
                return placed.copied, decided
            start = placed.parts.start
            choices = [decided | {row: each} for each in np.unique(sets[start[row] : start[row + 1]], axis=0)]
            found = [self.place(each) for each in choices]
            best = min(range(len(found)), key=lambda place: found[place].copied)
            placed, decided = found[best], choices[best]
        return _FAR, decided

    def improve(self, value: int, decided: Decided, count: int) -> tuple[int, Decided] | None:
        """Take `count` partitions that share a broker back and decide them anew; None where nothing is saved."""
        limit = value - int(value * _SAVED_LEAST)
        free = [row for row in decided if row not in self.kept]
        for rows in itertools.combinations(sorted(free, key=lambda row: -int(self.whole.sizes[row])), count):
            if self.left <= 0:
                return None
            known = [self._brokers(decided, row) for row in rows]
            if not all(known[0] & other for other in known[1:]):
                continue
            found = self.descend({row: held for row, held in decided.items() if row not in rows}, limit)
            if found[0] < limit:
                return found
        return None

    def _brokers(self, decided: Decided, row: int) -> set[int]:
        return {int(one) for one in (*decided[row], *self.whole.whole.before[row]) if one >= 0}
