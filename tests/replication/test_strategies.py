"""The shipped strategies draw what they say, and the check of a policy finds what is wrong with it."""

from __future__ import annotations

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from broker.ids import NO_LEADER, BrokerId
from broker.units import DurationMs, TimeMs
from replication.explore import ElrModel, ElrScope, described, search
from replication.rules.election import Ballot, Choice, Elected, Election, ElectionPolicy
from replication.rules.partition import PartitionState
from replication.rules.switches import CURRENT, Rules
from replication.simulation.fault import Fault
from replication.simulation.faults import QUIET_MS, fault_bounds
from replication.simulation.options import FaultKind, Options, quiet
from replication.simulation.retention import RETENTION_KINDS, with_retention
from replication.simulation.run import run
from replication.strategies import (
    Event,
    EventKind,
    PolicyFailure,
    applied,
    check_policy,
    clusters,
    fault_plans,
    partitions,
)
from tests.replication.builders import ids, partition
from tests.replication.builders import settings as partition_settings


@given(partitions())
def test_partitions_are_whole(state: PartitionState) -> None:
    state.check_invariants()


@given(partitions(elr=False))
def test_without_elr_somebody_is_in_sync_and_nobody_eligible(state: PartitionState) -> None:
    assert state.isr
    assert state.elr == ()
    assert state.last_known == ()


def test_events_are_applied_where_they_make_sense() -> None:
    fence, back = EventKind.FENCE, EventKind.UNFENCE
    one, two = ids(1, 2)
    sequence = [Event(back, one), Event(fence, one), Event(fence, one), Event(fence, two), Event(back, two)]
    states = applied(partition((1, 2), replicas=(1, 2)), sequence, partition_settings(min_isr=2))
    assert [state.leader for state in states] == [1, 2, NO_LEADER, 2]


def with_leader(choose: object) -> ElectionPolicy:
    def policy(ballot: Ballot, election: Election, rules: Rules) -> Elected:
        assert callable(choose)
        leader = choose(ballot)
        return Elected(leader, Choice.NOBODY if leader == NO_LEADER else Choice.IN_SYNC)

    return policy


def first_in_sync(ballot: Ballot) -> BrokerId:
    return (*ballot.isr, NO_LEADER)[0]


def first_alive(ballot: Ballot) -> BrokerId:
    return next((broker for broker in ballot.replicas if broker in ballot.acceptable), NO_LEADER)


def stranger(ballot: Ballot) -> BrokerId:
    return BrokerId(99)


@pytest.mark.parametrize(
    ("choose", "what"),
    [
        (stranger, "the leader is no replica"),
        (first_in_sync, "the leader is not alive"),
        (first_alive, "the leader may lack records, and "),
    ],
)
def test_a_wrong_policy_fails_with_its_smallest_ballot(choose: object, what: str) -> None:
    with pytest.raises(PolicyFailure) as caught:
        check_policy(with_leader(choose))
    assert str(caught.value).startswith(what)
    assert len(caught.value.ballot.replicas) <= 2


def test_a_failure_shows_the_ballot() -> None:
    with pytest.raises(PolicyFailure) as caught:
        check_policy(with_leader(first_in_sync))
    assert str(caught.value) == (
        "the leader is not alive\n"
        "  election PREFERRED, elected 0 (IN_SYNC)\n"
        "  replicas 0, ISR 0, ELR none, leader -1, last leader none\n"
        "  alive none"
    )


# A policy as the README has it, held against the explorer too.


def alive_and_honest(ballot: Ballot, election: Election, rules: Rules) -> Elected:
    """The first replica that is alive, and what that means for the records."""
    leader = first_alive(ballot)
    if leader == NO_LEADER:
        return Elected(leader, Choice.NOBODY)
    return Elected(leader, Choice.IN_SYNC if ballot.is_valid(leader) else Choice.UNCLEAN)


def test_the_explorer_tells_how_a_policy_loses_a_record_without_any_failed_disk() -> None:
    with pytest.raises(PolicyFailure, match=r"^the leader may lack records, and the election is clean\n"):
        check_policy(alive_and_honest)
    model = ElrModel(ElrScope(losses=0), policy=alive_and_honest)
    outcome = search(model)
    assert [line.split(". ")[1] for line in described(model, outcome.history)] == [
        "0 appends m0",
        "0 drops 1 from the ISR",
        "2 fetches",
        "2 fetches",
        "0 raises its high watermark to 1",
        "0 is fenced",
    ]
    assert outcome.fault == "LeaderCompleteness: 1 leads epoch 1 with [empty], but [m0@0] was committed"
    assert search(ElrModel(ElrScope(losses=0, fences=2))).holds


# Clusters and plans of faults.


@given(clusters())
def test_drawn_clusters_are_as_short_as_asked_for_and_leave_faults_to_plans(options: Options) -> None:
    assert (options.duration_ms, options.fault_ms, options.is_strict) == (20_000, (), True)
    assert options.settings.rules == CURRENT
    assert 1 <= options.settings.min_isr <= options.replication_factor <= options.brokers


@given(st.data())
def test_a_plan_lies_within_what_its_kinds_are_drawn_with(data: st.DataObject) -> None:
    options = data.draw(clusters())
    plan = data.draw(fault_plans(options, count_max=5))
    assert len(plan) <= 5
    assert [fault.start_ms for fault in plan] == sorted(fault.start_ms for fault in plan)
    for fault in plan:
        bounds = fault_bounds(fault.kind, options)
        assert QUIET_MS <= fault.start_ms < options.duration_ms
        assert 0 <= fault.target < bounds.target_count
        assert bounds.duration_ms_min <= fault.duration_ms <= bounds.duration_ms_max


@pytest.mark.deep
def test_plans_have_the_kinds_asked_for() -> None:
    options = quiet(1, DurationMs(20_000))
    for kind in FaultKind:
        plan = find(fault_plans(options, kinds=(kind,)), bool, settings=settings(database=None, derandomize=True))
        assert [fault.kind for fault in plan] == [kind]


@pytest.mark.deep
@pytest.mark.parametrize("kind", RETENTION_KINDS)
def test_plans_for_logs_with_retention_have_its_faults(kind: FaultKind) -> None:
    plans = fault_plans(with_retention(quiet(1, DurationMs(20_000))))
    once = settings(database=None, derandomize=True)
    assert find(plans, lambda plan: any(fault.kind is kind for fault in plan), settings=once)


@pytest.mark.deep
def test_a_plan_shrinks_to_the_one_fault_that_matters_in_its_simplest_form() -> None:
    options = quiet(1, DurationMs(60_000))
    smallest = find(
        fault_plans(options),
        lambda plan: any(fault.kind is FaultKind.WIPE and fault.target == 2 for fault in plan),
        settings=settings(database=None, derandomize=True, max_examples=3_000),
    )
    bounds = fault_bounds(FaultKind.WIPE, options)
    assert smallest == (Fault(TimeMs(QUIET_MS), FaultKind.WIPE, 2, DurationMs(bounds.duration_ms_min), 0),)


@settings(max_examples=12)
@given(st.data())
def test_any_plan_within_bounds_keeps_the_promises(data: st.DataObject) -> None:
    options = data.draw(clusters())
    plan = data.draw(fault_plans(options))
    assert run(options, plan).findings == ()
