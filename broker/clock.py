"""Pass time as a parameter: a component reads the time from a Clock, and only the clock's owner moves the clock.

Source: Kafka clients/org.apache.kafka.common.utils.{Time, MockTime}, 4.0; MockTime ticks by itself, this does not.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from broker.errors import UsageError
from broker.units import DurationMs, TimeMs


@runtime_checkable
class Clock(Protocol):
    """Define the interface of a clock."""

    def now_ms(self) -> TimeMs:
        """Return the current time in milliseconds; two calls may return the same time."""
        ...


class ManualClock:
    """Keep a time in milliseconds that changes only when the owner moves the clock."""

    __slots__ = ("_now_ms",)

    def __init__(self, now_ms: TimeMs = TimeMs(0)) -> None:  # noqa: B008 - TimeMs is an int: nothing is shared.
        self._now_ms = now_ms

    def __repr__(self) -> str:
        return f"ManualClock({self._now_ms})"

    def now_ms(self) -> TimeMs:
        """Return the time to which the clock was last moved, in milliseconds."""
        return self._now_ms

    def advance(self, duration_ms: DurationMs) -> TimeMs:
        """Move the clock forward by `duration_ms` and return the new time; raise UsageError if `duration_ms` < 0."""
        if duration_ms < 0:
            raise UsageError(f"a clock cannot advance by {duration_ms} ms; allowed are 0 and more")
        self._now_ms = TimeMs(self._now_ms + duration_ms)
        return self._now_ms

    def set(self, now_ms: TimeMs, *, backwards: bool = False) -> None:
        """Move the clock to `now_ms`; raise UsageError if that is in the past and `backwards` is false."""
        if now_ms < self._now_ms and not backwards:
            raise UsageError(f"the clock stands at {self._now_ms} ms and cannot go back to {now_ms} ms")
        self._now_ms = now_ms
