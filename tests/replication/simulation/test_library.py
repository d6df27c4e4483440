"""The simulation as a library: faults and options by hand, injected faults, own invariants, messages from outside."""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable
from typing import Any

import attrs
import pytest

import replication.strategies
from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerId
from broker.units import DurationMs, TimeMs
from replication.roles.messages import ElectLeaders, ElectLeadersResponse, Message
from replication.rules.election import Choice, Elected, Election, PolicyError
from replication.rules.settings import PartitionSettings
from replication.rules.switches import without
from replication.simulation import (
    Event,
    Fault,
    FaultKind,
    FollowerOf,
    LeaderOf,
    Options,
    Simulation,
    elected_by,
    placed,
    quiet,
    run,
    swarm,
)
from replication.strategies import PolicyFailure, check_policy

KILL = FaultKind.KILL
TEN_SECONDS = DurationMs(10_000)


# Faults by hand.


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Fault(5_000, "KILL", 1), "the kind of a fault is 'KILL'; wanted is a FaultKind, such as "),
        (lambda: Fault(12.0, KILL, 1), "start_ms of KILL is 12.0; allowed are whole numbers from 0 on"),
        (lambda: Fault(5_000, KILL, 1, 3.5), "duration_ms of KILL is 3.5; allowed are whole numbers from 0 on"),
        (lambda: Fault(5_000, KILL, True), "broker of KILL is True; allowed are whole numbers from 0 on"),
        (lambda: Fault(5_000, KILL, -1), "broker of KILL is -1; allowed are whole numbers from 0 on"),
        (lambda: Fault(5_000, KILL), "KILL strikes a broker; give broker="),
        (lambda: Fault(5_000, KILL, rack=1), "KILL strikes a broker, and is given rack"),
        (lambda: Fault(5_000, KILL, 1, broker=2), "KILL strikes a broker, and is given broker and target"),
        (lambda: Fault(5_000, FaultKind.HOLD, broker=1), "HOLD strikes the whole cluster, and is given broker"),
        (lambda: Fault(5_000, FaultKind.REASSIGN, aim=LeaderOf(0)), "REASSIGN strikes a partition, and is given Lead"),
        (
            lambda: Fault(5_000, KILL, 1, jump_ms=3),
            "jump_ms is of CLOCK_JUMP alone, in the place of ",
        ),
        (lambda: Fault(5_000, FaultKind.HOLD, message="Mail"), "message 'Mail' is never held; allowed are AlterPart"),
        (lambda: Fault(5_000, KILL, 1, choice="no"), "choice of KILL is 'no'; allowed are whole numbers"),
        (lambda: LeaderOf("0"), "the partition is '0'; allowed are whole numbers from 0 on"),
        (
            lambda: Simulation(quiet(1, TEN_SECONDS), Fault(5_000, KILL, 1)),
            "a plan is a tuple of faults, and one fault ",
        ),
        (
            lambda: run(quiet(1, TEN_SECONDS), [Fault(5_000, KILL, 3)]),
            "KILL strikes broker 3; the cluster has brokers 0 ",
        ),
        (lambda: run(quiet(1, TEN_SECONDS), [7]), "a plan holds faults, and 7 is none"),
        (
            lambda: run(quiet(1, TEN_SECONDS), [Fault(5_000, KILL, broker=LeaderOf(9))]),
            "KILL strikes partition 9; the cluster has partitions 0 to 1",
        ),
    ],
)
def test_a_fault_that_cannot_be_is_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        make()
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault(5_000, KILL, 1, 9_000), "at 5000 ms KILL broker 1 for 9000 ms"),
        (Fault(5_000, KILL, broker=FollowerOf(2)), "at 5000 ms KILL a follower in sync of partition 2 for 0 ms"),
        (Fault(5_000, FaultKind.RACK_OUTAGE, rack=2, duration_ms=7), "at 5000 ms RACK_OUTAGE rack 2 for 7 ms"),
        (Fault(5_000, FaultKind.HOLD, message="Fetch", duration_ms=7), "at 5000 ms HOLD Fetch for 7 ms"),
        (Fault(5_000, FaultKind.CONTROLLER_FAILOVER), "at 5000 ms CONTROLLER_FAILOVER"),
        (Fault(5_000, FaultKind.CLOCK_JUMP, broker=0, jump_ms=-3), "at 5000 ms CLOCK_JUMP broker 0 by -3 ms"),
        (
            Fault(5_000, FaultKind.REASSIGN, partition=1, duration_ms=7, choice=5),
            "at 5000 ms REASSIGN partition 1 for 7 ms (choice 5)",
        ),
    ],
)
def test_a_fault_names_its_numbers_and_its_repr_makes_it_again(fault: Fault, text: str) -> None:
    assert str(fault) == text
    assert eval(repr(fault)) == fault


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"duration_ms": 1.5}, "the duration in ms is 1.5; allowed are whole numbers from 1 to "),
        ({"brokers": "3"}, "the number of brokers is '3'; allowed are whole numbers from 1 to 100"),
        ({"acks": ("all",)}, "acks are ('all',); allowed are -1 (all), 0 and 1"),
        ({"fault_ms": (("KILL", 5_000),)}, "fault_ms has 'KILL' every 5000 ms; wanted is a FaultKind and a whole "),
        ({"topics": (("a", 2), ("b", 1))}, "topics are (('a', 2), ('b', 1)); wanted are different names whose part"),
        ({"unclean_election": "yes"}, "unclean.leader.election.enable is 'yes'; allowed are True and False"),
    ],
)
def test_options_that_cannot_be_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        Options(**{"seed": 1, **changes})
    assert str(refused.value).startswith(said)


