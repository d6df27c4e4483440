"""Format numbers for people: one function for each kind of number, so that columns line up and bytes stay equal.

What it decides: counts have thousands separators; shares are held as whole parts per million, which sort and compare
exactly and which the page's script prints with the same text, and are shown as per cent with one decimal; ratios have
two decimals. A null is an en dash: the input does not say. It is never printed as 0.

Example:
    >>> percent(ppm(0.1234)), percent(0), percent(1), percent(None)
    ('12.3 %', '0 %', '<0.1 %', '–')
    >>> count(1234567), decimal(2), plural(1, "partition"), plural(2, "partition")
    ('1,234,567', '2.00', '1 partition', '2 partitions')
"""

from __future__ import annotations

import math
from typing import Final

from broker.units import format_size

UNKNOWN: Final = "–"
PPM: Final = 1_000_000


def count(value: float | None) -> str:
    """Return a whole number with thousands separators; an en dash for None."""
    return UNKNOWN if value is None else f"{round(value):,}"


def decimal(value: float | None, places: int = 2) -> str:
    """Return a number with `places` decimals and thousands separators; an en dash for None and for infinities."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:,.{places}f}"


def ppm(share: float | None) -> int | None:
    """Return a share of 0..1 as whole parts per million, at least 1 for a share above 0; None when unknown."""
    if share is None or not math.isfinite(share):
        return None
    return 0 if share <= 0 else max(1, round(share * PPM))


def percent(parts: int | None) -> str:
    """Return parts per million as per cent with one decimal; less than 0.05 % is "<0.1 %", 0 is "0 %"."""
    if parts is None:
        return UNKNOWN
    if parts == 0:
        return "0 %"
    tenths = (parts + 500) // 1000
    return "<0.1 %" if tenths == 0 else f"{tenths // 10}.{tenths % 10} %"


def share_of(part: int | None, whole: int | None) -> str:
    """Return `part` of `whole` as per cent; an en dash when one of them is None or the whole is 0."""
    if part is None or not whole:
        return UNKNOWN
    return percent(ppm(part / whole))


def quantity(value: float | None, unit: str) -> str:
    """Return a number of replicas or leaders with thousands separators, or a number of bytes with its unit."""
    if value is None:
        return UNKNOWN
    return format_size(value) if unit == "bytes" else count(value)


def plural(value: int, noun: str) -> str:
    """Return a count with its noun, "1 partition" or "2 partitions"."""
    return f"{count(value)} {noun}" if value == 1 else f"{count(value)} {noun}s"
