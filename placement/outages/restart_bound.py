"""Find broker weights that prove how many batches a schedule of restarts needs at least.

What it decides: weights of 1 for the brokers of the constraint that needs most batches, or for a large clique: brokers
of which no two may restart together. restart_check.py says what they prove.

How: a clique is grown from each of the brokers with most conflicts, by the broker that leaves most others beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from broker.cluster import Int64Array
from placement.outages.restart_budget import Limits
from placement.outages.restart_check import Conflicts

CLIQUE_STARTS: Final = 64


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
    # Sets of brokers as the bits of whole numbers: for a dozen brokers a tenth of the cost of arrays.
    beside = [sum(1 << other for other in np.flatnonzero(row).tolist()) for row in clash]
    best: list[int] = []
    for start in np.lexsort([np.arange(degree.size), -degree])[:CLIQUE_STARTS].tolist():
        if degree[start] < len(best):  # Nor does any later start have so many beside it that it could do better.
            break
        clique, left = [start], beside[start]
        while left:
            # The broker with most of those that are left beside it, the first of equals.
            chosen = max(_brokers_of(left), key=lambda broker: (beside[broker] & left).bit_count())
            clique.append(chosen)
            left &= beside[chosen]
        if len(clique) > len(best):
            best = clique
    weights = np.zeros(degree.size, dtype=np.int64)
    weights[best] = 1
    return weights


def _brokers_of(bits: int) -> Iterator[int]:
    """Yield the places of the bits that are set, ascending."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
