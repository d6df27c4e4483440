"""Show timestamps as dates, and say which are no milliseconds and what retention makes of them."""

from __future__ import annotations

from typing import Final

import numpy as np

from broker.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, DurationMs, TimeMs

OLDEST_MS: Final = 946_684_800_000  # The year 2000, before which no Kafka ran.
_UNITS: Final = ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min"), (SECOND_MS, "s"), (1, "ms"))
MISTAKEN_UNITS: Final = (("seconds", 1_000, 1), ("microseconds", 1, 1_000), ("nanoseconds", 1, 1_000_000))
"""For each unit in which timestamps are written by mistake (KAFKA-6482): factor and divisor to milliseconds."""


def time_text(time_ms: TimeMs) -> str:
    """Return any time in ms as UTC text, such as 2026-11-21T18:24:23.147Z."""
    return f"{np.datetime64(time_ms, 'ms')}Z"


def duration_text(duration_ms: DurationMs) -> str:
    """Return a duration in ms in its two largest units: 1 min 20 s."""
    for place, (size_ms, name) in enumerate(_UNITS):
        if abs(duration_ms) >= size_ms:
            count, rest = divmod(duration_ms, size_ms)
            smaller_ms, smaller = _UNITS[min(place + 1, len(_UNITS) - 1)]
            return f"{count} {name} {rest // smaller_ms} {smaller}" if rest >= smaller_ms else f"{count} {name}"
    return "0 ms"


def utc_day(timestamp_ms: int) -> str:
    """Return the date of a time in milliseconds since 1970."""
    return "no date" if timestamp_ms < 0 else str(np.datetime64(timestamp_ms, "ms").astype("datetime64[D]"))


def mistaken_unit(timestamp: int, now_ms: int) -> str | None:
    """Return the unit that a timestamp looks like, None for milliseconds or none that gives a time up to tomorrow."""
    limit_ms = now_ms + DAY_MS
    if OLDEST_MS <= timestamp <= limit_ms:
        return None
    read = ((unit, timestamp * factor // divisor) for unit, factor, divisor in MISTAKEN_UNITS)
    return next((unit for unit, time_ms in read if OLDEST_MS <= time_ms <= limit_ms), None)


def doubtful(timestamp: int, now_ms: int) -> str | None:
    """Return what is wrong with a timestamp and what retention makes of it; None if nothing is."""
    unit = mistaken_unit(timestamp, now_ms)
    looks = f"year {np.datetime64(timestamp, 'ms').astype('datetime64[Y]')}: "
    looks += f"looks like {unit}" if unit else "lies in the future"
    if timestamp > now_ms + DAY_MS:
        return f"{looks}; retention by time will not delete"
    return f"{looks}; retention by time deletes at once" if unit else None