def test_settings_of_partitions_are_options_and_settings_given_later_take_their_place() -> None:
    options = Options(seed=1, unclean_election=True, min_isr=1, lag_ms_max=DurationMs(5_000))
    assert (options.settings.unclean_election, options.settings.min_isr, options.settings.lag_ms_max) == (
        True,
        1,
        5_000,
    )
    assert attrs.evolve(options, brokers=4).settings == options.settings
    other = replication.simulation.options.with_partition_settings(options, PartitionSettings(min_isr=3))
    assert (other.settings.unclean_election, other.settings.min_isr) == (False, 3)


def test_the_call_of_a_run_repeats_it() -> None:
    options = attrs.evolve(swarm(3, TEN_SECONDS, without(swarm(3, TEN_SECONDS).settings.rules, "maximal_isr")))
    outcome = run(options, (Fault(5_000, KILL, broker=LeaderOf(0), duration_ms=1_000),))
    names = {name: getattr(replication.simulation, name) for name in replication.simulation.__all__}
    settings = replication.rules.settings
    roles = replication.roles.settings
    names |= {"RoleSettings": roles.RoleSettings, "PartitionSettings": settings.PartitionSettings}
    again = eval(outcome.call, {**names, "Rules": replication.Rules})
    assert (again.digest, again.options) == (outcome.digest, options)


# Policies.


def stays(answer: object) -> Any:
    return lambda _ballot, _election, _rules: answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (3, "the election policy answers 3; wanted is Elected(leader, choice)"),
        (Elected(BrokerId(77), Choice.IN_SYNC), "the election policy elects broker 77; the replicas are "),
        (Elected("a", Choice.IN_SYNC), "the election policy answers Elected(leader='a', "),  # type: ignore[arg-type] # What is tested.
    ],
)
def test_a_policy_that_answers_nonsense_is_refused(answer: object, said: str) -> None:
    plan = (Fault(5_000, KILL, 0, 1_000),)
    with pytest.raises(PolicyError) as refused:
        run(elected_by(quiet(1, TEN_SECONDS), stays(answer)), plan)
    assert str(refused.value).startswith(said)
    if not isinstance(answer, Elected):
        with pytest.raises(PolicyError) as refused:
            check_policy(stays(answer))
        assert str(refused.value).startswith(said)


def test_what_is_no_policy_and_no_placer_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^the election policy is 3; wanted is a function of ballot, election and ru"):
        elected_by(quiet(1, TEN_SECONDS), 3)  # type: ignore[arg-type] # What is tested.
    with pytest.raises(UsageError, match=r"^the placer is 3; wanted is an object with place\(spec, brokers"):
        placed(quiet(1, TEN_SECONDS), 3)  # type: ignore[arg-type] # What is tested.


def test_a_policy_that_elects_nobody_where_somebody_may_lead_is_found() -> None:
    nobody = stays(Elected(NO_LEADER, Choice.NOBODY))
    with pytest.raises(PolicyFailure) as failure:
        check_policy(nobody)
    assert str(failure.value).startswith("nobody is elected, and a replica is alive that may lead\n")
    assert len(failure.value.ballot.replicas) == 1


def test_kafka_s_own_policy_passes() -> None:
    check_policy(replication.elect)


@pytest.mark.parametrize("name", ["placement.strategies", "replication.strategies"])
def test_without_hypothesis_its_extra_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = builtins.__import__

    def missing(wanted: str, *given: Any) -> Any:
        if wanted.partition(".")[0] == "hypothesis":
            raise ModuleNotFoundError("No module named 'hypothesis'")
        return kept(wanted, *given)

    monkeypatch.setattr(builtins, "__import__", missing)
    monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError) as refused:
        importlib.import_module(name)
    assert str(refused.value) == f"{name} needs Hypothesis: pip install 'brokerside[strategies]'"


# A run from outside.


def test_an_injected_fault_is_one_of_the_plan() -> None:
    fault = Fault(6_000, KILL, broker=LeaderOf(1), duration_ms=2_000)
    simulation = Simulation(quiet(1, TEN_SECONDS), ())
    simulation.run_until(5_000)
    simulation.inject(fault)
    outcome = simulation.finish()
    assert outcome.plan == (fault,)
    assert "broker 1 dies, down for 2000 ms" in "\n".join(outcome.lines)
    assert run(quiet(1, TEN_SECONDS), (fault,)).findings == outcome.findings == ()
    with pytest.raises(UsageError, match=r"^KILL at 6000 ms is past: it is \d+ ms$"):
        simulation.inject(fault)
    with pytest.raises(UsageError, match=r"^FULL_DISK cannot be injected into this run; give a fault of FULL_DISK in"):
        simulation.inject(Fault(10**7, FaultKind.FULL_DISK, 0))


