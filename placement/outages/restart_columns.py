"""Find the best fractional schedule of restarts, whose prices bound every schedule from below.

What it decides: weights for `restart_check.lower_bound`: the prices of a linear program, which asks for as few batches
as possible, in fractions, that hold each broker once.

Constraints: no chance and no clock: pivots, columns and comparisons are bounded and numbers drawn from a fixed seed, so
that equal input gives equal weights.

How: the columns of the program are batches. It is solved over a few of them; a tabu search finds batches that weigh
more than 1 at its prices, which become columns too (restart_columns_kernel.py). Where it finds none, the heaviest batch
is found exactly (`restart_check.heaviest`): it is one more column, or the prices are the best. Whatever the prices are,
they prove a bound; the search ends when it is the value of the program rounded up, as no prices prove more.

Source: Mehrotra & Trick, "A column generation approach for graph coloring", INFORMS Journal on Computing, 1996.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.outages.restart_budget import Limits
from placement.outages.restart_check import STEPS_MAX as CHECKED_STEPS_MAX
from placement.outages.restart_check import Conflicts, heaviest
from placement.outages.restart_columns_kernel import FloatArray, enter_columns, find_heavy

WEIGHT_SCALE: Final = 1_000_000
PIVOTS_MAX: Final = 70_000  # About four seconds for 200 brokers.
STEPS_MAX: Final = 400_000_000  # Comparisons for all exact searches, about two seconds.
RIGHT_SIDE_STEP: Final = 1e-5  # Of 1e-7, 190 brokers took twice the pivots.
SEARCHES: Final = 3
TURNS: Final = 200
TURNS_LONG: Final = 5_000  # Of every third broker, where the shorter searches find nothing: a fifth of a second.
LONG_SEARCHES_MAX: Final = 12
COLUMNS_A_ROUND: Final = 10
_FOUND_MAX: Final = 60
_VALUE_EPSILON: Final = 1e-4  # The right sides are not quite 1, and prices are rounded down.


@attrs.frozen(kw_only=True, eq=False)
class Fractional:
    """Hold the `weights` that prove most, the number of batches that they prove, and what the program came to.

    `value` is that of the program over the `batches` that it knows, after so many `pivots`.
    """

    weights: Int64Array
    bound: int
    value: float
    batches: tuple[tuple[int, ...], ...]
    pivots: int


def best_fractional(limits: Limits, conflicts: Conflicts, schedule: Sequence[Sequence[int]], target: int) -> Fractional:
    """Return the best fractional schedule, with its prices, scaled; stop where they prove `target` batches.

    `schedule` is where the search begins.
    """
    program = Program(limits.brokers.size)
    program.add(tuple(batch) for batch in schedule)
    best, proven, steps, seed, long_searches = np.ones(limits.brokers.size, dtype=np.int64), 0, 0, 0, 0
    while steps <= STEPS_MAX:
        program.solve()
        weights = np.maximum(np.floor(program.prices * WEIGHT_SCALE), 0).astype(np.int64)
        if program.pivots < PIVOTS_MAX:
            if any(
                program.add(heavy_batches(conflicts, limits.batch_max, weights, seed, many=many))
                for many in (False, True)
            ):
                seed += SEARCHES
                continue
            long_searches += 1
            if long_searches <= LONG_SEARCHES_MAX and program.add(
                heavy_batches(conflicts, limits.batch_max, weights, seed, many=True, turns=TURNS_LONG)
            ):
                continue
        claimed = min(target, math.ceil(program.value - _VALUE_EPSILON))
        least = (int(weights.sum()) - 1) // max(claimed - 1, 1)
        batch, weight, spent = heaviest(conflicts, limits.batch_max, weights, CHECKED_STEPS_MAX, least=least)
        steps += spent
        if spent <= CHECKED_STEPS_MAX and weight:
            bound = -(-int(weights.sum()) // weight)
            if bound > proven:
                best, proven = weights, bound
        is_best = not batch.size or proven >= claimed
        if is_best or program.pivots >= PIVOTS_MAX or not program.add([tuple(batch.tolist())]):
            break
    return Fractional(
        weights=best, bound=proven, value=program.value, batches=tuple(program.batches), pivots=program.pivots
    )


def heavy_batches(
    conflicts: Conflicts, batch_max: int, weights: Int64Array, seed: int, *, many: bool = False, turns: int = TURNS
) -> list[tuple[int, ...]]:
    """Return the heaviest batches found that weigh more than 1, scaled; another `seed` begins at other brokers.

    With `many`, searches begin at every third broker.
    """
    count = weights.size
    tables = (conflicts.clash, conflicts.hyperedge_of, conflicts.budget)
    least = WEIGHT_SCALE + WEIGHT_SCALE // 100_000 + count
    weight_of: dict[tuple[int, ...], int] = {}
    starts = range(seed % 3, count, 3) if many else [-1, *((seed + search) % count for search in range(1, SEARCHES))]
    for start in starts:
        found = np.zeros((_FOUND_MAX, count), dtype=np.uint8)
        kept = int(find_heavy(tables, batch_max, weights, least, turns, start, found))
        for row in found[:kept]:
            batch = np.flatnonzero(row)
            weight_of[tuple(batch.tolist())] = int(weights[batch].sum())
    return sorted(weight_of, key=lambda batch: (-weight_of[batch], batch))[:COLUMNS_A_ROUND]


class Program:
    """Hold the program over the batches known so far, and its best fractional schedule.

    It begins with one batch for each broker. Right sides of slightly more than 1, all different, keep the simplex
    method from going round in circles; they do not change which prices are allowed.
    """

    def __init__(self, count: int, *, pivots_max: int = PIVOTS_MAX) -> None:
        self._pivots_max = pivots_max
        self._inverse: FloatArray = np.eye(count, dtype=np.float64)
        self._values: FloatArray = 1 + np.arange(1, count + 1, dtype=np.float64) * RIGHT_SIDE_STEP
        self._columns: Int32Array = np.full((0, 1), -1, dtype=np.int32)
        self._known: set[tuple[int, ...]] = set()
        self.prices: FloatArray = np.ones(count, dtype=np.float64)
        self.pivots = 0

    @property
    def value(self) -> float:
        """Return the number of batches, in fractions: the sum of the prices."""
        return float(self.prices.sum())

    @property
    def is_spent(self) -> bool:
        """Return whether all pivots are spent, so that the prices may not be the best ones."""
        return self.pivots >= self._pivots_max

    @property
    def batches(self) -> list[tuple[int, ...]]:
        """Return the batches known so far, in the order in which they were added."""
        return [tuple(row[row >= 0].tolist()) for row in self._columns]

    def together(self) -> FloatArray:
        """Return for each two brokers how much of the best fractional schedule has both in a batch, float64[N, N]."""
        basis = np.rint(np.linalg.inv(self._inverse))
        batches = basis[:, (basis >= 0).all(axis=0)]
        return np.asarray((batches * self._values[(basis >= 0).all(axis=0)]) @ batches.T)

    def add(self, batches: Iterable[tuple[int, ...]]) -> bool:
        """Add the batches that are not known yet as columns; return whether there was one."""
        fresh = [batch for batch in batches if batch not in self._known]
        self._known.update(fresh)
        width = max([self._columns.shape[1], *map(len, fresh)])
        columns = np.full((self._columns.shape[0] + len(fresh), width), -1, dtype=np.int32)
        columns[: self._columns.shape[0], : self._columns.shape[1]] = self._columns
        for row, batch in enumerate(fresh, start=self._columns.shape[0]):
            columns[row, : len(batch)] = batch
        self._columns = columns
        return bool(fresh)

    def solve(self) -> None:
        """Bring the prices to the best ones for the batches known so far."""
        tables = (self._inverse, self._values, self.prices, self._columns)
        self.pivots += int(enter_columns(*tables, self._pivots_max - self.pivots))
