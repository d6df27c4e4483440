"""Whole runs: the same for the same seed, sound for any, comparable between protocols; and the events of a scenario."""

from __future__ import annotations

import attrs
import pytest

from broker.units import DurationMs, TimeMs
from replication.groups.alone.group_run import GroupSimulation, run_group
from replication.groups.alone.scenario import SingleGroupScenario
from replication.groups.alone.scenarios import SCENARIOS
from replication.groups.alone.seeded_scenario import Shape, seeded_scenario
from replication.groups.client.assigning import GroupProtocol
from replication.groups.client.messages import Note
from replication.groups.member import Member
from replication.groups.plan import Event, EventKind
from tests.replication.groups.alone.runs import CONSUMER, COOPERATIVE, EAGER, SMALL, named, seeded

S61 = SCENARIOS["S61"]
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in (2, 5))]


def event(at_ms: int, kind: EventKind, target: str = "", for_ms: int = 0) -> Event:
    return Event(TimeMs(at_ms), kind, DurationMs(for_ms), target)


def with_events(scenario: SingleGroupScenario, *events: Event) -> SingleGroupScenario:
    """Return the scenario with further events."""
    every = sorted((*scenario.events, *events), key=lambda each: each.at_ms)
    return attrs.evolve(scenario, events=tuple(every))


@pytest.mark.parametrize("protocol", GroupProtocol)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_seeded_run_breaks_nothing_and_comes_to_rest(seed: int, protocol: GroupProtocol) -> None:
    group_run = seeded(seed, protocol)
    assert group_run.findings == ()
    last_ms = max(event.at_ms + event.for_ms for event in group_run.scenario.events)
    assert group_run.figures["settled_ms"] is not None
    # A static member that is restarted too early is refused, and started once more, until its former session is over.
    assert group_run.figures["settled_ms"] < last_ms + 120_000
    held = [span for span in group_run.spans if span.end_ms == group_run.scenario.duration_ms]
    assert len({span.partition for span in held}) == len(held) == len({span.partition for span in group_run.spans})


@pytest.mark.parametrize("seed", SEEDS)
def test_no_assignor_moves_less_than_the_least(seed: int) -> None:
    for protocol in GroupProtocol:
        group_run = seeded(seed, protocol)
        assert group_run.figures["move_count"] >= group_run.figures["least_move_count"] >= 0


@pytest.mark.parametrize("seed", SEEDS)
def test_members_that_keep_what_nobody_else_gets_are_given_less_back(seed: int) -> None:
    assert seeded(seed, COOPERATIVE).figures["return_count"] < seeded(seed, EAGER).figures["return_count"]
    assert seeded(seed, CONSUMER).figures["return_count"] < seeded(seed, EAGER).figures["return_count"]


def test_every_record_is_read_and_what_is_read_twice_is_counted() -> None:
    for protocol in GroupProtocol:
        group_run = named("S61", protocol)
        due = 6 * group_run.scenario.records_per_second * 239
        assert group_run.figures["read_count"] - group_run.figures["duplicate_count"] > due - 6 * 20 * 10
        # What b had read since its last commit, five seconds at most, is read again by the others.
        assert 0 < group_run.figures["duplicate_count"] <= 2 * 20 * 6


@pytest.mark.deep
def test_an_eager_group_assigned_by_sticky_moves_less_than_one_assigned_by_range() -> None:
    scenario = seeded_scenario(2, SMALL)
    sticky = run_group(attrs.evolve(scenario, assignor="sticky"), EAGER, 2)
    assert sticky.findings == ()
    assert sticky.figures["move_count"] < seeded(2, EAGER).figures["move_count"]


def test_a_plan_leaves_somebody_alive_and_brings_everybody_back() -> None:
    for seed in range(50):
        scenario = seeded_scenario(seed, Shape())
        gone: set[str] = set()
        for event in scenario.events:
            if event.kind in (EventKind.CRASH, EventKind.CLOSE):
                gone.add(event.target)
            elif event.kind is EventKind.START:
                gone.discard(event.target)
            assert len(gone) < len(scenario.members)
        assert not gone
        assert max(event.at_ms + event.for_ms for event in scenario.events) <= scenario.duration_ms - 180_000


