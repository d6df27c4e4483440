"""Hold the program over batches of restarts, and look for batches that improve it.

What it decides: the prices of the brokers in the best fractional schedule over the batches known so far, and which
batches are heavier than 1 at some prices. restart_prices.py says what for.

Constraints: no chance and no clock: numbers are drawn from a fixed seed, and `Work` counts what is done.

Source: Mehrotra & Trick, "A column generation approach for graph coloring", INFORMS Journal on Computing, 1996.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.outages.restart_check import Conflicts
from placement.outages.restart_columns_kernel import FloatArray, enter_columns, find_heavy

WEIGHT_SCALE: Final = 1_000_000
RIGHT_SIDE_STEP: Final = 1e-5  # Of 1e-7, 190 brokers took twice the pivots.
SEARCHES: Final = 3
TURNS: Final = 200
COLUMNS_A_ROUND: Final = 10
TURN_WORK: Final = 4
_FOUND_MAX: Final = 60


@attrs.define
class Work:
    """Hold how much work is left: about a nanosecond each, counted by what is touched."""

    left: int


def heavy_batches(
    conflicts: Conflicts,
    batch_max: int,
    weights: Int64Array,
    seed: int,
    work: Work,
    *,
    many: bool = False,
    turns: int = TURNS,
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
        work.left -= turns * count * TURN_WORK
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

    def __init__(self, count: int) -> None:
        self._inverse: FloatArray = np.eye(count, dtype=np.float64)
        self._values: FloatArray = 1 + np.arange(1, count + 1, dtype=np.float64) * RIGHT_SIDE_STEP
        self._columns: Int32Array = np.arange(count, dtype=np.int32)[:, None]
        self._basis: Int64Array = np.arange(count, dtype=np.int64)
        self._member_count = count
        self._known: set[tuple[int, ...]] = {(broker,) for broker in range(count)}
        self.prices: FloatArray = np.ones(count, dtype=np.float64)

    @property
    def value(self) -> float:
        """Return the number of batches, in fractions: the sum of the prices."""
        return float(self.prices.sum())

    @property
    def batches(self) -> list[tuple[int, ...]]:
        """Return the batches known so far, in the order in which they were added."""
        return [tuple(row[row >= 0].tolist()) for row in self._columns]

    def together(self) -> FloatArray:
        """Return for each two brokers how much of the best fractional schedule has both in a batch, float64[N, N]."""
        rows = np.flatnonzero(self._basis >= 0)
        inside = np.zeros((rows.size, self.prices.size + 1), dtype=np.float64)
        np.put_along_axis(inside, self._columns[self._basis[rows]].astype(np.int64), 1.0, axis=1)
        batches = inside[:, :-1]  # Padding, -1, fills the last one.
        return np.asarray(np.einsum("ri,rj->ij", batches * self._values[rows, None], batches))

    def add(self, batches: Iterable[tuple[int, ...]]) -> bool:
        """Add the batches that are not known yet as columns; return whether there was one."""
        fresh = [batch for batch in batches if batch not in self._known]
        self._known.update(fresh)
        width = max([self._columns.shape[1], *map(len, fresh)])
        columns = np.full((self._columns.shape[0] + len(fresh), width), -1, dtype=np.int32)
        columns[: self._columns.shape[0], : self._columns.shape[1]] = self._columns
        for row, batch in enumerate(fresh, start=self._columns.shape[0]):
            columns[row, : len(batch)] = batch
            self._member_count += len(batch)
        self._columns = columns
        return bool(fresh)

    def solve(self, work: Work) -> None:
        """Bring the prices to the best ones for the batches known so far, unless the work is done before."""
        tables = (self._inverse, self._values, self.prices, self._basis, self._columns)
        by_pivot = (self._inverse.size + self._member_count) * 3 // 5
        work.left -= by_pivot * int(enter_columns(*tables, max(work.left // by_pivot, 0)))
