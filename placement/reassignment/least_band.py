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

from broker.cluster import Int32Array, Int64Array
from placement.reassignment.annealing import annealed
from placement.reassignment.large_partitions import decide_large
from placement.reassignment.parts import Parts
from placement.reassignment.whole_partitions import Found, Near, place

_ABOVE_FLOW_MAX: Final = 1.002  # Of the bytes that parts copy; what copies more is searched for longer.
_ANNEALED_FIRST: Final = 2
_ANNEALED_MAX: Final = 4
_ANNEALED_NEAR: Final = 1.01  # Of the best so far: a placement that copies more than that is not annealed.
_ANNEALED_AGAIN: Final = 1.006  # Of what is enough: what copies more is annealed again.
_MARGINS: Final = (32, 8, 3)
"""Parts of the bands' width that are left free at either end, one after the other, where exchanges are stuck."""


def solve_band(parts: Parts, low: Int64Array, high: Int64Array) -> Found:
    """Return a placement that copies few bytes, within `low` to `high` int64[B] bytes of brokers if one is found.

    Raises InfeasibleError when a partition has no place.
    """
    near = Near.within(parts, low, high)
    found = [place(near, low, high)]
    enough = parts.copied_bytes(near.flow) * _ABOVE_FLOW_MAX
    for margin in _MARGINS:  # Where a rack is full, no broker takes what a whole partition is more than its parts.
        if not found[-1].outside(low, high):
            break
        free = (high - low) // margin
        inner = place(Near.within(parts, low + free, high - free), low, high)
        found.append(attrs.evolve(inner, price=found[0].price))
    if _is_good(found, low, high, enough):
        return found[-1]
    for keeping in (True, False):
        rows, sets = decide_large(parts, low, high, keeping=keeping)
        if rows.size:
            found.append(place(near, low, high, (rows, sets)))
        if _is_good(found, low, high, enough):
            return found[-1]
    found.sort(key=lambda one: (one.outside(low, high), one.copied))
    found = [annealed(parts, one, low, high) for one in found[:_ANNEALED_FIRST]]
    best = min(found, key=lambda one: (one.outside(low, high), one.copied))
    for turn in range(1, _ANNEALED_MAX):
        if best.copied <= enough * _ANNEALED_AGAIN:
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
        best = min((best, other), key=lambda one: (one.outside(low, high), one.copied))
    return best


def _is_good(found: list[Found], low: Int64Array, high: Int64Array, enough: float) -> bool:
    """Return whether the last placement found lies within the bands and copies little more than parts do."""
    return not found[-1].outside(low, high) and found[-1].copied <= enough
