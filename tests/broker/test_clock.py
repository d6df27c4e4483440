"""The clock moves when it is told to, and back only on purpose."""

from __future__ import annotations

import pytest

from broker.clock import ManualClock
from broker.errors import UsageError
from broker.units import DurationMs, TimeMs


def test_it_starts_at_zero_and_advances_by_what_it_is_told() -> None:
    clock = ManualClock()
    assert clock.advance(DurationMs(500)) == 500
    assert clock.advance(DurationMs(0)) == 500
    assert clock.now_ms() == 500


def test_it_goes_back_only_when_told_to() -> None:
    clock = ManualClock(TimeMs(10))
    with pytest.raises(UsageError, match=r"^the clock stands at 10 ms and cannot go back to 9 ms$"):
        clock.set(TimeMs(9))
    assert clock.now_ms() == 10
    clock.set(TimeMs(10))
    clock.set(TimeMs(9), backwards=True)
    assert clock.now_ms() == 9
    clock.set(TimeMs(12))
    assert clock.now_ms() == 12
