"""Numbers as people read them: one way to print each kind, so that columns line up and bytes stay equal.

Counts have thousands separators; shares are kept as parts per million (whole numbers
sort and compare exactly, and the page's script prints the same text from the same
number) and shown as per cent with one decimal; ratios have two decimals.

A null is an en dash: the input does not say. It is never printed as 0.

Example: percent(ppm(0.1234)) == "12.3 %"; percent(0) == "0 %"; percent(1) == "<0.1 %".
"""

from __future__ import annotations

import math
from typing import Final

from broker.units import format_size

UNKNOWN: Final = "–"
PPM: Final = 1_000_000


def count(value: float | None) -> str:
    """Return a whole number with thousands separators."""
    return UNKNOWN if value is None else f"{round(value):,}"


def decimal(value: float | None, places: int = 2) -> str:
    """Return a number with a fixed number of decimals, thousands separated."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:,.{places}f}"


def ppm(share: float | None) -> int | None:
    """Return a share of 0..1 as whole parts per million; anything above zero stays above zero."""
    if share is None or not math.isfinite(share):
        return None
    return 0 if share <= 0 else max(1, round(share * PPM))


def percent(parts: int | None) -> str:
    """Return parts per million as per cent with one decimal; a trace is "<0.1 %", nothing is "0 %"."""
    if parts is None:
        return UNKNOWN
    if parts == 0:
        return "0 %"
    tenths = (parts + 500) // 1000
    return "<0.1 %" if tenths == 0 else f"{tenths // 10}.{tenths % 10} %"


def share_of(part: int | None, whole: int | None) -> str:
    """Return `part` of `whole` as per cent; unknown where either is, or where there is nothing to share."""
    if part is None or not whole:
        return UNKNOWN
    return percent(ppm(part / whole))


def quantity(value: float | None, unit: str) -> str:
    """Return a quantity of replicas, leaders or bytes."""
    if value is None:
        return UNKNOWN
    return format_size(value) if unit == "bytes" else count(value)


def plural(value: int, noun: str) -> str:
    """Return a count with its noun: 1 partition, 2 partitions."""
    return f"{count(value)} {noun}" if value == 1 else f"{count(value)} {noun}s"
