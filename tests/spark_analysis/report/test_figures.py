"""Numbers are printed one way each, and unknown is never zero."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_analysis.report.figures import count, decimal, percent, ppm, quantity, share_of


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.0, "0 %"), (1e-9, "<0.1 %"), (0.0004, "<0.1 %"), (0.0005, "0.1 %"), (0.1234, "12.3 %"), (1.0, "100.0 %")],
)
def test_a_share_is_printed_as_per_cent(share: float, shown: str) -> None:
    assert percent(ppm(share)) == shown


@given(st.floats(min_value=0, max_value=1))
def test_only_nothing_is_printed_as_zero_per_cent(share: float) -> None:
    assert (percent(ppm(share)) == "0 %") == (share == 0)


def test_unknown_is_a_dash_and_not_zero() -> None:
    assert [count(None), decimal(None), quantity(None, "bytes"), percent(ppm(None)), share_of(None, 3)] == ["–"] * 5
    assert [count(0), decimal(0.0), quantity(0, "bytes"), percent(0), share_of(0, 3)] == [
        "0",
        "0.00",
        "0 B",
        "0 %",
        "0 %",
    ]
