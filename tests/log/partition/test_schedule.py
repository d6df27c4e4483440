"""Work for later runs when it is due, in order, once."""

from __future__ import annotations

import pytest

from broker.units import TimeMs
from log.partition.local_log import Schedule


def test_what_is_due_first_runs_first_and_of_equal_times_what_was_added_first() -> None:
    schedule = Schedule()
    ran: list[tuple[str, TimeMs]] = []

    def add(due_ms: int, name: str) -> None:
        schedule.add(TimeMs(due_ms), lambda now_ms: ran.append((name, now_ms)))

    for due_ms, name in ((30, "c"), (10, "a"), (20, "b1"), (20, "b2"), (31, "d")):
        add(due_ms, name)
    schedule.run(TimeMs(9))
    assert ran == []
    schedule.run(TimeMs(30))
    assert ran == [("a", 30), ("b1", 30), ("b2", 30), ("c", 30)]
    schedule.run(TimeMs(30))
    assert (len(ran), len(schedule)) == (4, 1)


def test_what_a_task_adds_runs_in_the_same_turn_if_it_is_due() -> None:
    schedule = Schedule()
    ran: list[TimeMs] = []
    schedule.add(TimeMs(5), lambda now: schedule.add(TimeMs(1), ran.append))
    schedule.run(TimeMs(5))
    assert ran == [5]


def test_after_a_failure_the_rest_waits_for_the_next_run() -> None:
    schedule = Schedule()
    ran: list[TimeMs] = []

    def fail(now_ms: TimeMs) -> None:
        raise ValueError(now_ms)

    schedule.add(TimeMs(1), fail)
    schedule.add(TimeMs(2), ran.append)
    with pytest.raises(ValueError, match="7"):
        schedule.run(TimeMs(7))
    schedule.run(TimeMs(8))
    assert ran == [8]
