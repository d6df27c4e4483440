"""One change of a partition, and the events that cause one."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerId
from replication.rules.controller_events import (
    active_brokers,
    directories_assigned,
    election_requested,
    fenced,
    fenced_together,
    restarted_uncleanly,
    swept,
    unfenced,
)
from replication.rules.election import NOBODY as NOBODY_ELECTED
from replication.rules.election import Choice, Elected, Election
from replication.rules.elr import next_elr, next_last_known
from replication.rules.partition import PartitionEpoch, PartitionState
from replication.rules.partition_change import Target, change, target_of
from replication.rules.switches import CURRENT, rules_of
from replication.strategies import applied, events, partitions
from tests.replication.builders import NOBODY, active, ids, on, partition, settings, statuses

TWO = settings(min_isr=2)
NO_ELR = settings(on(CURRENT, elr=False), min_isr=2)


def after(state: PartitionState | None) -> PartitionState:
    assert state is not None
    return state


@pytest.mark.parametrize(
    ("isr", "elr", "new_isr", "unclean", "expected"),
    [
        ((1, 2, 3), (), (1, 2), (), ()),
        ((1, 2, 3), (), (1,), (), (2, 3)),
        ((1, 2), (3,), (1,), (), (2, 3)),
        ((1,), (2, 3), (1, 2), (), ()),
        ((1,), (2, 3), (), (), (1, 2, 3)),
        ((1,), (2, 3), (1,), (2,), (3,)),
        ((1,), (3,), (), (1,), (3,)),
    ],
)
def test_who_is_eligible(
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    new_isr: tuple[int, ...],
    unclean: tuple[int, ...],
    expected: tuple[int, ...],
) -> None:
    assert next_elr(partition(isr, elr=elr), ids(*new_isr), ids(*unclean), 2) == ids(*expected)


@pytest.mark.parametrize(
    ("elr", "isr", "expected"),
    [
        # 16 bins hold 12 brokers, and 17 stands in that of 1; 13 need 32 bins, where 17 is the last.
        ((), (17, *range(1, 12)), (17, *range(1, 12))),
        ((), (17, *range(1, 13)), (*range(1, 13), 17)),
        # A set that is made from 11 has 16 bins; one made from 12 has 32, as it asks for 12 / 0.75 + 1.
        ((17, *range(1, 11)), (), (17, *range(1, 11))),
        ((17, *range(1, 12)), (), (*range(1, 12), 17)),
    ],
)
def test_the_elr_is_in_the_order_of_a_java_hash_set(
    elr: tuple[int, ...], isr: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    state = attrs.evolve(partition((1,)), elr=ids(*elr), isr=ids(*isr))
    assert next_elr(state, (), (), 2) == ids(*expected)


@pytest.mark.parametrize(
    ("leader", "known", "written", "expected"),
    [
        (1, (), NOBODY, (1,)),
        (1, (2,), NOBODY, (2,)),
        (NOBODY, (2,), None, (2,)),
        (NOBODY, (2,), 3, ()),
        (1, (2,), 1, ()),
        (1, (), None, ()),
    ],
)
def test_who_is_remembered_as_last_leader(
    leader: int, known: tuple[int, ...], written: int | None, expected: tuple[int, ...]
) -> None:
    state = partition((1,) if leader == 1 else (), leader=leader, last_known=known)
    assert next_last_known(state, None if written is None else BrokerId(written)) == ids(*expected)


def test_a_fenced_leader_is_replaced_in_assignment_order() -> None:
    """A clean leader crash: the first live member of the ISR leads, in the next epoch, and nothing is lost."""
    state = after(fenced(partition((3, 1, 2)), BrokerId(1), active(1, 2, 3), TWO))
    assert (state.leader, state.isr, state.elr) == (2, ids(3, 2), ())
    assert (state.leader_epoch, state.partition_epoch) == (6, 8)


def test_a_fenced_follower_costs_no_leader_epoch() -> None:
    state = after(fenced(partition(), BrokerId(3), active(1, 2, 3), TWO))
    assert (state.isr, state.leader_epoch, state.partition_epoch) == (ids(1, 2), 5, 8)


def test_before_3_6_it_did() -> None:
    state = after(fenced(partition(), BrokerId(3), active(1, 2, 3), settings(rules_of("3.5"), min_isr=2)))
    assert (state.leader, state.leader_epoch) == (1, 6)


def test_who_is_not_in_the_isr_is_fenced_without_a_change() -> None:
    assert fenced(partition((1, 2)), BrokerId(3), active(1, 2, 3), TWO) is None


@pytest.mark.parametrize("event", [fenced, restarted_uncleanly])
def test_a_broker_in_neither_isr_nor_elr_goes_without_an_election(
    event: Callable[..., PartitionState | None],
) -> None:
    """ReplicationControlManager looks only at partitions in whose ISR, or ELR, the broker is."""
    leaderless = partition((1,), leader=NOBODY)
    unclean = settings(unclean=True, min_isr=2)
    assert event(leaderless, BrokerId(3), active(2, 3), unclean) is None
    assert swept(leaderless, active(2, 3), unclean) is not None


@pytest.mark.parametrize("lacks", ["elr", "elr_excludes_unclean"])
def test_before_the_elr_forgot_unclean_brokers_a_restart_was_a_fencing_like_any_other(lacks: str) -> None:
    """KIP-966: handleBrokerUncleanShutdown is of the ELR; fencing removes the broker from the ISR all the same."""
    without_it = settings(on(CURRENT, **{lacks: False}), min_isr=2)
    assert restarted_uncleanly(partition((1, 2)), BrokerId(2), active(1, 2, 3), without_it) is None


def test_of_brokers_fenced_one_after_the_other_none_leads_again() -> None:
    state = fenced_together(partition((1, 2)), ids(1, 2), active(1, 2), TWO)
    assert (state.leader, state.isr, state.elr) == (NO_LEADER, (), ids(1, 2))


def test_the_last_member_stays_without_elr() -> None:
    state = after(fenced(partition((1,)), BrokerId(1), active(1, 2, 3), NO_ELR))
    assert (state.leader, state.isr, state.elr, state.leader_epoch) == (NO_LEADER, ids(1), (), 6)


def test_the_last_member_becomes_eligible_with_elr() -> None:
    state = after(fenced(partition((1,)), BrokerId(1), active(1, 2, 3), TWO))
    assert (state.leader, state.isr, state.elr, state.last_known) == (NO_LEADER, (), ids(1), ids(1))


def test_a_leader_from_the_elr_is_the_whole_isr() -> None:
    state = after(fenced(partition((1,), elr=(2, 3)), BrokerId(1), active(1, 2, 3), TWO))
    assert (state.leader, state.isr, state.elr, state.recovering) == (2, ids(2), ids(1, 3), False)


def test_an_unclean_leader_is_the_whole_isr_and_recovers() -> None:
    state = after(fenced(partition((1,)), BrokerId(1), active(1, 2, 3), settings(unclean=True)))
    assert (state.leader, state.isr, state.elr, state.recovering) == (2, ids(2), (), True)


def test_a_returning_broker_leads_only_where_nobody_does() -> None:
    leaderless = partition((), leader=NOBODY, elr=(2,), last_known=(2,))
    state = after(unfenced(leaderless, BrokerId(2), active(1, 3), TWO))
    assert (state.leader, state.isr, state.elr, state.last_known) == (2, ids(2), (), ())
    assert unfenced(partition((1,)), BrokerId(2), active(1, 3), TWO) is None
    assert unfenced(leaderless, BrokerId(3), active(1), TWO) is None


def test_an_unclean_restart_costs_isr_and_eligibility() -> None:
    state = after(restarted_uncleanly(partition((1, 2)), BrokerId(2), active(1, 2, 3), TWO))
    assert (state.isr, state.elr) == (ids(1), ())
    state = after(restarted_uncleanly(partition((1,), elr=(2, 3)), BrokerId(3), active(1, 2), TWO))
    assert state.elr == ids(2)
    assert restarted_uncleanly(partition((1, 2)), BrokerId(3), active(1, 2), TWO) is None


def test_of_two_brokers_fenced_in_one_tick_both_are_gone() -> None:
    """Sessions of 1 and 2 expire together; before KAFKA-13173 the second change was made on the state before both."""
    state = fenced_together(partition(), ids(1, 2), active(1, 2, 3), TWO)
    assert (state.leader, state.isr, state.elr, state.partition_epoch) == (3, ids(3), ids(2), 9)
    old = fenced_together(partition(), ids(1, 2), active(1, 2, 3), settings(rules_of("2.8"), min_isr=2))
    assert old.isr == ids(1, 3)
    assert old.leader == 1


def test_the_controller_bounds_min_isr_by_the_topics_first_partition() -> None:
    state = partition((1, 2), replicas=(1, 2))
    under = attrs.evolve(settings(min_isr=3), topic_replica_count=1)
    assert after(change(state, target_of(state, ids(1), under), active(1, 2), under)).elr == ()


def test_moving_directories_keeps_everything_else() -> None:
    state = partition((1,), elr=(2,))
    assert directories_assigned(state, TWO) == attrs.evolve(state, partition_epoch=PartitionEpoch(8))
    old = settings(on(CURRENT, elr_kept_by_every_change=False), min_isr=2)
    assert directories_assigned(state, old).elr == ()


@pytest.mark.parametrize(
    ("state", "alive", "election", "error", "leader"),
    [
        (partition(), (1, 2, 3), Election.PREFERRED, ErrorCode.ELECTION_NOT_NEEDED, 1),
        (partition(leader=2), (1, 2, 3), Election.PREFERRED, ErrorCode.NONE, 1),
        (partition((2, 3), leader=2), (1, 2, 3), Election.PREFERRED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, 2),
        (partition(leader=2), (1, 2, 3), Election.UNCLEAN, ErrorCode.ELECTION_NOT_NEEDED, 2),
        (partition((1,), leader=NOBODY), (2, 3), Election.UNCLEAN, ErrorCode.NONE, 2),
        (partition((1,), leader=NOBODY), (), Election.UNCLEAN, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, NOBODY),
    ],
)
def test_elections_that_are_asked_for(
    state: PartitionState, alive: tuple[int, ...], election: Election, error: ErrorCode, leader: int
) -> None:
    answer, following = election_requested(state, election, active(*alive), settings())
    assert (answer, following.leader) == (error, leader)
    assert (following == state) is (error is not ErrorCode.NONE)


def test_the_sweep_elects_uncleanly_where_that_is_allowed() -> None:
    leaderless = partition((1,), leader=NOBODY)
    assert after(swept(leaderless, active(2), settings(unclean=True))).leader == 2
    assert swept(leaderless, active(2), settings()) is None
    assert swept(partition(), active(2), settings(unclean=True)) is None


def test_a_policy_of_ones_own_is_asked() -> None:
    def last(ballot: object, election: object, rules: object) -> object:
        raise KeyError("asked")

    with pytest.raises(KeyError, match="asked"):
        fenced(partition(), BrokerId(1), active(2, 3), TWO, last)  # type: ignore[arg-type] # - it never answers.


@pytest.mark.parametrize("answer", [None, 2, Elected(BrokerId(4), Choice.UNCLEAN), Elected(BrokerId(9), Choice.STAYS)])
def test_a_policy_of_ones_own_elects_a_replica_or_nobody(answer: object) -> None:
    with pytest.raises(UsageError, match=r"^the election policy (answers|elects)"):
        fenced(partition(), BrokerId(1), active(2, 3), TWO, lambda *_: answer)  # type: ignore[arg-type] # what a policy may answer.
    nobody = fenced(partition(), BrokerId(1), active(2, 3), TWO, lambda *_: NOBODY_ELECTED)
    assert nobody is not None
    assert (nobody.leader, nobody.isr) == (NO_LEADER, ids(2, 3))


def test_a_leader_that_stays_is_not_elected_uncleanly_whatever_a_policy_calls_it() -> None:
    """PartitionChangeBuilder.tryElection makes the ISR the leader alone where the leader is another than before."""
    state = partition()
    stays = Elected(BrokerId(1), Choice.UNCLEAN)
    shrunk = change(state, target_of(state, ids(1, 2), TWO), active(1, 2), TWO, lambda *_: stays)
    assert shrunk == attrs.evolve(state, isr=ids(1, 2), partition_epoch=PartitionEpoch(8))


def test_active_brokers_are_neither_fenced_nor_stopping() -> None:
    assert active_brokers(statuses(fenced=(2,), stopping=(3,))) == {1, 4}


def test_a_change_to_the_same_is_none() -> None:
    state = partition((1, 2))
    assert change(state, target_of(state, ids(1, 2), TWO), active(1, 2), TWO) is None
    assert isinstance(target_of(state, ids(1), TWO), Target)


@given(st.data(), partitions(), st.integers(1, 3), st.booleans(), st.booleans())
def test_whatever_happens_to_brokers_a_partition_stays_whole(
    data: st.DataObject, state: PartitionState, min_isr: int, elr: bool, unclean: bool
) -> None:
    under = settings(on(CURRENT, elr=elr), min_isr=min_isr, unclean=unclean)
    states = applied(state, data.draw(events(state.replicas)), under)
    for earlier, later in itertools.pairwise(states):
        later.check_invariants()
        assert later.partition_epoch - earlier.partition_epoch in (0, 1, 2)
        assert later.leader_epoch >= earlier.leader_epoch
        if later.leader != earlier.leader:
            assert later.leader_epoch > earlier.leader_epoch
        if not elr:
            assert later.isr or not earlier.isr
        enough = min(min_isr, len(state.replicas)) <= len(later.isr)
        if enough and later.isr != earlier.isr and later.leader == earlier.leader:
            assert later.elr == ()
