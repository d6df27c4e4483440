"""Find the best fractional schedule of restarts, whose prices bound every schedule from below.

What it decides: weights for `restart_check.lower_bound`: the prices of a linear program, which asks for as few batches
as possible, in fractions, that hold each broker once.

Constraints: no chance and no clock: work is counted and bounded, and numbers drawn from a fixed seed, so that equal
input gives equal weights.

How: the columns of the program are batches. It is solved over a few of them; a tabu search finds batches that weigh
more than 1 at its prices, which become columns too (restart_columns.py). The prices of few columns swing wildly, so the
search looks halfway between them and the best prices so far: those of the largest sum at which no known batch weighs
more than 1. Where such prices promise a proof, the heaviest batch is found exactly (`restart_check.heaviest`): either
they prove it, or that batch is one more column. No prices prove more than the value of the program rounded up.

Source: Mehrotra & Trick, "A column generation approach for graph coloring", INFORMS Journal on Computing, 1996;
Wentges, "Weighted Dantzig-Wolfe decomposition for linear mixed-integer programming", 1997, for the prices halfway;
Farley, "A note on bounding a class of linear programming problems", Operations Research, 1990, for what prices prove.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int64Array
from placement.outages.restart_budget import Limits
from placement.outages.restart_check import Conflicts, heaviest
from placement.outages.restart_columns import SEARCHES, TURNS, WEIGHT_SCALE, Program, Work, heavy_batches
from placement.outages.restart_columns_kernel import FloatArray

WORK_MAX: Final = 5_300_000_000
WORK_REST_MAX: Final = 2_000_000_000  # For fewer batches, where no prices proved as many as there are.
WORK_CERTAIN_MAX: Final = 1_000_000_000  # Beyond the work given, for what is proven by then.
STEPS_QUICK: Final = 1_000_000  # Comparisons of an exact search: some milliseconds.
STEPS_MAX: Final = 60_000_000  # About a second.
STEP_WORK: Final = 6
TURNS_LONG: Final = 5_000  # Of every third broker, where the shorter searches find nothing: a fifth of a second.
SHARE_OF_BEST: Final = 0.5
_GAIN_EPSILON: Final = 1e-6
_VALUE_EPSILON: Final = 1e-4  # The right sides are not quite 1, and prices are rounded down.


@attrs.frozen(kw_only=True, eq=False)
class Fractional:
    """Hold the `weights` that prove most, the number of batches that they prove, and what the program came to.

    `value` is that of the program over the `batches` that it knows. `work_done` is about as many nanoseconds.
    """

    weights: Int64Array
    bound: int
    value: float
    batches: tuple[tuple[int, ...], ...]
    work_done: int


def best_fractional(
    limits: Limits, conflicts: Conflicts, schedule: Sequence[Sequence[int]], target: int, *, known: int = 0
) -> Fractional:
    """Return the best fractional schedule, with its prices, scaled; stop where they prove `target` batches.

    `schedule` is where the search begins; `known` batches are proven already, so that no more is spent on these.
    """
    program = Program(limits.brokers.size)
    program.add(tuple(batch) for batch in schedule)
    work, rest = Work(WORK_MAX), Work(WORK_REST_MAX)
    search = PriceSearch(program, conflicts, limits.batch_max)
    weights, bound = search.proven(target, work, least=target)
    if not bound:
        weights, bound = search.proven(target - 1, rest, least=known + 1)
    return Fractional(
        weights=weights,
        bound=bound,
        value=program.value,
        batches=tuple(program.batches),
        work_done=WORK_MAX - work.left + WORK_REST_MAX - rest.left,
    )


class PriceSearch:
    """Look for prices of a program that prove so many batches; `best` are those of the largest sum so far.

    At the best prices no batch that was met weighs more than 1. All searches end when the work is done.
    """

    def __init__(self, program: Program, conflicts: Conflicts, batch_max: int) -> None:
        self._program = program
        self._conflicts = conflicts
        self._batch_max = batch_max
        self._work = Work(0)
        self._best: FloatArray = np.zeros(program.prices.size, dtype=np.float64)
        self._seed = 0
        self._is_quick = True

    def proven(self, target: int, work: Work, *, least: int = 1) -> tuple[Int64Array, int]:
        """Return weights, and the number of batches that they prove, `target` at most, within so much work.

        As soon as no prices can prove `least` batches it is 0.
        """
        claimed, self._work = target, work
        while work.left > 0:
            self._program.solve(work)
            claimed = min(target, math.ceil(self._program.value - _VALUE_EPSILON))
            if claimed < least:
                return np.zeros(self._best.size, dtype=np.int64), 0
            has_grown = self._add_heavy(many=False)
            weights, is_proven, has_batch = self._tried(claimed, is_last=False, has_grown=has_grown)
            if not (has_grown or is_proven or has_batch or self._add_heavy(many=True)):
                weights, is_proven, has_batch = self._tried(claimed, is_last=True)
                if not (is_proven or has_batch):
                    break
            if is_proven:
                return weights, claimed
        return self._certain(claimed, least)

    def _certain(self, most: int, least: int) -> tuple[Int64Array, int]:
        """Return the weights of the best prices, and the largest number of batches, up to `most`, that they prove."""
        claimed = most
        while claimed >= max(least, 2) and self._work.left > -WORK_CERTAIN_MAX:
            weights = _scaled(self._best)
            batch = self._heavier(weights, claimed, STEPS_MAX) if self._promises(weights, claimed) else None
            if batch is None:
                claimed -= 1
            elif not batch:
                return weights, claimed
            else:
                self._add([batch])
        return np.ones(self._best.size, dtype=np.int64), 1 if least <= 1 else 0

    @staticmethod
    def _promises(weights: Int64Array, claimed: int) -> bool:
        """Return whether the weights prove so many batches, if no batch weighs more than 1."""
        return int(weights.sum()) > (claimed - 1) * WEIGHT_SCALE

    def _add_heavy(self, *, many: bool) -> bool:
        """Add heavy batches that searches find, and raise the best prices; return whether one improves the program."""
        for share in (SHARE_OF_BEST, 0.0) if self._best.any() else (0.0,):
            prices = np.maximum(share * self._best + (1 - share) * self._program.prices, 0)
            found = self._heavy(_scaled(prices), many=many)
            heaviest_found = max([1.0, *(float(prices[list(batch)].sum()) for batch in found)])
            if prices.sum() > self._best.sum() * heaviest_found:
                self._best = prices / heaviest_found
            if self._add([batch for batch in found if self._program.prices[list(batch)].sum() > 1 + _GAIN_EPSILON]):
                return True
        return False

    def _heavy(self, weights: Int64Array, *, many: bool, turns: int = TURNS) -> list[tuple[int, ...]]:
        found = heavy_batches(self._conflicts, self._batch_max, weights, self._seed, self._work, many=many, turns=turns)
        self._seed += SEARCHES
        return found

    def _tried(self, claimed: int, *, is_last: bool, has_grown: bool = False) -> tuple[Int64Array, bool, bool]:
        """Return the weights of the best prices, whether they prove `claimed` batches, else whether a batch was added.

        A batch too heavy for the proof becomes a column. Unless this `is_last`, the search for it is short.
        """
        weights = _scaled(self._best)
        if not self._promises(weights, claimed) or (has_grown and not self._is_quick):
            return weights, False, False
        batch = self._heavier(weights, claimed, STEPS_QUICK)
        self._is_quick = batch is not None
        if batch is None and is_last:
            if self._add(self._heavy(weights, many=True, turns=TURNS_LONG)):
                return weights, False, True
            batch = self._heavier(weights, claimed, STEPS_MAX)
        if batch is None:
            return weights, False, False
        return weights, not batch, bool(batch) and self._add([batch])

    def _heavier(self, weights: Int64Array, claimed: int, steps_max: int) -> tuple[int, ...] | None:
        """Return a batch too heavy for `weights` to prove `claimed` batches; an empty one if there is none."""
        cap = (int(weights.sum()) - 1) // max(claimed - 1, 1)
        batch, _, steps = heaviest(self._conflicts, self._batch_max, weights, steps_max, least=cap)
        self._work.left -= steps * STEP_WORK
        return tuple(batch.tolist()) if batch.size or steps <= steps_max else None

    def _add(self, batches: Sequence[tuple[int, ...]]) -> bool:
        """Add batches to the linear program; return whether one was new.

        The best prices are divided by the weight of the heaviest of them, if that is above 1: then none weighs more.
        """
        heaviest_added = max([1.0, *(float(self._best[list(batch)].sum()) for batch in batches)])
        self._best = self._best / heaviest_added
        return self._program.add(batches)


def _scaled(prices: FloatArray) -> Int64Array:
    return np.maximum(np.floor(prices * WEIGHT_SCALE), 0).astype(np.int64)
