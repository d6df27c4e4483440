"""Parse and format durations in milliseconds and sizes in bytes."""

from __future__ import annotations

import math
import re
from typing import Final, NewType

from broker.errors import UsageError
from broker.ids import INT64_MAX

TimeMs = NewType("TimeMs", int)
DurationMs = NewType("DurationMs", int)
SizeBytes = NewType("SizeBytes", int)

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB
SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

_SUFFIXES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SIZE: Final = re.compile(r"(\d{1,19}(?:\.\d{1,9})?)\s*([KMGTPE]i)?B?", re.ASCII)
SIZE_BYTES_MAX: Final = INT64_MAX  # A Java long: nothing in Kafka counts further.


def parse_size(text: str) -> SizeBytes:
    """Return the number of bytes that `text` names, such as "512", "64 KiB" or "2 GiB".

    Raises UsageError for anything else, and for more than a Java long holds.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"size {text!r} is not a number of bytes, KiB, MiB, GiB, TiB, PiB or EiB")
    exponent = 0 if match[2] is None else "KMGTPE".index(match[2][0]) + 1
    size_bytes = int(match[1]) * KIB**exponent if "." not in match[1] else int(float(match[1]) * KIB**exponent)
    if size_bytes > SIZE_BYTES_MAX:
        raise UsageError(f"size {text!r} is more than {SIZE_BYTES_MAX} bytes")
    return SizeBytes(size_bytes)


def format_size(size_bytes: float) -> str:
    """Return a size as text with at most one decimal: 0 B, 1.5 KiB, 2 GiB."""
    exponent, value = 0, float(size_bytes)
    while abs(value) >= KIB and exponent < len(_SUFFIXES) - 1:
        value /= KIB
        exponent += 1
    return f"{value:.1f}".removesuffix(".0") + f" {_SUFFIXES[exponent]}"


def format_seconds(seconds: float) -> str:
    """Return a time as text, rounded up to whole seconds: "3 h 20 min", "45 s"; "never ends" for infinity."""
    if math.isinf(seconds):
        return "never ends"
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes} min {whole % 60} s"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
