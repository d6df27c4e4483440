"""Whole runs: the same for the same seed, sound for any, and comparable between protocols."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from unittest.mock import Mock

import attrs
import pytest

from broker.errors import UsageError
from broker.group.classic import Ticket
from broker.group.consumer import ConsumerGroupHeartbeatRequest
from broker.group.service import Request as ServiceRequest
from broker.units import DurationMs
from replication.groups.alone.group_run import run_group
from replication.groups.alone.processes import Process
from replication.groups.alone.scenarios import SCENARIOS
from replication.groups.alone.seeded_scenario import Shape, seeded_scenario
from replication.groups.alone.simulation import GroupSimulation, Watcher
from replication.groups.client.protocols import GroupProtocol
from replication.groups.common.events import EventKind
from tests.replication.groups.alone.runs import CONSUMER, COOPERATIVE, EAGER, SMALL, named, seeded, watched

_DIGEST = """
import hashlib
from replication.groups.alone.group_run import run_group
from replication.groups.alone.seeded_scenario import Shape, seeded_scenario
from replication.groups.client.protocols import GroupProtocol
scenario = seeded_scenario(5, Shape(members=3, partitions=5, minutes=6))
runs = [run_group(scenario, protocol, 5) for protocol in GroupProtocol]
print(hashlib.sha256(repr([(run.figures(), run.spans, run.generations_ms) for run in runs]).encode()).hexdigest())
"""


def test_the_same_seed_gives_the_same_run_whatever_the_hash_seed() -> None:
    def digest(hash_seed: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", _DIGEST],
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert digest("1") == digest("2") != ""


@pytest.mark.parametrize("protocol", GroupProtocol)
@pytest.mark.parametrize("seed", range(3))
def test_a_seeded_run_breaks_nothing_and_comes_to_rest(seed: int, protocol: GroupProtocol) -> None:
    group_run = seeded(seed, protocol)
    assert group_run.findings == ()
    last_ms = max(event.at_ms + event.for_ms for event in group_run.scenario.events)
    assert group_run.settled_ms is not None
    # A static member that is restarted too early is refused, and started once more, until its former session is over.
    assert group_run.settled_ms < last_ms + 120_000
    held = [span for span in group_run.spans if span.end_ms == group_run.scenario.duration_ms]
    assert len({span.partition for span in held}) == len(held) == len({span.partition for span in group_run.spans})


@pytest.mark.parametrize("seed", range(3))
def test_no_assignor_moves_less_than_the_least(seed: int) -> None:
    for protocol in GroupProtocol:
        group_run = seeded(seed, protocol)
        assert group_run.move_count >= group_run.least_move_count >= 0


@pytest.mark.parametrize("seed", range(3))
def test_members_that_keep_what_nobody_else_gets_are_given_less_back(seed: int) -> None:
    assert seeded(seed, COOPERATIVE).return_count < seeded(seed, EAGER).return_count
    assert seeded(seed, CONSUMER).return_count < seeded(seed, EAGER).return_count


def test_every_record_is_read_and_what_is_read_twice_is_counted() -> None:
    for protocol in GroupProtocol:
        group_run = named("S61", protocol)
        due = 6 * group_run.scenario.records_per_second * 239
        assert group_run.read_count - group_run.duplicate_count > due - 6 * 20 * 10
        # What b had read since its last commit, five seconds at most, is read again by the others.
        assert 0 < group_run.duplicate_count <= 2 * 20 * 6


def test_an_eager_group_assigned_by_sticky_moves_less_than_one_assigned_by_range() -> None:
    scenario = seeded_scenario(1, SMALL)
    sticky = run_group(attrs.evolve(scenario, assignor="sticky"), EAGER, 1)
    assert sticky.findings == ()
    assert sticky.move_count < seeded(1, EAGER).move_count


@pytest.mark.parametrize(
    ("protocol", "assignor"), [(EAGER, "random"), (CONSUMER, "server-range"), (CONSUMER, "random")]
)
def test_other_assignors_can_be_chosen(protocol: GroupProtocol, assignor: str) -> None:
    group_run = run_group(attrs.evolve(SCENARIOS["S61"], assignor=assignor), protocol, 1)
    assert (group_run.assignor, group_run.findings) == (assignor, ())


def test_an_assignor_that_the_protocol_does_not_take_is_refused() -> None:
    with pytest.raises(UsageError) as error:
        run_group(attrs.evolve(SCENARIOS["S61"], assignor="range"), COOPERATIVE, 1)
    assert str(error.value) == "a group of the cooperative protocol cannot be assigned by 'range'"


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


def test_a_seeded_plan_does_not_fit_into_four_minutes() -> None:
    with pytest.raises(UsageError) as error:
        seeded_scenario(1, Shape(minutes=4))
    assert str(error.value) == "4 minutes are too few for a seeded life; at least 5 are needed"


class Heartbeats(Watcher):
    """When each member's heartbeats arrived at the coordinator."""

    def __init__(self) -> None:
        self.at_ms: dict[str, list[int]] = {}

    def asked(self, simulation: GroupSimulation, ticket: Ticket, request: ServiceRequest) -> None:
        if isinstance(request, ConsumerGroupHeartbeatRequest) and request.member_id:
            self.at_ms.setdefault(request.member_id, []).append(simulation.now_ms)


def test_a_member_whose_answer_is_lost_hears_of_it_at_once() -> None:
    """The connection breaks, so that nobody waits for request.timeout.ms (30 s)."""
    heartbeats = Heartbeats()
    watched("S69", CONSUMER, heartbeats)
    assert len(heartbeats.at_ms) == 2
    for times in heartbeats.at_ms.values():
        assert max(later - earlier for earlier, later in pairwise(times)) < 10_000


@pytest.mark.parametrize(("protocol", "fenced"), [(EAGER, {"b", "b+"}), (COOPERATIVE, {"b", "b+"}), (CONSUMER, {"b+"})])
def test_a_twin_that_ended_by_itself_is_started_again(protocol: GroupProtocol, fenced: set[str]) -> None:
    """Classic processes of one group.instance.id fence each other for good; of KIP-848's the first one stays."""
    scenario = attrs.evolve(SCENARIOS["S65-twin"], restart_ms=DurationMs(5_000))
    deaths = run_group(scenario, protocol, 1).deaths
    assert {death.text.partition(":")[0] for death in deaths} == fenced
    assert len(deaths) > 20


def test_messages_of_one_connection_arrive_in_their_order_but_for_a_commit_that_is_held() -> None:
    simulation = GroupSimulation(SCENARIOS["S69"], CONSUMER, 1)
    process = Process("a", Mock())
    for is_out in (True, False):
        times = [simulation._way(process, is_out=is_out) for _ in range(200)]
        assert times == sorted(times)
    held_ms = simulation._way(process, is_out=True, extra_ms=60_000)
    assert simulation._way(process, is_out=True) < held_ms, "what comes after a held commit does not wait for it"


def test_a_run_in_which_nobody_ever_came_has_no_time_without_an_owner() -> None:
    """A partition counts from its first owner on."""
    scenario = attrs.evolve(SCENARIOS["S60"], events=(), duration_ms=DurationMs(20_000))
    group_run = run_group(scenario, GroupProtocol.EAGER, 1)
    assert (group_run.unowned_ms, group_run.unowned_ms_max, group_run.spans) == (0, 0, ())
