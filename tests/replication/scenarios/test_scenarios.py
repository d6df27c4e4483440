"""Every fault story ends as it must, and a story that goes otherwise is noticed."""

from __future__ import annotations

import attrs
import pytest

from broker.error_codes import ErrorCode
from replication.scenarios import SCENARIOS, Answers, Look, Scenario, Story
from replication.scenarios.part_scenario import Fact, Tale
from replication.simulation.trace import silent


@pytest.mark.parametrize("story", SCENARIOS, ids=lambda story: story.name)
def test_a_story_goes_as_it_must(story: Story) -> None:
    assert story.play(silent).differences == ()


def _named(name: str) -> Scenario:
    found = next(story for story in SCENARIOS if story.name == name)
    assert isinstance(found, Scenario)
    return found


def test_a_story_that_goes_otherwise_is_noticed() -> None:
    wrong = attrs.evolve(
        _named("S20"),
        looks=(Look(20_000, leader=2, isr=(1, 2)),),
        answers=(Answers("Produced", ErrorCode.REQUEST_TIMED_OUT, count_min=1_000),),
        breaks=frozenset({"I6"}),
        lost_min=1,
        lost_max=9,
    )
    first, second, *rest = wrong.play().differences
    assert first == "at 20000 ms leader is 1, expected 2"
    assert second.endswith("answers Produced say REQUEST_TIMED_OUT (7), expected 1000 or more")
    assert rest == [
        "I6 not broken, expected to be",
        "0 records of acks=all are lost, expected 1 to 9",
    ]
    assert attrs.evolve(_named("S01"), gone=(7,)).play().differences == ("acknowledged and gone are (), expected (7,)",)


def test_a_tale_that_goes_otherwise_is_noticed() -> None:
    tale = next(story for story in SCENARIOS if isinstance(story, Tale))
    first, *rest = tale.expected
    wrong = attrs.evolve(tale, expected=(Fact(first.words, "no"), *rest))
    assert wrong.play().differences == (f"{first}, expected {first.words} no",)


def test_names_are_unique_and_every_story_says_where_it_comes_from() -> None:
    assert len({story.name for story in SCENARIOS}) == len(SCENARIOS)
    assert all(story.title and story.how and story.source for story in SCENARIOS)