@pytest.mark.parametrize(("protocol", "fenced"), [(EAGER, {"b", "b+"}), (COOPERATIVE, {"b", "b+"}), (CONSUMER, {"b+"})])
def test_a_second_process_that_ended_by_itself_is_started_again(protocol: GroupProtocol, fenced: set[str]) -> None:
    """Classic processes of one group.instance.id fence each other for good; of KIP-848's the first one stays."""
    scenario = attrs.evolve(SCENARIOS["S65-twin"], restart_ms=DurationMs(5_000))
    deaths = run_group(scenario, protocol, 1).deaths
    assert {death.text.partition(":")[0] for death in deaths} == fenced
    assert len(deaths) > 20


def test_a_run_includes_the_last_millisecond_of_its_scenario() -> None:
    end_ms = int(S61.duration_ms)
    last = event(end_ms, EventKind.CRASH, "c")
    run = run_group(with_events(S61, last, event(end_ms + 1, EventKind.CRASH, "a")), EAGER, 1)
    assert max(span.end_ms for span in run.spans) == end_ms


@pytest.mark.deep
def test_events_of_a_member_that_does_not_run_change_nothing() -> None:
    early = (event(0, kind, "c", for_ms=500) for kind in (EventKind.CLOSE, EventKind.FREEZE, EventKind.STALL))
    assert run_group(with_events(SCENARIOS["S66"], *early), EAGER, 1).spans == named("S66", EAGER).spans
    late = event(70_000, EventKind.CRASH, "b"), event(80_000, EventKind.BOUNCE, "b", 1_000)
    assert run_group(with_events(S61, *late), EAGER, 1).spans == named("S61", EAGER).spans


def test_crash_leading_waits_for_a_join_response_that_names_the_member_as_leader() -> None:
    starts = tuple(each for each in S61.events if each.kind is EventKind.START and each.target != "c")
    scenario = with_events(attrs.evolve(S61, events=starts), event(1_001, EventKind.CRASH_LEADING, "b"))
    simulation = GroupSimulation(scenario, EAGER, 1)
    simulation.run()
    assert [member.plan.spec.name for member in simulation.alive()] == ["a", "b"], "a leads"
    simulation = GroupSimulation(with_events(scenario, event(60_000, EventKind.CLOSE, "a")), EAGER, 1)
    simulation.run()
    assert simulation.alive() == []
    assert simulation.ledger.departures["left"] == 1


def polls_of_b(*events: Event) -> list[int]:
    """Return the times at which b did something in S61 with further events."""
    times: list[int] = []
    simulation = GroupSimulation(with_events(S61, *events), EAGER, 1)
    noted = simulation.noted

    def note(member: Member, note: Note, now_ms: TimeMs) -> None:
        if member.plan.spec.name == "b":
            times.append(simulation.now_ms)
        noted(member, note, now_ms)

    simulation.noted = note  # type: ignore[method-assign]  # Looks at what passes.
    simulation.run()
    return times


def test_a_frozen_process_does_nothing_until_the_later_of_two_freezes_ends() -> None:
    times = polls_of_b(event(50_000, EventKind.FREEZE, "b", 5_000), event(52_000, EventKind.FREEZE, "b", 7_900))
    assert max(at_ms for at_ms in times if at_ms < 59_900) <= 50_000
    assert 59_900 in times
    assert polls_of_b(event(55_000, EventKind.FREEZE, "b", 20_000))[-1] == 60_000, "b dies while it is frozen"


@pytest.mark.parametrize("protocol", GroupProtocol)
def test_held_commits_reach_the_coordinator_late_and_are_accepted(protocol: GroupProtocol) -> None:
    held = run_group(with_events(S61, event(20_000, EventKind.HOLD_COMMITS, "a", 12_000)), protocol, 1)
    assert held.figures["commits"]["NONE"] >= named("S61", protocol).figures["commits"]["NONE"] - 4
    assert held.findings == ()
