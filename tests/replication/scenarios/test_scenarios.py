"""Every fault scenario ends as it must, and a scenario that goes otherwise is noticed."""

from __future__ import annotations

import attrs
import pytest

from broker.error_codes import ErrorCode
from replication.scenarios import SCENARIOS, ExpectedResponses, ExpectedState, NamedScenario, Scenario
from replication.scenarios.catalogue import scenario_number
from replication.scenarios.result import ComponentScenario, Fact
from replication.simulation.trace import discard_line


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_scenario_goes_as_it_must(scenario: NamedScenario) -> None:
    assert scenario.play(discard_line).differences == ()


def _named(name: str) -> Scenario:
    found = next(scenario for scenario in SCENARIOS if scenario.name == name)
    assert isinstance(found, Scenario)
    return found


def test_a_scenario_that_goes_otherwise_is_noticed() -> None:
    wrong = attrs.evolve(
        _named("S20"),
        expected_states=(ExpectedState(20_000, leader=2, isr=(1, 2)),),
        expected_responses=(ExpectedResponses("ProduceResponse", ErrorCode.REQUEST_TIMED_OUT, count_min=1_000),),
        breaks=frozenset({"I6"}),
        lost_min=1,
        lost_max=9,
    )
    first, second, *rest = wrong.play().differences
    assert first == "at 20000 ms leader is 1, expected 2"
    assert second.endswith("answers ProduceResponse say REQUEST_TIMED_OUT (7), expected 1000 or more")
    assert rest == [
        "I6 not broken, expected to be",
        "0 records of acks=all are lost, expected 1 to 9",
    ]
    assert attrs.evolve(_named("S01"), lost_values=(7,)).play().differences == (
        "lost acknowledged values are (), expected (7,)",
    )


def test_a_scenario_without_a_cluster_that_goes_otherwise_is_noticed() -> None:
    component_scenario = next(scenario for scenario in SCENARIOS if isinstance(scenario, ComponentScenario))
    first, *rest = component_scenario.expected
    wrong = attrs.evolve(component_scenario, expected=(Fact(first.words, "no"), *rest))
    assert wrong.play().differences == (f"{first}, expected {first.words} no",)


def test_names_are_unique_and_every_scenario_says_where_it_comes_from() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    assert all(scenario.title and scenario.how and scenario.source for scenario in SCENARIOS)


NUMBERED = [("S03b-2.7", 3), ("S98-compact", 98), ("S100", 100), ("S100-before", 100)]


@pytest.mark.parametrize(("name", "number"), NUMBERED)
def test_scenarios_are_sorted_by_their_whole_number(name: str, number: int) -> None:
    assert scenario_number(name) == number


def test_the_list_is_in_the_order_of_numbers() -> None:
    numbers = [scenario_number(scenario.name) for scenario in SCENARIOS]
    assert numbers == sorted(numbers)
