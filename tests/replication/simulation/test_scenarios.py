"""Every fault story ends as it must, and a story that goes otherwise is noticed."""

from __future__ import annotations

import attrs
import pytest

from replication.scenarios import SCENARIOS, Look, Scenario, differences


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_story_goes_as_it_must(scenario: Scenario) -> None:
    assert differences(scenario, scenario.play()) == []


def test_a_story_that_goes_otherwise_is_noticed() -> None:
    first = SCENARIOS[0]
    outcome = first.play()
    wrong = attrs.evolve(first, looks=(Look(20_000, leader=2, isr=(1, 2)),), lost_min=1, lost_max=9)
    assert differences(wrong, outcome) == [
        "at 20000 ms leader is 1, expected 2",
        "0 records of acks=all are lost, expected 1 to 9",
    ]
    assert differences(attrs.evolve(first, breaks=frozenset({"I6"})), outcome) == ["none of I6 is broken"]


def test_names_are_unique_and_every_story_says_where_it_comes_from() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    assert all(scenario.how and scenario.source for scenario in SCENARIOS)
