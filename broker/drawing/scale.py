"""Format coordinates, and choose the end and the steps of an axis."""

from __future__ import annotations

import math


def number(value: float) -> str:
    """Return a coordinate as text with at most one decimal."""
    return "0" if abs(value) < 0.05 else f"{value:.1f}".removesuffix(".0")


def nice_axis(value: float) -> tuple[float, int]:
    """Return the end of an axis from 0 that holds `value`, and its number of equal steps: each 1, 2 or 5 tenfold."""
    if value <= 0:
        return 1.0, 4
    power = 10.0 ** math.floor(math.log10(value / 5))
    step = next(power * part for part in (1.0, 2.0, 5.0, 10.0) if power * part * 5 >= value * (1 - 1e-9))
    steps = math.ceil(value / step * (1 - 1e-9))
    return step * steps, steps


def clipped(name: str, length_max: int) -> str:
    """Return a label of at most `length_max` characters; end a longer one with an ellipsis.

    >>> clipped("orders-by-region", 8)
    'orders-…'
    """
    return name if len(name) <= length_max else name[: length_max - 1] + "…"
