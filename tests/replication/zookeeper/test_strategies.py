"""The elections of the ZooKeeper-style controller, beside the plainest words for each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.ids import BrokerId
from replication.rules.partition import PartitionState
from replication.rules.reassign import Phase, started
from replication.rules.settings import PartitionSettings
from replication.rules.switches import rules_of
from replication.zookeeper.strategies import Strategy, elected, elected_uncleanly, first_state, reassigned, without

TERMS = PartitionSettings(rules=rules_of("2.8"), min_isr=1)
UNCLEAN = PartitionSettings(rules=rules_of("2.8"), min_isr=1, unclean_election=True)


def ids(*brokers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, brokers))


def live(*brokers: int) -> frozenset[BrokerId]:
    return frozenset(ids(*brokers))


def partition(isr: tuple[int, ...], leader: int, replicas: tuple[int, ...] = (0, 1, 2)) -> PartitionState:
    return PartitionState(replicas=ids(*replicas), isr=ids(*isr), leader=BrokerId(leader))


@pytest.mark.parametrize(
    ("strategy", "isr", "leader", "alive", "settings", "expected"),
    [
        (Strategy.OFFLINE, (2, 1, 0), 0, (1, 2), TERMS, (1, 1, (2, 1))),
        (Strategy.OFFLINE, (0, 1, 2), 0, (2,), TERMS, (2, 1, (2,))),
        (Strategy.OFFLINE, (0,), 0, (1, 2), TERMS, None),
        (Strategy.OFFLINE, (0,), 0, (1, 2), UNCLEAN, (1, 1, (1,))),
        (Strategy.OFFLINE, (0, 2), 0, (1, 2), UNCLEAN, (2, 1, (2,))),
        (Strategy.OFFLINE, (0,), 0, (), UNCLEAN, None),
        (Strategy.OFFLINE, (0,), -1, (0, 1), TERMS, (0, 1, (0,))),
        (Strategy.REASSIGN, (1, 2), 0, (1, 2), TERMS, (1, 1, (1, 2))),
        (Strategy.REASSIGN, (1, 2), 1, (2,), TERMS, (2, 1, (1, 2))),
        (Strategy.REASSIGN, (1, 2), 1, (0,), UNCLEAN, None),
        (Strategy.PREFERRED, (2, 0), 2, (0, 1, 2), TERMS, (0, 1, (2, 0))),
        (Strategy.PREFERRED, (1, 2), 1, (0, 1, 2), TERMS, None),
        (Strategy.PREFERRED, (0, 1), 1, (1, 2), UNCLEAN, None),
        (Strategy.CONTROLLED_SHUTDOWN, (0, 1, 2), 0, (1, 2), TERMS, (1, 1, (1, 2))),
        (Strategy.CONTROLLED_SHUTDOWN, (0,), 0, (1, 2), UNCLEAN, None),
    ],
)
def test_each_strategy_elects_whom_kafka_elects_or_fails(
    strategy: Strategy,
    isr: tuple[int, ...],
    leader: int,
    alive: tuple[int, ...],
    settings: PartitionSettings,
    expected: tuple[int, int, tuple[int, ...]] | None,
) -> None:
    after = elected(partition(isr, leader), strategy, live(*alive), settings)
    assert (None if after is None else (after.leader, after.leader_epoch, after.isr)) == expected


def test_an_operators_unclean_election_needs_nobodys_leave_but_somebody_alive() -> None:
    offline = partition((0,), -1)
    after = elected_uncleanly(offline, live(2), TERMS)
    assert after is not None
    assert (after.leader, after.isr) == (2, (2,))
    assert elected_uncleanly(offline, live(), TERMS) is None


@given(st.data())
def test_an_election_of_an_offline_partition_finds_the_first_live_replica_in_sync(data: st.DataObject) -> None:
    replicas = data.draw(st.permutations(range(4)))
    isr = data.draw(st.lists(st.sampled_from(replicas), unique=True, min_size=1))
    alive = data.draw(st.sets(st.sampled_from(replicas)))
    settings = data.draw(st.sampled_from((TERMS, UNCLEAN)))
    state = partition(tuple(isr), -1, tuple(replicas))
    after = elected(state, Strategy.OFFLINE, live(*alive), settings)
    clean = [broker for broker in replicas if broker in alive and broker in isr]
    merely_alive = [broker for broker in replicas if broker in alive and settings.unclean_election]
    if clean:
        assert after is not None
        assert (after.leader, after.isr) == (clean[0], tuple(broker for broker in isr if broker in alive))
    elif merely_alive:
        assert after is not None
        assert (after.leader, after.isr) == (merely_alive[0], (merely_alive[0],))
    else:
        assert after is None


@pytest.mark.parametrize(
    ("isr", "leader", "broker", "expected"),
    [
        ((0, 1, 2), 0, 1, (0, 1, (0, 2))),
        ((0, 1, 2), 0, 0, (-1, 1, (1, 2))),
        ((0,), 0, 0, (-1, 1, (0,))),
        ((0,), -1, 0, None),
        ((0, 1), 0, 2, None),
    ],
)
def test_a_replica_that_goes_offline_leaves_the_isr_but_for_its_last_member_and_nobody_is_elected(
    isr: tuple[int, ...], leader: int, broker: int, expected: tuple[int, int, tuple[int, ...]] | None
) -> None:
    after = without(partition(isr, leader), BrokerId(broker), TERMS)
    assert (None if after is None else (after.leader, after.leader_epoch, after.isr)) == expected


def test_a_move_begins_and_ends_with_a_leader_epoch_each() -> None:
    state = partition((0, 1, 2), 0)
    under_way = reassigned(state, started(state, ids(0, 1, 3)), live(0, 1, 2, 3), TERMS)
    assert under_way is not None
    assert (under_way.leader, under_way.leader_epoch, under_way.adding, under_way.removing) == (0, 1, (3,), (2,))
    phase = Phase(replicas=under_way.replicas, isr=ids(0, 1, 2, 3), adding=ids(3), removing=ids(2))
    over = reassigned(under_way, phase, live(0, 1, 2, 3), TERMS)
    assert over is not None
    assert (over.leader, over.leader_epoch, over.replicas, over.isr) == (0, 2, (0, 1, 3), (0, 1, 3))


def test_a_move_behind_which_nobody_could_lead_is_not_over_yet() -> None:
    state = partition((0, 1, 2), 0)
    phase = Phase(replicas=ids(3, 0), isr=ids(0, 3), adding=ids(3), removing=ids(0))
    assert reassigned(state, phase, live(0), TERMS) is None


def test_a_move_begins_though_the_leader_is_gone_and_leaves_it_to_the_election() -> None:
    state = partition((0, 1, 2), 0)
    after = reassigned(state, started(state, ids(0, 1, 3)), live(1, 2, 3), TERMS)
    assert after is not None
    assert (after.leader, after.leader_epoch) == (0, 1)


def test_a_new_partition_is_led_by_its_first_live_replica() -> None:
    state = first_state(ids(0, 1, 2), live(1, 2))
    assert state is not None
    assert (state.leader, state.isr, state.leader_epoch, state.partition_epoch) == (1, (1, 2), 0, 0)
    assert first_state(ids(0), live(1)) is None
