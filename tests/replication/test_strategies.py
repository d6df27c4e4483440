"""The shipped strategies draw what they say, and the check of a policy finds what is wrong with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.ids import NO_LEADER, BrokerId
from replication.election import Ballot, Choice, Elected, Election, ElectionPolicy, elect
from replication.partition import PartitionState
from replication.rules import Rules
from replication.strategies import (
    Event,
    EventKind,
    PolicyFailure,
    applied,
    ballots,
    check_policy,
    events,
    partitions,
)
from tests.replication.builders import ids, partition, terms


@given(partitions())
def test_partitions_are_whole(state: PartitionState) -> None:
    state.check_invariants()


@given(partitions(elr=False))
def test_without_elr_somebody_is_in_sync_and_nobody_eligible(state: PartitionState) -> None:
    assert state.isr
    assert state.elr == ()
    assert state.last_known == ()


@given(ballots())
def test_on_a_ballot_who_is_alive_is_a_replica(drawn: Ballot) -> None:
    assert isinstance(drawn.acceptable, frozenset)
    assert drawn.acceptable.issubset(drawn.replicas)


@given(st.data())
def test_events_are_of_the_brokers_given(data: st.DataObject) -> None:
    assert {event.broker for event in data.draw(events(ids(4, 7)))} <= {4, 7}


def test_events_are_applied_where_they_make_sense() -> None:
    fence, back = EventKind.FENCE, EventKind.UNFENCE
    one, two = ids(1, 2)
    sequence = [Event(back, one), Event(fence, one), Event(fence, one), Event(fence, two), Event(back, two)]
    states = applied(partition((1, 2), replicas=(1, 2)), sequence, terms(min_isr=2))
    assert [state.leader for state in states] == [1, 2, NO_LEADER, 2]


def test_kafkas_own_policy_passes() -> None:
    check_policy(elect)


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
