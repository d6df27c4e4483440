"""One change of a partition, the events that cause one, and what each release makes of them.

`test_change_facts` and `test_controller_facts` compare every decision with a reference; here are what KIPs and KAFKA
issues name, and what callers of the events rely on.
"""

from __future__ import annotations

import itertools

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerId
from replication.rules.controller_events import (
    active_brokers,
    election_requested,
    fenced,
    fenced_together,
    restarted_uncleanly,
    swept,
    unfenced,
)
from replication.rules.election import Choice, Elected, Election
from replication.rules.partition import PartitionEpoch, PartitionState
from replication.rules.partition_change import change, target_of
from replication.rules.reassign import Phase, completed
from replication.rules.switches import CURRENT, rules_of
from replication.strategies import applied, events, partitions
from tests.replication.builders import NOBODY, active, ids, on, partition, settings, statuses

TWO = settings(min_isr=2)
NO_ELR = settings(on(CURRENT, elr=False), min_isr=2)
LEADERLESS = partition((1,), leader=NOBODY)
ELIGIBLE = partition((), leader=NOBODY, elr=(2,), last_known=(2,))
ALL = active(1, 2, 3)


@pytest.mark.parametrize(
    ("after", "leader", "isr", "elr", "leader_epoch"),
    [
        # A leader is replaced in assignment order; a follower costs no leader epoch since 3.6.
        (fenced(partition((3, 1, 2)), BrokerId(1), ALL, TWO), 2, (3, 2), (), 6),
        (fenced(partition(), BrokerId(3), ALL, TWO), 1, (1, 2), (), 5),
        (fenced(partition(), BrokerId(3), ALL, settings(rules_of("3.5"), min_isr=2)), 1, (1, 2), (), 6),
        # The last member stays in the ISR without ELR, and is eligible with it.
        (fenced(partition((1,)), BrokerId(1), ALL, NO_ELR), NOBODY, (1,), (), 6),
        (fenced(partition((1,)), BrokerId(1), ALL, TWO), NOBODY, (), (1,), 6),
        # A leader from the ELR, and one elected uncleanly, is the whole ISR.
        (fenced(partition((1,), elr=(2, 3)), BrokerId(1), ALL, TWO), 2, (2,), (1, 3), 6),
        (fenced(partition((1,)), BrokerId(1), ALL, settings(unclean=True)), 2, (2,), (), 6),
        # A broker that is back leads where nobody does.
        (unfenced(ELIGIBLE, BrokerId(2), active(1, 3), TWO), 2, (2,), (), 6),
        # An unclean restart costs ISR and eligibility (KIP-966).
        (restarted_uncleanly(partition((1, 2)), BrokerId(2), ALL, TWO), 1, (1,), (), 5),
        (restarted_uncleanly(partition((1,), elr=(2, 3)), BrokerId(3), active(1, 2), TWO), 1, (1,), (2,), 5),
        # KAFKA-13173: before 3.0 the second of two changes in one tick was made on the state before both.
        (fenced_together(partition((1, 2)), ids(1, 2), active(1, 2), TWO), NOBODY, (), (1, 2), 7),
        (fenced_together(partition(), ids(1, 2), ALL, TWO), 3, (3,), (2,), 7),
        (fenced_together(partition(), ids(1, 2), ALL, settings(rules_of("2.8"), min_isr=2)), 1, (1, 3), (), 6),
        (swept(LEADERLESS, active(2), settings(unclean=True)), 2, (2,), (), 6),
    ],
)
def test_what_an_event_makes_of_a_partition(
    after: PartitionState | None, leader: int, isr: tuple[int, ...], elr: tuple[int, ...], leader_epoch: int
) -> None:
    assert after is not None
    assert (after.leader, after.isr, after.elr, after.leader_epoch) == (leader, ids(*isr), ids(*elr), leader_epoch)


@pytest.mark.parametrize(
    "after",
    [
        fenced(partition((1, 2)), BrokerId(3), ALL, TWO),
        unfenced(partition((1,)), BrokerId(2), active(1, 3), TWO),
        unfenced(ELIGIBLE, BrokerId(3), active(1), TWO),
        restarted_uncleanly(partition((1, 2)), BrokerId(3), active(1, 2), TWO),
        swept(LEADERLESS, active(2), settings()),
        swept(partition(), active(2), settings(unclean=True)),
        change(partition((1, 2)), target_of(partition((1, 2)), ids(1, 2), TWO), active(1, 2), TWO),
        # ReplicationControlManager looks only at partitions in whose ISR, or ELR, the broker is.
        fenced(LEADERLESS, BrokerId(3), active(2, 3), settings(unclean=True, min_isr=2)),
        restarted_uncleanly(LEADERLESS, BrokerId(3), active(2, 3), settings(unclean=True, min_isr=2)),
        # KIP-966: handleBrokerUncleanShutdown is of the ELR; fencing removes the broker from the ISR all the same.
        restarted_uncleanly(partition((1, 2)), BrokerId(2), ALL, NO_ELR),
        restarted_uncleanly(
            partition((1, 2)), BrokerId(2), ALL, settings(on(CURRENT, elr_excludes_unclean=False), min_isr=2)
        ),
    ],
)
def test_an_event_that_concerns_no_partition_changes_none(after: PartitionState | None) -> None:
    assert after is None


