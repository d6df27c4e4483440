"""What the ZooKeeper-style controller does as brokers come and go, topics are made and moved."""

from __future__ import annotations

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from replication.roles.messages import AlterPartitionReassignments, CreateTopic, ElectLeaders
from replication.roles.outbox import Outbox
from replication.rules.election import Election
from replication.zookeeper.messages import (
    ControlledShutdownResponse,
    LeaderAndIsrResponse,
    UpdateMetadata,
)
from tests.replication.zookeeper.control import BOSS, Desk


def ids(*brokers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, brokers))


def test_a_new_topic_gets_its_first_live_replica_as_leader_and_all_live_ones_in_sync() -> None:
    desk = Desk()
    assert (desk.led, desk.offline) == ((0, 0, (0, 1, 2)), set())
    assert desk.orders(2)[0] == (0, 0)
    desk.go(1)
    desk.give(CreateTopic(1, ids(1, 2, 3)))
    assert desk.zookeeper.image.partitions[1].isr == (2, 3)


def test_a_topic_whose_replicas_are_all_dead_is_new_until_one_is_back() -> None:
    desk = Desk()
    desk.go(3)
    desk.give(CreateTopic(1, ids(3)))
    assert 1 not in desk.zookeeper.image.partitions
    desk.come(3)
    desk.read()
    assert desk.zookeeper.image.partitions[1].leader == 3


def test_of_replicas_that_die_together_one_election_takes_all_out_of_the_isr() -> None:
    desk = Desk()
    desk.go(0, 1)
    desk.read()
    assert (desk.led, desk.offline) == ((2, 1, (2,)), {0, 1})


def test_a_follower_that_dies_leaves_the_isr_in_a_leader_epoch_of_its_own() -> None:
    desk = Desk()
    desk.go(1, 2)
    desk.read()
    assert desk.led == (0, 2, (0,))


def test_a_leader_that_is_alone_in_sync_leaves_the_partition_offline_until_it_is_back() -> None:
    desk = Desk()
    desk.write_isr(0)
    desk.go(0)
    desk.read()
    assert (desk.led, desk.offline) == ((-1, 1, (0,)), {0})
    desk.come(0)
    desk.orders(0)
    desk.read()
    assert (desk.led, desk.offline) == ((0, 2, (0,)), set())
    assert desk.orders(0) == [(0, 2)]


def test_an_offline_partition_that_allows_it_is_led_by_the_first_live_replica_though_it_lacks_records() -> None:
    desk = Desk(unclean=True)
    desk.write_isr(0)
    desk.go(0)
    desk.read()
    assert desk.led == (1, 1, (1,))


def test_a_leader_that_was_away_between_two_readings_leads_no_longer() -> None:
    desk = Desk()
    desk.go(0)
    desk.come(0)
    desk.orders(0)
    desk.read()
    assert (desk.led, desk.offline) == ((1, 1, (1, 2)), set())
    assert desk.orders(0)[-1] == (1, 1)


def test_a_replica_whose_directory_has_failed_is_offline_until_its_broker_begins_another_life() -> None:
    desk = Desk()
    out = Outbox()
    failed = LeaderAndIsrResponse(0, ErrorCode.KAFKA_STORAGE_ERROR, desk.epochs[0])
    desk.kafka_controller.handle(failed, BrokerId(0), out)
    desk.read()
    assert (desk.led, desk.offline) == ((1, 1, (1, 2)), {0})
    desk.go(0)
    desk.come(0)
    desk.read()
    assert desk.offline == set()


def test_a_read_that_was_overtaken_is_dropped() -> None:
    desk = Desk()
    out, late = Outbox(), desk.kafka_controller._read
    assert late is not None
    desk.go(0)
    desk.read()
    desk.kafka_controller.handle(late, BOSS, out)
    assert out.sent == []


def test_who_takes_over_takes_the_dead_offline() -> None:
    desk = Desk()
    desk.go(0)
    desk.begin_term()
    assert (desk.led, desk.offline) == ((1, 1, (1, 2)), {0})


# Elections that an operator asks for.


def ordered(desk: Desk, order: ElectLeaders | AlterPartitionReassignments) -> None:
    out = Outbox()
    desk.kafka_controller.handle(order, BOSS, out)
    desk._deliver(out)


def test_the_preferred_leader_is_elected_if_it_is_in_sync_and_nobody_in_its_place() -> None:
    desk = Desk()
    desk.go(0)
    desk.read()
    desk.come(0)
    desk.read()
    ordered(desk, ElectLeaders(0, Election.PREFERRED))
    assert desk.led == (1, 1, (1, 2))
    desk.write_isr(1, 2, 0)
    ordered(desk, ElectLeaders(0, Election.PREFERRED))
    assert desk.led[:2] == (0, 2)
    before = desk.state
    ordered(desk, ElectLeaders(0, Election.PREFERRED))
    assert desk.state is before


