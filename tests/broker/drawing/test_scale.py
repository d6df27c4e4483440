"""Axes have round ends, coordinates few decimals, lines of steps few points."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from broker.drawing.scale import nice_axis, number
from broker.drawing.time_axis import TimeAxis, stepped


@given(st.floats(min_value=1e-6, max_value=1e12))
def test_an_axis_holds_its_values_in_few_round_steps(value: float) -> None:
    end, steps = nice_axis(value)
    assert end >= value * (1 - 1e-6)
    assert 1 <= steps <= 5
    leading = f"{end / steps:.0e}"[0]
    assert leading in "125"


def test_coordinates_have_at_most_one_decimal() -> None:
    assert [number(1.0), number(2.25), number(-0.04), number(10)] == ["1", "2.2", "0", "10"]


@given(st.lists(st.tuples(st.floats(0, 960), st.floats(0, 50)), min_size=1, max_size=400))
def test_a_line_of_steps_has_few_points_and_keeps_its_extremes_and_its_end(steps: list[tuple[float, float]]) -> None:
    rising = sorted((round(x, 1), round(y, 1)) for x, y in steps)
    path = stepped(rising, 960)
    heights = {float(each) for each in re.findall(r"[V,](-?[\d.]+)", path)}
    assert {min(y for _, y in rising), max(y for _, y in rising), rising[-1][1]} <= heights
    assert len(re.findall("V", path)) <= min(len(rising), 3 * 2 * 960)
    assert path.endswith("H960")


def test_the_axis_names_a_few_round_times() -> None:
    for end_ms, last in ((20_000, "20 s"), (632_000, "10 min"), (86_400_000, "24 h"), (6 * 10**12, None)):
        axis = TimeAxis(end_ms, left=150, width=960)
        names = [axis.name(at_ms) for at_ms in axis.ticks()]
        assert 4 <= len(names) <= 13
        assert last is None or names[-1] == last
    assert TimeAxis(1_000, left=150, width=960).x(500) == 150 + 960 / 2


def test_of_steps_within_half_a_pixel_the_lowest_the_highest_and_the_last_are_drawn() -> None:
    assert stepped([(0, 5), (0.1, 1), (0.2, 9), (0.3, 4), (0.4, 7)], 10) == "M0,1 H0V9 H0.4V7 H10"


def test_beyond_the_last_round_distance_it_is_doubled() -> None:
    axis = TimeAxis(13 * 86_400_000, left=150, width=960)
    assert [axis.name(at_ms) for at_ms in axis.ticks()][:3] == ["0 h", "48 h", "96 h"]


def test_a_rounding_error_adds_no_step_to_an_axis() -> None:
    assert nice_axis(0.1 + 0.2)[1] == 3
