"""Find broker weights that prove how many batches a schedule of restarts needs at least.

What it decides: weights for `restart_check.lower_bound`. First those of a set of one constraint, then of a large
clique, then, if a gap is left, of the best fractional schedule.

Constraints: no chance and no clock: the number of columns and of brokers tried is bounded, so equal input gives equal
weights.

How: the best weights are the prices of a linear program: as few batches as possible, in fractions, that hold each
broker once. Its columns are batches; a column that weighs more than 1 at the present prices is found by
`restart_check.heaviest` and enters the basis (column generation with a revised simplex, an inverse of N x N). Whatever
the prices are when the search ends, they prove a bound; more exact ones prove more.

Source: Mehrotra & Trick, "A column generation approach for graph coloring", INFORMS Journal on Computing, 1996.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int64Array
from placement.outages.restart_budget import Limits
from placement.outages.restart_check import Conflicts, heaviest, lower_bound

WEIGHT_SCALE: Final = 1_000_000
COLUMNS_MAX: Final = 6_000
PRICING_STEPS_MAX: Final = 40_000_000  # Comparisons for one column, about a tenth of a second.
STEPS_MAX: Final = 500_000_000  # And for all columns.
CLIQUE_STARTS: Final = 64
_EPSILON: Final = 1e-7


def constraint_weights(limits: Limits) -> Int64Array:
    """Return weights of 1 for the brokers of the constraint that needs most batches; 1 for each if there is none."""
    sizes = np.count_nonzero(limits.members >= 0, axis=1)
    weights = np.zeros(limits.brokers.size, dtype=np.int64)
    needed = -(-sizes // np.maximum(limits.budget, 1))
    if not needed.size or -(-limits.brokers.size // limits.batch_max) >= int(needed.max()):
        return np.ones(limits.brokers.size, dtype=np.int64)
    row = limits.members[int(needed.argmax())]
    weights[row[row >= 0]] = 1
    return weights


def clique_weights(conflicts: Conflicts) -> Int64Array:
    """Return weights of 1 for a large set of brokers of which no two may restart together."""
    clash = conflicts.clash.astype(np.bool_)
    degree = clash.sum(axis=1)
    best: list[int] = []
    for start in np.lexsort([np.arange(degree.size), -degree])[:CLIQUE_STARTS].tolist():
        clique, left = [start], clash[start].copy()
        while left.any():
            # The broker with most of those that are left beside it.
            inside = np.where(left, (clash & left[None, :]).sum(axis=1), -1)
            chosen = int(inside.argmax())
            clique.append(chosen)
            left &= clash[chosen]
        if len(clique) > len(best):
            best = clique
    weights = np.zeros(degree.size, dtype=np.int64)
    weights[best] = 1
    return weights


def fractional_weights(
    limits: Limits, conflicts: Conflicts, schedule: Sequence[Sequence[int]], target: int
) -> Int64Array:
    """Return the prices of the best fractional schedule, scaled; stop where they prove `target` batches.

    `schedule` is where the search begins.
    """
    program = _Program(limits.brokers.size)
    for members in schedule:
        program.enter(np.asarray(members, dtype=np.int64))
    best, proven, steps = np.ones(limits.brokers.size, dtype=np.int64), 0, 0
    for _ in range(COLUMNS_MAX):
        weights = np.maximum(np.floor(program.prices() * WEIGHT_SCALE), 0).astype(np.int64)
        batch, weight, spent = heaviest(conflicts, limits.batch_max, weights, PRICING_STEPS_MAX)
        steps += spent
        finished = spent <= PRICING_STEPS_MAX
        if finished and weight:
            bound = -(-int(weights.sum()) // weight)
            if bound > proven:
                best, proven = weights, bound
        if steps > STEPS_MAX or proven >= target or weight <= WEIGHT_SCALE * (1 + _EPSILON) + limits.brokers.size:
            break
        program.enter(batch)
    return best


class _Program:
    """Solve the covering program by the revised simplex method, a column at a time.

    It begins with one batch for each broker. Right sides of slightly more than 1, all different, keep the method from
    going round in circles; they do not change which prices are allowed.
    """

    def __init__(self, count: int) -> None:
        self._inverse = np.eye(count)
        self._values = 1 + np.arange(1, count + 1) * 1e-7

    def prices(self) -> NDArray[np.float64]:
        """Return the price of each broker: the sum of each column of the basis' inverse."""
        prices: NDArray[np.float64] = self._inverse.sum(axis=0)
        return prices

    def enter(self, batch: Int64Array) -> None:
        """Enter a batch into the basis if that lowers the number of batches."""
        if self.prices()[batch].sum() <= 1 + _EPSILON:
            return
        direction = self._inverse[:, batch].sum(axis=1)
        positive = direction > _EPSILON
        ratio = np.full(direction.size, np.inf)
        ratio[positive] = self._values[positive] / direction[positive]
        leaving = int(ratio.argmin())
        step = ratio[leaving]
        pivot = self._inverse[leaving] / direction[leaving]
        self._inverse -= np.outer(direction, pivot)
        self._inverse[leaving] = pivot
        self._values -= step * direction
        self._values[leaving] = step


def best_weights(limits: Limits, candidates: Sequence[Int64Array]) -> tuple[Int64Array, int]:
    """Return the first of the weights that prove most, and the number of batches."""
    proven = [lower_bound(limits, each) for each in candidates]
    place = int(np.argmax(proven))
    return candidates[place], proven[place]
