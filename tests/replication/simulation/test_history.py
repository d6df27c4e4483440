"""The lines of a run are bounded, and dropped ones still count in its digest."""

from __future__ import annotations

import pytest

from broker.units import TimeMs
from replication.simulation import history
from replication.simulation.history import Trace


def test_early_lines_are_dropped_and_said_and_count_in_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "LINES_MAX", 10)
    first, other, seen = Trace(), Trace(), list[str]()
    every = Trace(seen.append)
    for number in range(50):
        for trace in (first, every):
            trace.line(TimeMs(number), f"line {number}")
        other.line(TimeMs(number), f"line {max(number, 1)}")
        assert len(first.lines) <= 20
    dropped = 50 - len(first.lines) + 1
    assert first.lines[0] == f"{dropped} earlier lines were dropped"
    assert first.lines[1:] == seen[dropped:]
    assert len(seen) == 50
    assert first.digest == every.digest != other.digest
