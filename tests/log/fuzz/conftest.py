"""Two tiers of fuzzing: some hundred inputs a parser by default, all of them with `-m deep`."""

from __future__ import annotations

import pytest

from tests.log.fuzz import target

FAST_COUNT = 400
DEEP_COUNT = 100_000


@pytest.fixture(
    params=[pytest.param(FAST_COUNT, id="fast"), pytest.param(DEEP_COUNT, id="deep", marks=pytest.mark.deep)]
)
def input_count(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Set how many inputs `fuzz` tries."""
    count: int = request.param
    monkeypatch.setattr(target, "input_count", count)
    return count
