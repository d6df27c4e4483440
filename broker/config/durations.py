"""Tell which texts are a duration, as Java's `Duration.parse` reads them.

How: days, hours, minutes and seconds, each with a sign of its own, in this order; a sign before the P turns all. At
least one must be there, one after a T at least, but not after a small t. Seconds and their sums, the last two first,
must fit into 64 bits.

Source: java.time.Duration.parse, Java 17, which AutoOffsetResetStrategy of Kafka 4.3.1 calls.
"""

from __future__ import annotations

import re
from typing import Final

from broker.ids import INT64_MAX

_NUMBER: Final = r"([-+]?[0-9]{1,400})"
_DURATION: Final = re.compile(
    rf"([-+]?)P(?:{_NUMBER}D)?(T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}(?:[.,]([0-9]{{0,9}}))?S)?)?", re.IGNORECASE
)
_SECONDS: Final = (86_400, 3600, 60, 1)
_NANOS: Final = 1_000_000_000
_INT64_MIN: Final = -INT64_MAX - 1


def is_duration(text: str) -> bool:
    """Return whether a text is a duration of zero or more in Java's form of ISO 8601."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return False
    sign, days, time, hours, minutes, seconds, fraction = found.groups()
    numbers = (days, hours, minutes, seconds)
    if not any(numbers) or time == "T":
        return False
    parts = [int(number or 0) * size for number, size in zip(numbers, _SECONDS, strict=True)]
    sums = [sum(parts[place:]) for place in range(len(parts))]
    nanos = int(f"{fraction or '':0<9}") * (-1 if seconds and seconds.startswith("-") else 1)
    total = (sums[0] * _NANOS + nanos) * (-1 if sign == "-" else 1)
    return total >= 0 and all(_INT64_MIN <= each <= INT64_MAX for each in (*parts, *sums, total // _NANOS))
