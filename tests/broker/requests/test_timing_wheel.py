"""The timing wheel against a sorted list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import UsageError
from broker.requests.timing_wheel import Timer
from broker.units import TimeMs


def test_a_task_far_off_falls_through_the_wheels_and_fires_at_its_time() -> None:
    timer: Timer[str] = Timer(start_ms=TimeMs(0))
    assert timer.add("far", TimeMs(450)) is not None
    stops = []
    while (stop := timer.next_stop_ms()) is not None:
        stops.append((stop, timer.advance(stop)))
    assert stops == [(400, []), (440, []), (450, ["far"])]


def test_time_does_not_go_back() -> None:
    timer: Timer[str] = Timer(start_ms=TimeMs(5))
    with pytest.raises(UsageError, match=r"^a timer at 5 ms cannot go back to 4 ms$"):
        timer.advance(TimeMs(4))


def test_a_wheel_that_cannot_turn_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^a wheel of 1 ticks of 1 ms does not turn; 2 of 1 ms are the least$"):
        Timer(start_ms=TimeMs(0), wheel_size=1)


@given(
    st.integers(0, 500),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3000), st.booleans()), max_size=40),
    st.integers(2, 20),
)
def test_tasks_fire_when_and_in_the_order_that_a_sorted_list_gives(
    start_ms: int, steps: list[tuple[int, int, bool]], wheel_size: int
) -> None:
    timer: Timer[int] = Timer(start_ms=TimeMs(start_ms), wheel_size=wheel_size)
    now_ms, waiting = start_ms, list[tuple[int, int]]()
    for task, (passed_ms, delay_ms, is_cancelled) in enumerate(steps):
        now_ms += passed_ms
        fired = timer.advance(TimeMs(now_ms))
        due = sorted(entry for entry in waiting if entry[0] <= now_ms)
        waiting = [entry for entry in waiting if entry[0] > now_ms]
        # Within one tick Kafka's order is that of the buckets' lists; the time of each is what is promised.
        assert sorted(fired) == sorted(number for _, number in due)
        assert [when for when, _ in due] == [{number: when for when, number in due}[number] for number in fired]
        entry = timer.add(task, TimeMs(now_ms + delay_ms))
        assert (entry is None) == (delay_ms == 0)
        if entry is not None and is_cancelled:
            assert entry.cancel()
        elif entry is not None:
            waiting.append((now_ms + delay_ms, task))
        assert len(timer) == len(waiting)
        next_stop_ms = timer.next_stop_ms()
        assert (next_stop_ms is None) == (not waiting)
        assert next_stop_ms is None or now_ms < next_stop_ms <= min(waiting)[0]
