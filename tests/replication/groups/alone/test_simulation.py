"""One simulated group: which events happen, what befalls a process and when, and what is counted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from unittest.mock import Mock

import attrs
import pytest

from broker.errors import UsageError
from broker.group.classic import Ticket
from broker.group.service import Request
from broker.ids import BrokerId
from broker.units import DurationMs, TimeMs
from replication.groups.alone.group_run import GroupRun, run_group
from replication.groups.alone.processes import Process
from replication.groups.alone.scenario import SingleGroupScenario
from replication.groups.alone.scenarios import SCENARIOS
from replication.groups.alone.simulation import GroupSimulation, Watcher
from replication.groups.client.messages import Note, PartitionsRevoked, Read, Why
from replication.groups.common.events import Event, EventKind
from tests.replication.groups.alone.runs import CONSUMER, EAGER, named

S61 = SCENARIOS["S61"]


def event(at_ms: int, kind: EventKind, target: str = "", for_ms: int = 0, count: int = 0) -> Event:
    return Event(at_ms=TimeMs(at_ms), kind=kind, target=target, for_ms=DurationMs(for_ms), count=count)


def with_events(scenario: SingleGroupScenario, *events: Event) -> SingleGroupScenario:
    """Return a scenario with more events."""
    ordered = sorted((*scenario.events, *events), key=lambda each: each.at_ms)
    return attrs.evolve(scenario, events=tuple(ordered))


class Steps(Watcher):
    """Counts the steps of a simulation."""

    def __init__(self) -> None:
        self.count = 0

    def stepped(self, simulation: GroupSimulation) -> None:
        self.count += 1


def test_a_scenario_that_names_nobody_of_its_members_is_not_run() -> None:
    with pytest.raises(UsageError) as error:
        run_group(with_events(S61, event(1, EventKind.START, "z")), EAGER, 1)
    assert str(error.value) == "scenario 'S61': there is no member 'z' for start"


def test_every_event_counts_once_and_the_watchers_look_after_each() -> None:
    simulation, steps = GroupSimulation(S61, EAGER, 1), Steps()
    simulation.watchers.append(steps)
    simulation.run()
    assert simulation.event_count == steps.count == named("S61", EAGER).event_count


def test_a_run_ends_at_the_end_of_its_scenario_and_what_is_due_then_still_happens() -> None:
    end_ms = int(S61.duration_ms)
    last = event(end_ms, EventKind.CRASH, "c")
    run = run_group(with_events(S61, last, event(end_ms + 1, EventKind.CRASH, "a")), EAGER, 1)
    assert (run.marks[-1].at_ms, run.marks[-1].text) == (end_ms, "crash c")
    assert max(span.end_ms for span in run.spans) == end_ms


def test_who_owns_a_partition_at_the_end_owns_it_to_the_last_millisecond_though_nothing_happens_in_it() -> None:
    run = run_group(attrs.evolve(S61, duration_ms=DurationMs(50_123)), EAGER, 1)
    assert {span.end_ms for span in run.spans if span.start_ms > 5_000} == {50_123}


def test_what_would_befall_a_member_that_has_not_come_yet_does_not() -> None:
    early = (event(0, kind, "c", for_ms=500) for kind in (EventKind.CLOSE, EventKind.FREEZE, EventKind.STALL))
    run = run_group(with_events(SCENARIOS["S66"], *early), EAGER, 1)
    assert [(span.partition, span.member, span.end_ms) for span in run.spans] == [
        (span.partition, span.member, span.end_ms) for span in named("S66", EAGER).spans
    ]


def test_a_member_that_is_to_die_leading_lives_until_it_leads() -> None:
    """What comes before is no JoinGroup response, or one that names another leader."""
    calm = attrs.evolve(S61, events=tuple(each for each in S61.events if each.kind is EventKind.START))
    scenario = with_events(calm, event(1_001, EventKind.CRASH_LEADING, "b"))
    run = run_group(scenario, EAGER, 1)
    assert {span.member for span in run.spans if span.end_ms == run.scenario.duration_ms} == {"a", "b", "c"}
    leaving = with_events(scenario, event(60_000, EventKind.CLOSE, "a"))
    simulation = GroupSimulation(leaving, EAGER, 1)
    simulation.run()
    assert [process.name for process in simulation.alive()] == ["c"]
    died = run_group(leaving, EAGER, 1)
    assert "b" not in {span.member for span in died.spans if span.end_ms == run.scenario.duration_ms}
    assert died.departures == {"left": 1, "session timeout": 1}


class Notes(Watcher):
    """Notes what each process does, and when."""

    def __init__(self) -> None:
        self.of: dict[str, list[tuple[int, Note]]] = {}

    def noted(self, simulation: GroupSimulation, process: Process, note: Note) -> None:
        self.of.setdefault(process.name, []).append((simulation.now_ms, note))


def test_a_process_that_dies_while_it_stands_still_does_not_go_on() -> None:
    simulation, notes = (
        GroupSimulation(with_events(S61, event(55_000, EventKind.FREEZE, "b", 20_000)), EAGER, 1),
        Notes(),
    )
    simulation.watchers.append(notes)
    simulation.run()
    last_ms, last = notes.of["b"][-1]
    assert last_ms == 60_000
    assert isinstance(last, PartitionsRevoked)
    assert last.why is Why.CRASHED


def test_a_process_that_stands_still_twice_goes_on_after_the_later_end() -> None:
    freezes = event(50_000, EventKind.FREEZE, "b", 5_000), event(52_000, EventKind.FREEZE, "b", 7_900)
    simulation, notes = GroupSimulation(with_events(S61, *freezes), EAGER, 1), Notes()
    simulation.watchers.append(notes)
    simulation.run()
    times = [at_ms for at_ms, _ in notes.of["b"]]
    assert max(at_ms for at_ms in times if at_ms < 59_900) <= 50_000
    assert 59_900 in times


def test_a_pause_that_ends_as_the_next_poll_is_due_delays_nothing() -> None:
    simulation, notes = GroupSimulation(with_events(S61, event(50_100, EventKind.FREEZE, "b", 400)), EAGER, 1), Notes()
    simulation.watchers.append(notes)
    simulation.run()
    polls = [at_ms for at_ms, note in notes.of["b"] if isinstance(note, Read) and 50_000 <= at_ms < 52_000]
    assert sorted(set(polls)) == [50_000, 50_500, 51_000, 51_500]


def test_nothing_befalls_a_process_that_has_ended() -> None:
    """In S61 b dies at 60 s; who is dead does not die again, and is not started again after a bounce."""
    late = event(70_000, EventKind.CRASH, "b"), event(80_000, EventKind.BOUNCE, "b", 1_000)
    assert run_group(with_events(S61, *late), EAGER, 1).spans == named("S61", EAGER).spans


def test_what_comes_to_a_frozen_process_waits_and_what_comes_as_it_goes_on_does_not() -> None:
    simulation = GroupSimulation(S61, EAGER, 1)
    done: list[int] = []
    client = Mock(is_over=False, advance=Mock(return_value=()), next_ms=Mock(return_value=None))
    process = Process("a", client, frozen_until_ms=5_000)
    for at_ms in (4_999, 5_000):
        simulation.now_ms = TimeMs(at_ms)
        simulation._when_awake(process, partial(done.append, at_ms))
    assert done == [5_000]
    simulation._thaw(process)
    assert done == [5_000, 4_999]


def counts(run: GroupRun) -> dict[str, object]:
    """Return what a run has counted, by name."""
    kinds = (int, float, str, Mapping, type(None))
    return {name: value for name, value in attrs.asdict(run, recurse=False).items() if isinstance(value, kinds)}


def test_the_figures_are_every_count_of_a_run_and_nothing_of_its_history() -> None:
    run = named("S65-twin", EAGER)
    figures = run.figures()
    assert {name: figures[name] for name in counts(run)} == counts(run)
    assert figures.keys() - counts(run).keys() == {"protocol", "deaths", "findings"}
    assert figures["deaths"] == [{"at_ms": death.at_ms, "text": death.text} for death in run.deaths] != []


class Coordinators(Watcher):
    """Notes which broker coordinates, in order."""

    def __init__(self) -> None:
        self.brokers: list[BrokerId] = []

    def stepped(self, simulation: GroupSimulation) -> None:
        if simulation.hosting.coordinator not in self.brokers[-1:]:
            self.brokers.append(simulation.hosting.coordinator)


def test_the_brokers_coordinate_in_turn() -> None:
    seen = Coordinators()
    failovers = (event(at_ms, EventKind.FAILOVER, for_ms=1_000) for at_ms in (60_000, 90_000, 120_000))
    simulation = GroupSimulation(with_events(S61, *failovers), CONSUMER, 1)
    simulation.watchers.append(seen)
    simulation.run()
    assert seen.brokers == [0, 1, 2, 0]


@pytest.mark.parametrize("member_count", range(4))
def test_the_mean_latency_is_the_total_over_the_rebalances_to_a_tenth_of_a_millisecond(member_count: int) -> None:
    """Java's rebalance-latency-avg; 0 where nobody came."""
    members = S61.members[:member_count] or S61.members
    starts = tuple(event(each * 7, EventKind.START, S61.members[each].name) for each in range(member_count))
    run = run_group(attrs.evolve(S61, members=members, events=starts), EAGER, 1)
    assert run.rebalance_total == member_count
    assert run.rebalance_latency_avg == round(run.rebalance_latency_total / max(member_count, 0.5), 1)
    assert (run.rebalance_latency_total > 0) == (member_count > 0)


@pytest.mark.parametrize("name", ["S60", "S65-twin"])
def test_a_mean_latency_that_is_no_tenth_is_rounded_to_one(name: str) -> None:
    run = named(name, EAGER)
    mean_ms = run.rebalance_latency_total / run.rebalance_total
    assert run.rebalance_latency_avg == round(mean_ms, 1) != round(mean_ms, 2)


class Arrivals(Watcher):
    """Notes when requests arrive at a coordinator."""

    def __init__(self) -> None:
        self.at_ms: list[int] = []

    def asked(self, simulation: GroupSimulation, ticket: Ticket, request: Request) -> None:
        self.at_ms.append(simulation.now_ms)


@pytest.mark.parametrize("seed", range(5))
def test_a_message_takes_a_millisecond_at_least(seed: int) -> None:
    """A process asks for its coordinator, and hears it, before its first request to it is on its way."""
    seen = Arrivals()
    starts = (event(1_000, EventKind.START, S61.members[0].name),)
    simulation = GroupSimulation(attrs.evolve(S61, members=S61.members[:1], events=starts), CONSUMER, seed)
    simulation.watchers.append(seen)
    simulation.run()
    assert seen.at_ms[0] >= 1_003