def test_an_unclean_election_is_held_where_nobody_leads_and_not_elsewhere() -> None:
    desk = Desk()
    before = desk.state
    ordered(desk, ElectLeaders(0, Election.UNCLEAN))
    assert desk.state is before
    desk.write_isr(0)
    desk.go(0)
    desk.read()
    ordered(desk, ElectLeaders(0, Election.UNCLEAN))
    assert desk.led == (1, 2, (1,))


# Moves.


def test_a_replica_that_is_added_is_told_at_once_and_one_that_is_removed_is_deleted_after_the_move() -> None:
    desk = Desk()
    ordered(desk, AlterPartitionReassignments(0, ids(3, 1, 2)))
    assert desk.led == (0, 1, (0, 1, 2))
    assert desk.orders(3)[0] == (0, 1)
    desk.told.clear()
    desk.write_isr(0, 1, 2, 3)
    assert desk.led == (3, 2, (1, 2, 3))
    assert desk.stops(0) == [(True, 2)]


def test_to_ask_for_a_move_again_does_not_end_it() -> None:
    desk = Desk()
    desk.go(3)
    desk.read()
    ordered(desk, AlterPartitionReassignments(0, ids(3, 1, 2)))
    ordered(desk, AlterPartitionReassignments(0, ids(3, 1, 2)))
    assert (desk.state.adding, desk.state.removing, desk.state.isr) == (ids(3), ids(0), ids(0, 1, 2))
    # Nothing is added here, but one of the target has fallen out of the ISR.
    desk.write_isr(0, 1)
    ordered(desk, AlterPartitionReassignments(0, ids(1, 2)))
    assert (desk.state.adding, desk.state.removing) == ((), ids(0, 3))


def test_a_leader_that_stays_a_replica_leads_on_in_another_epoch() -> None:
    desk = Desk()
    ordered(desk, AlterPartitionReassignments(0, ids(3, 0, 1)))
    desk.write_isr(0, 1, 2, 3)
    assert (desk.led, desk.state.replicas) == ((0, 2, (0, 1, 3)), ids(3, 0, 1))


def test_a_move_that_is_cancelled_lets_go_of_what_was_added() -> None:
    desk = Desk()
    ordered(desk, AlterPartitionReassignments(0, ids(3, 1, 2)))
    ordered(desk, AlterPartitionReassignments(0, ()))
    assert (set(desk.state.replicas), desk.state.is_reassigning) == ({0, 1, 2}, False)
    assert desk.offline == set()
    before = desk.state
    ordered(desk, AlterPartitionReassignments(0, ()))
    assert desk.state is before


# Controlled shutdown.


def test_a_broker_that_stops_hands_over_what_it_leads_leaves_the_isrs_and_is_let_go() -> None:
    desk = Desk()
    desk.told.clear()
    desk.wants_to_stop(0)
    assert desk.led == (1, 1, (1, 2))
    assert desk.offline == {0}
    assert ControlledShutdownResponse(desk.epochs[0]) in desk.told[0]
    assert desk.stops(0) == [(False, 1)]
    # It stays out of everything until its session has ended and another one has begun.
    desk.read()
    assert desk.offline == {0}
    desk.go(0)
    desk.come(0)
    desk.read()
    assert desk.offline == set()


def test_a_broker_that_follows_leaves_the_isr_before_it_is_let_go() -> None:
    desk = Desk()
    desk.wants_to_stop(2)
    assert (desk.led, desk.offline) == ((0, 1, (0, 1)), {2})
    assert ControlledShutdownResponse(desk.epochs[2]) in desk.told[2]


def test_a_broker_that_alone_can_lead_is_not_let_go_and_leads_on() -> None:
    desk = Desk()
    desk.write_isr(0)
    desk.told.clear()
    desk.wants_to_stop(0)
    desk.read()
    assert (desk.led, desk.offline) == ((0, 0, (0,)), set())
    assert not any(isinstance(each, ControlledShutdownResponse) for each in desk.told[0])
    desk.write_isr(0, 1)
    assert desk.led == (1, 1, (1,))
    assert ControlledShutdownResponse(desk.epochs[0]) in desk.told[0]


def test_a_partition_without_other_replicas_keeps_nobody_from_stopping() -> None:
    desk = Desk()
    desk.give(CreateTopic(1, ids(3)))
    desk.wants_to_stop(3)
    assert ControlledShutdownResponse(desk.epochs[3]) in desk.told[3]
    assert desk.zookeeper.image.partitions[1].leader == 3


def test_every_broker_is_told_of_everything_that_was_read() -> None:
    desk = Desk()
    desk.go(3)
    desk.told.clear()
    desk.read()
    assert {broker for broker, told in desk.told.items() if isinstance(told[-1], UpdateMetadata)} == {0, 1, 2, BOSS}


def test_a_write_that_was_refused_changes_nothing() -> None:
    desk = Desk()
    # Somebody else writes the node, of which the controller is not told.
    desk.zookeeper.tree.write("/brokers/topics/topic-0/partitions/0/state", desk.state)
    desk.go(0)
    desk.read()
    assert (desk.led, desk.offline) == ((0, 0, (0, 1, 2)), set())
