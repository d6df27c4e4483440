"""Who leads next."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given

from broker.ids import BrokerId
from replication.rules.election import Ballot, Choice, Elected, Election, elect
from replication.rules.switches import CURRENT, rules_of
from replication.strategies import ballots
from tests.replication.builders import NOBODY, ids, on

P, O, U = Election.PREFERRED, Election.ONLINE, Election.UNCLEAN  # noqa: E741 - as short as the table below needs.


def ballot(
    isr: tuple[int, ...],
    acceptable: tuple[int, ...],
    *,
    leader: int = NOBODY,
    elr: tuple[int, ...] = (),
    last_known: tuple[int, ...] = (),
) -> Ballot:
    return Ballot(
        replicas=ids(1, 2, 3),
        isr=ids(*isr),
        elr=ids(*elr),
        leader=BrokerId(leader),
        last_known=ids(*last_known),
        acceptable=frozenset(ids(*acceptable)),
    )


@pytest.mark.parametrize(
    ("given_ballot", "election", "leader", "choice"),
    [
        # The leader stays where it may; PREFERRED moves to the first replica.
        (ballot((1, 2, 3), (1, 2, 3), leader=2), O, 2, Choice.STAYS),
        (ballot((1, 2, 3), (1, 2, 3), leader=2), U, 2, Choice.STAYS),
        (ballot((1, 2, 3), (1, 2, 3), leader=2), P, 1, Choice.IN_SYNC),
        (ballot((1, 2, 3), (1, 2, 3), leader=1), P, 1, Choice.STAYS),
        (ballot((2, 3), (1, 2, 3), leader=3), P, 3, Choice.STAYS),
        (ballot((2, 3), (1, 2), leader=3), P, 2, Choice.IN_SYNC),
        # Assignment order, not the ISR's.
        (ballot((3, 2), (1, 2, 3)), O, 2, Choice.IN_SYNC),
        (ballot((2, 3), (1, 3)), O, 3, Choice.IN_SYNC),
        # Nobody, or anybody alive.
        (ballot((2,), (1, 3)), O, NOBODY, Choice.NOBODY),
        (ballot((2,), (1, 3)), P, NOBODY, Choice.NOBODY),
        (ballot((2,), (1, 3)), U, 1, Choice.UNCLEAN),
        (ballot((2,), ()), U, NOBODY, Choice.NOBODY),
        # The ELR counts once the ISR is empty.
        (ballot((), (1, 2, 3), elr=(2, 3)), O, 2, Choice.ELIGIBLE),
        (ballot((), (1, 3), elr=(2, 3)), P, 3, Choice.ELIGIBLE),
        (ballot((1,), (2, 3), elr=(2, 3)), O, NOBODY, Choice.NOBODY),
        # The last known leader counts once both are empty, and if it is alive.
        (ballot((), (1, 2, 3), last_known=(3,)), O, 3, Choice.LAST_KNOWN),
        (ballot((), (1, 2, 3), last_known=(3,)), P, 3, Choice.LAST_KNOWN),
        (ballot((), (1, 2), last_known=(3,)), O, NOBODY, Choice.NOBODY),
        (ballot((), (1, 2), last_known=(3,)), U, 1, Choice.UNCLEAN),
        (ballot((), (1, 2, 3), last_known=(2, 3)), O, NOBODY, Choice.NOBODY),
        (ballot((), (2, 3), elr=(1,), last_known=(3,)), O, NOBODY, Choice.NOBODY),
    ],
)
def test_who_is_elected(given_ballot: Ballot, election: Election, leader: int, choice: Choice) -> None:
    assert elect(given_ballot, election, CURRENT) == Elected(BrokerId(leader), choice)


def test_without_elr_the_last_known_leader_does_not_count() -> None:
    assert elect(ballot((), (3,), last_known=(3,)), O, rules_of("4.0")).choice is Choice.NOBODY


def test_until_4_1_a_dead_last_leader_was_elected() -> None:
    dead = ballot((), (1,), last_known=(3,))
    assert elect(dead, O, on(CURRENT, last_known_leader_alive=False)) == Elected(BrokerId(3), Choice.LAST_KNOWN)


@pytest.mark.parametrize("choice", Choice)
def test_two_choices_may_lose_records(choice: Choice) -> None:
    assert Elected(BrokerId(1), choice).is_unclean is (choice in (Choice.LAST_KNOWN, Choice.UNCLEAN))


@given(ballots())
def test_a_clean_leader_is_acceptable_and_complete(drawn: Ballot) -> None:
    for election, rules in itertools.product(Election, (CURRENT, rules_of("3.9"))):
        elected = elect(drawn, election, rules)
        if elected.choice is Choice.NOBODY:
            assert elected.leader == NOBODY
            continue
        assert elected.leader in drawn.acceptable
        assert elected.leader in drawn.replicas
        if not elected.is_unclean:
            assert elected.leader in (drawn.isr or drawn.elr)


@given(ballots())
def test_an_unclean_election_finds_a_leader_whenever_a_replica_is_alive(drawn: Ballot) -> None:
    alive = [broker for broker in drawn.replicas if broker in drawn.acceptable]
    assert (elect(drawn, U, CURRENT).choice is Choice.NOBODY) is (not alive)


@given(ballots())
def test_only_an_unclean_election_loses_while_somebody_complete_is_alive(drawn: Ballot) -> None:
    complete = [broker for broker in drawn.isr or drawn.elr if broker in drawn.acceptable]
    for election in Election:
        assert not (complete and elect(drawn, election, CURRENT).is_unclean)
