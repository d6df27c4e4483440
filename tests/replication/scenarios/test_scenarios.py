"""Every fault scenario ends as it must, and a scenario that goes otherwise is noticed."""

from __future__ import annotations

from typing import Final

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.units import MINUTE_MS, DurationMs
from replication.rules.switches import CURRENT
from replication.scenarios import SCENARIOS, ExpectedResponses, ExpectedState, NamedScenario, Scenario
from replication.scenarios.catalogue import scenario_number
from replication.scenarios.catalogue.common import QUIET_TRIO, reassign
from replication.scenarios.extension import ScenarioExtension
from replication.scenarios.operations import HoldMessages, SendRecord
from replication.scenarios.result import ComponentScenario, Fact
from replication.simulation import run
from replication.simulation.history import discard_line

OLD_BUGS: Final = [
    scenario
    for scenario in SCENARIOS
    if isinstance(scenario, Scenario)
    and scenario.name.endswith("-before")
    and scenario.name != "S47-before"  # The bug is the client's.
    and not scenario.role_settings.has_zookeeper
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_scenario_goes_as_it_must(scenario: NamedScenario) -> None:
    assert scenario.play(discard_line).differences == ()


@pytest.mark.parametrize("scenario", OLD_BUGS, ids=lambda scenario: scenario.name)
def test_the_newest_rules_break_nothing_where_an_old_bug_did(scenario: Scenario) -> None:
    settings = attrs.evolve(scenario.settings, rules=CURRENT)
    options = attrs.evolve(scenario, settings=settings, heal_ms_max=DurationMs(3 * MINUTE_MS)).options()
    outcome = run(options, scenario.plan, extension=ScenarioExtension(scenario.operations, ()))
    assert outcome.findings == ()
    report = outcome.durability
    assert (report.lost_by_all if scenario.is_strict else report.lost_for_no_reason) == ()


def removed_and_added_again() -> Scenario:
    """Broker 2 is removed, deletes its log, and is added again; the leader learns of both at once.

    It must forget the old fetch offset of 2, which it counts in its ISR until then (Vanlightly/kafka-tlaplus, 6.5.4).
    """
    return attrs.evolve(
        QUIET_TRIO,
        name="removed and added again",
        operations=(
            SendRecord(5_000, 0),
            HoldMessages(5_990, 6_500, "MetadataFetchResponse", receiver=0),
            reassign(6_000, 0, 1),
            HoldMessages(6_150, 20_000, "FetchResponse", receiver=2),
            reassign(6_200, 0, 1, 2),
        ),
        expected_states=(
            ExpectedState(6_100, replicas=(0, 1), isr=(0, 1), leader_epoch=1),
            ExpectedState(15_000, replicas=(0, 1, 2), isr=(0, 1), logs=((0,), (0,), ())),
            ExpectedState(30_000, replicas=(0, 1, 2), isr=(0, 1, 2), logs=((0,), (0,), (0,))),
        ),
        lost_values=(),
        duration_ms=DurationMs(40_000),
    )


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


def test_a_scenario_without_a_cluster_that_goes_otherwise_is_noticed() -> None:
    component_scenario = next(scenario for scenario in SCENARIOS if isinstance(scenario, ComponentScenario))
    first, *rest = component_scenario.expected
    wrong = attrs.evolve(component_scenario, expected=(Fact(first.words, "no"), *rest))
    assert wrong.play().differences == (f"{first}, expected {first.words} no",)


def test_names_are_unique_in_the_order_of_their_numbers_with_a_source_each() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    assert all(scenario.title and scenario.how and scenario.source for scenario in SCENARIOS)
    numbers = [scenario_number(scenario.name) for scenario in SCENARIOS]
    assert numbers == sorted(numbers)
    assert [scenario_number(name) for name in ("S03b-2.7", "S98-compact", "S100-before")] == [3, 98, 100]