def test_an_unclean_leader_recovers_and_an_eligible_one_need_not() -> None:
    uncleanly = fenced(partition((1,)), BrokerId(1), ALL, settings(unclean=True))
    eligible = fenced(partition((1,), elr=(2, 3)), BrokerId(1), ALL, TWO)
    assert [each is not None and each.recovering for each in (uncleanly, eligible)] == [True, False]


def test_the_controller_bounds_min_isr_by_the_topics_first_partition() -> None:
    state = partition((1, 2), replicas=(1, 2))
    under = attrs.evolve(settings(min_isr=3), topic_replica_count=1)
    after = change(state, target_of(state, ids(1), under), active(1, 2), under)
    assert after is not None
    assert after.elr == ()


@pytest.mark.parametrize(
    ("state", "alive", "election", "error", "leader"),
    [
        (partition(), (1, 2, 3), Election.PREFERRED, ErrorCode.ELECTION_NOT_NEEDED, 1),
        (partition(leader=2), (1, 2, 3), Election.PREFERRED, ErrorCode.NONE, 1),
        (partition((2, 3), leader=2), (1, 2, 3), Election.PREFERRED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, 2),
        (partition(leader=2), (1, 2, 3), Election.UNCLEAN, ErrorCode.ELECTION_NOT_NEEDED, 2),
        (LEADERLESS, (2, 3), Election.UNCLEAN, ErrorCode.NONE, 2),
        (LEADERLESS, (), Election.UNCLEAN, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, NOBODY),
    ],
)
def test_elections_that_are_asked_for(
    state: PartitionState, alive: tuple[int, ...], election: Election, error: ErrorCode, leader: int
) -> None:
    answer, following = election_requested(state, election, active(*alive), settings())
    assert (answer, following.leader) == (error, leader)
    assert (following == state) is (error is not ErrorCode.NONE)


@pytest.mark.parametrize("answer", [None, 2, Elected(BrokerId(4), Choice.UNCLEAN), Elected(BrokerId(9), Choice.STAYS)])
def test_a_policy_of_ones_own_elects_a_replica_or_nobody(answer: object) -> None:
    with pytest.raises(UsageError, match=r"^the election policy (answers|elects)"):
        fenced(partition(), BrokerId(1), active(2, 3), TWO, lambda *_: answer)  # type: ignore[arg-type] # what a policy may answer.
    nobody = fenced(partition(), BrokerId(1), active(2, 3), TWO, lambda *_: Elected(NO_LEADER, Choice.NOBODY))
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


# Moves of a partition to other replicas.


def _phase(
    replicas: tuple[int, ...], isr: tuple[int, ...], *, adding: tuple[int, ...] = (), removing: tuple[int, ...] = ()
) -> Phase:
    return Phase(replicas=ids(*replicas), isr=ids(*isr), adding=ids(*adding), removing=ids(*removing))


@pytest.mark.parametrize("release", ["3.8", "4.0", "4.2"])
def test_from_3_8_to_4_2_an_unhealthy_kept_replica_holds_a_move_up(release: str) -> None:
    """The examples of KAFKA-19975, with replica 2 out of sync."""
    for now in (
        _phase((0, 1, 2, 3), (0, 1, 3), adding=(3,)),
        _phase((1, 2, 3, 0), (0, 1, 3), adding=(3,), removing=(0,)),
        _phase((2, 3, 4, 0, 1), (0, 1, 3, 4), adding=(3, 4), removing=(0, 1)),
    ):
        assert completed(now, rules_of(release)) is None
        assert completed(now, CURRENT) is not None


def test_a_move_to_fewer_waits_for_the_kept_ones_and_before_3_8_only_for_one_target() -> None:
    """KAFKA-15665."""
    now = _phase((2, 3, 4, 5, 0, 1), (0, 1, 5), adding=(5,), removing=(0, 1))
    assert completed(now, rules_of("3.7")) == _phase((2, 3, 4, 5), (5,))
    assert completed(now, CURRENT) is None
    shrinking = _phase((1, 2, 3, 4, 5), (4, 5), removing=(4, 5))
    assert completed(shrinking, CURRENT) is completed(shrinking, rules_of("3.7")) is None