def test_a_fault_aimed_at_nobody_strikes_nobody() -> None:
    plan = (Fault(500, KILL, broker=LeaderOf(0), duration_ms=2_000),)
    outcome = run(quiet(1, TEN_SECONDS), plan)
    assert "      500 ms  KILL strikes nobody: nobody is the leader of partition 0" in outcome.lines


def test_a_crash_injected_at_a_commit_strikes() -> None:
    simulation = Simulation(quiet(1, TEN_SECONDS), ())
    simulation.run_until(4_000)
    simulation.inject(Fault(5_000, FaultKind.CRASH_AT_COMMIT, broker=LeaderOf(0), duration_ms=1_000))
    assert "a leader dies right after its high watermark rose" in "\n".join(simulation.finish().lines)


def test_topics_of_several_partitions_appear_in_one_batch() -> None:
    options = Options(seed=1, brokers=5, partitions=5, topics=(("orders", 3), ("logs", 2)), duration_ms=TEN_SECONDS)
    counts: set[int] = set()

    def counted(simulation: Simulation, _event: Event) -> None:
        counts.update(len(node.role.image.partitions) for node in simulation.cluster.nodes.values() if node.role)

    plan = (Fault(5_000, KILL, broker=LeaderOf(1, "logs"), duration_ms=1_000),)
    simulation = Simulation(options, plan, invariants=(counted,))
    assert simulation.finish().findings == ()
    assert counts == {0, 5}
    topics = simulation.cluster.controller.image.topics
    assert topics == {0: "orders-0", 1: "orders-1", 2: "orders-2", 3: "logs-0", 4: "logs-1"}
    assert "broker 4 dies, down for 1000 ms" in "\n".join(simulation.trace.lines)


def test_steps_and_run_until_give_the_same_history() -> None:
    stepped, whole = Simulation(quiet(1, TEN_SECONDS)), Simulation(quiet(1, TEN_SECONDS))
    whole.run_until(4_000)
    times: list[TimeMs] = []
    while (next_ms := stepped.next_event_ms) is not None and next_ms <= 4_000:
        assert stepped.step() == next_ms == stepped.now_ms
        times.append(next_ms)
    stepped.run_until(4_000)
    assert times == sorted(set(times))
    assert stepped.cluster.event_count == whole.cluster.event_count
    assert stepped.trace.digest == whole.trace.digest


def test_a_message_from_outside_is_answered_through_the_network() -> None:
    simulation = Simulation(quiet(1, TEN_SECONDS), ())
    answers: list[Message] = []
    simulation.run_until(4_000)
    simulation.send(ElectLeaders(0, Election.PREFERRED), on_answer=answers.append)
    simulation.run_until(4_100)
    (answer,) = answers
    assert isinstance(answer, ElectLeadersResponse)
    assert answer.error.name == "ELECTION_NOT_NEEDED"
    with pytest.raises(UsageError, match=r"^the receiver is 7; allowed are brokers 0 to 2$"):
        simulation.send(ElectLeaders(0, Election.PREFERRED), 7)


def test_the_records_of_each_log_can_be_read_at_the_end() -> None:
    simulation = Simulation(quiet(1, TEN_SECONDS), ())
    assert simulation.records(0) == ()
    assert simulation.finish().is_clean
    records = simulation.records(0)
    written = [write.value for write in simulation.cluster.history.writes if write.partition == 0]
    assert sorted(int.from_bytes(record.value or b"", "big") for record in records) == written
    assert [record.offset for record in records] == list(range(len(written)))
    assert simulation.records(0, broker=2) == records


# Invariants of one's own.


def leaders_stay(simulation: Simulation, event: Event) -> str | None:
    state = simulation.cluster.controller.image.partitions.get(0)
    return f"partition 0 is led by {state.leader}" if state and state.leader != 0 else None


def nothing_is_sent(_simulation: Simulation, event: Event) -> str | None:
    raise LookupError(f"{event.node} sent {len(event.sent)}")


def test_an_invariant_of_one_s_own_is_asked_at_every_event_and_found_once() -> None:
    plan = (Fault(5_000, KILL, broker=LeaderOf(0), duration_ms=20_000),)
    options = quiet(1, DurationMs(30_000))
    own, raised = (finding for finding in run(options, plan, invariants=(nothing_is_sent, leaders_stay)).findings[::-1])
    assert (own.code, own.what) == ("X", "leaders_stay: partition 0 is led by 1")
    assert 14_000 <= own.at_ms < 15_000
    assert (raised.code, raised.what) == ("X", "nothing_is_sent: raised LookupError: the controller sent 1")
    assert run(options, plan).digest != run(quiet(2, DurationMs(30_000)), plan).digest
    assert run(options, plan).findings == ()


def test_what_is_no_invariant_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^invariants are \[3\]; wanted are functions of a simulation and an event$"):
        run(quiet(1, TEN_SECONDS), invariants=(3,))  # type: ignore[arg-type] # What is tested.
