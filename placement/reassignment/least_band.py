"""Find a placement that copies few bytes and keeps each broker's bytes within a band, and prices that bound any other.

What it decides: which brokers hold each partition, so that each broker's bytes lie within its band and few bytes are
copied. The least is NP-hard (partition), so the answer comes with a lower bound, and the gap between both is known.

How. Every partition is cut into parts of about equal size (parts.py), whose least moves within the bands are a flow
with prices of brokers. These prices bound what whole partitions need (certificate.py); the bound holds for any prices,
so that nothing is lost but sharpness where parts do not fit sizes. Whole partitions are then placed near their parts
(whole_partitions.py). Where that copies noticeably more than parts do, some partitions are large: as many as can stay
where they are (staying.py), the others are decided one by one (large_partitions.py), and the best placement is taken.
Where exchanges are stuck outside the bands, all brokers of a rack may be full: then parts aim at narrower bands, and
exchanges take back what need not move. What is not good enough even then is exchanged at random (annealing.py).

Constraints: a placement may exist where none is found.

Example: partitions of 5 and 3 bytes on broker 0, which a second broker joins, with bands of 2 to 6 bytes:

    >>> import numpy as np
    >>> from placement.reassignment.problem import Problem
    >>> plain = Problem.of_rows([[0], [0]], group=[0, 0])
    >>> band = np.array([2, 2]), np.array([6, 6])
    >>> found = solve_band(Parts.of(plain, np.array([5, 3]), np.zeros(2, dtype=np.int64)), *band)
    >>> found.now.tolist(), found.loads.tolist()
    ([[0], [1]], [5, 3])

Left out: fewest replicas or lost leaders among placements that copy as many bytes.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from broker.cluster import Int32Array, Int64Array
from placement.reassignment.annealing import annealed
from placement.reassignment.large_partitions import decide_large
from placement.reassignment.parts import Parts
from placement.reassignment.whole_partitions import Found, Near, better, place

_ABOVE_FLOW_MAX: Final = 1.002  # Of the bytes that parts copy, or must be; what copies more is searched for longer.
_ANNEALED_NEAR: Final = 1.01  # Of the best so far: a placement that copies more than that is not annealed.
_ANNEALED_AGAIN_MAX: Final = 4
_LATER: Final = 1.004  # Of what was enough at first, once the large partitions that can stay did.
_MARGINS: Final = (32, 8, 3)
"""Parts of the bands' width that are left free at either end, one after the other, where exchanges are stuck."""


def solve_band(
    parts: Parts, low: Int64Array, high: Int64Array, least_at: Callable[[Int64Array], int] = lambda price: 0
) -> Found:
    """Return a placement that copies few bytes, within `low` to `high` int64[B] bytes of brokers if one is found.

    `least_at` tells what prices of brokers prove, in bytes that any placement copies: the flow of parts is rounded.
    Raises InfeasibleError when a partition has no place.
    """
    near = Near.within(parts, low, high)
    first = place(near, low, high)
    enough = max(parts.copied_bytes(near.flow), least_at(first.price)) * _ABOVE_FLOW_MAX
    best = first
    for margin in _MARGINS:  # Where a rack is full, no broker takes what a whole partition is more than its parts.
        if not best.outside(low, high):
            break
        free = (high - low) // margin
        inner = place(Near.within(parts, low + free, high - free), low, high)
        best = better(best, attrs.evolve(inner, price=first.price), low, high)
    if _is_good(best, low, high, enough):
        return best
    best = annealed(parts, best, low, high)
    for keeping in (True, False):
        if _is_good(best, low, high, enough * (1 if keeping else _LATER)):
            return best
        rows, sets = decide_large(parts, low, high, keeping=keeping)
        if rows.size:
            other = place(near, low, high, (rows, sets))
            if not _is_good(other, low, high, enough):
                other = annealed(parts, other, low, high)
            best = better(best, other, low, high)
    for turn in range(1, _ANNEALED_AGAIN_MAX):
        if _is_good(best, low, high, enough * _LATER):
            break
        best = annealed(parts, best, low, high, turn)
    return best


def place_decided(
    parts: Parts, found: Found, low: Int64Array, high: Int64Array, decided: list[tuple[Int64Array, Int32Array]]
) -> Found:
    """Return the best of a placement and of those beside partitions that are decided, with their brokers."""
    near, best = Near.within(parts, low, high), found
    for each in decided:
        other = place(near, low, high, each)
        if other.copied < best.copied * _ANNEALED_NEAR:
            other = annealed(parts, other, low, high)
        best = better(best, other, low, high)
    return best


def _is_good(found: Found, low: Int64Array, high: Int64Array, enough: float) -> bool:
    """Return whether a placement lies within the bands and copies little more than parts do."""
    return not found.outside(low, high) and found.copied <= enough
