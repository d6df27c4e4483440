"""The clock moves when it is told to, and back only on purpose."""

from __future__ import annotations

import pytest

from broker.clock import Clock, ManualClock
from broker.errors import UsageError
from broker.units import DurationMs, TimeMs


def test_a_manual_clock_is_a_clock() -> None:
    assert isinstance(ManualClock(), Clock)
    assert not isinstance(object(), Clock)


def test_it_stands_still_until_it_is_moved() -> None:
    clock = ManualClock(TimeMs(5))
    assert [clock.now_ms(), clock.now_ms()] == [5, 5]
    assert repr(clock) == "ManualClock(5)"


def test_it_starts_at_zero_and_advances_by_what_it_is_told() -> None:
    clock = ManualClock()
    assert clock.advance(DurationMs(500)) == 500
    assert clock.advance(DurationMs(0)) == 500
    assert clock.now_ms() == 500


def test_it_does_not_advance_by_less_than_nothing() -> None:
    clock = ManualClock(TimeMs(10))
    with pytest.raises(UsageError, match=r"^a clock cannot advance by -1 ms; allowed are 0 and more$"):
        clock.advance(DurationMs(-1))
    assert clock.now_ms() == 10


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
