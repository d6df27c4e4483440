"""A broker of the ZooKeeper era: whose orders it obeys, and how it stops."""

from __future__ import annotations

import pytest

from broker.clock import ManualClock
from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, BrokerEpoch, BrokerId, LeaderEpoch
from broker.registration import BrokerState
from broker.units import TimeMs
from replication.roles.messages import (
    CONTROLLER,
    Address,
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
    Fetch,
    FetchDue,
    HeartbeatDue,
    Message,
    NodeId,
)
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.roles.states.lifecycle import LifecycleState
from replication.roles.states.replica_role import ReplicaRole
from replication.rules.partition import PartitionState
from replication.rules.settings import PartitionSettings
from replication.rules.switches import rules_of
from replication.simulation.node import Node
from replication.zookeeper.broker import STOP_ATTEMPTS_MAX, ZooKeeperBrokerRole
from replication.zookeeper.messages import (
    CloseSession,
    ControlledShutdown,
    ControlledShutdownResponse,
    GetClusterState,
    LeaderAndIsr,
    LeaderAndIsrResponse,
    RegisterController,
    RegisterControllerResponse,
    StopReplica,
    StopReplicaResponse,
    WatchNotification,
)

OWN, OTHER = BrokerId(1), BrokerId(2)
BROKER_EPOCH, EPOCH = BrokerEpoch(7), LeaderEpoch(5)
NOW = TimeMs(1_000)
SETTINGS = RoleSettings(settings=PartitionSettings(rules=rules_of("2.8"), min_isr=1), has_zookeeper=True)


class Process:
    """Broker 1 in its session 7; the controller is broker 2, in controller epoch 3."""

    def __init__(self) -> None:
        self.node = Node(OWN, 0, SETTINGS, ManualClock(), TimeMs(1_700_000_000_000))
        role = self.node.start()
        assert isinstance(role, ZooKeeperBrokerRole)
        self.role = role
        self.out = Outbox()
        role.begin(self.out)
        self.tell(BrokerRegistrationResponse(BROKER_EPOCH))
        self.tell(RegisterControllerResponse(OTHER, 3))
        self.tell(BrokerHeartbeatResponse(ErrorCode.NONE, BrokerState.UNFENCED))
        self.tell(BrokerHeartbeatResponse(ErrorCode.NONE, BrokerState.UNFENCED))

    def tell(self, message: Message, sender: int = OTHER) -> list[Message]:
        """Return what the broker sends because of a message."""
        return [each for _, each in self.send(message, sender)]

    def send(self, message: Message, sender: int = OTHER) -> list[tuple[int, Message]]:
        """Return what the broker sends because of a message, and to whom."""
        before = len(self.out.sent)
        self.role.handle(message, Address(NodeId(sender)), NOW, self.out)
        return [(address.node, each) for address, each in self.out.sent[before:]]

    def follow(
        self, leader_epoch: int = EPOCH, *, controller_epoch: int = 3, broker_epoch: int = BROKER_EPOCH
    ) -> ErrorCode:
        """Tell it to follow broker 2 in partition 0, and return the error that it answers with."""
        state = PartitionState(
            replicas=(OWN, OTHER), isr=(OWN, OTHER), leader=OTHER, leader_epoch=LeaderEpoch(leader_epoch)
        )
        order = LeaderAndIsr(controller_epoch, BrokerEpoch(broker_epoch), 0, "t", state)
        (answer,) = [each for each in self.tell(order) if isinstance(each, LeaderAndIsrResponse)]
        return answer.error

    def stop(
        self, leader_epoch: int, *, deletes: bool, controller_epoch: int = 3, broker_epoch: int = BROKER_EPOCH
    ) -> ErrorCode:
        """Tell it to stop its replica, and return the error that it answers with."""
        order = StopReplica(
            controller_epoch=controller_epoch,
            broker_epoch=BrokerEpoch(broker_epoch),
            partition=0,
            leader_epoch=LeaderEpoch(leader_epoch),
            deletes=deletes,
        )
        (answer,) = [each for each in self.tell(order) if isinstance(each, StopReplicaResponse)]
        return answer.error

    @property
    def fetches(self) -> list[Fetch]:
        """What it has asked leaders for."""
        return [each for _, each in self.out.sent if isinstance(each, Fetch)]

    @property
    def has_log(self) -> bool:
        """Whether there is a log of partition 0 on the disk."""
        return self.node.storage.is_directory(self.node.directory_of(0))


def test_an_order_of_a_former_controller_or_for_a_former_incarnation_changes_nothing() -> None:
    process = Process()
    assert process.follow(broker_epoch=BROKER_EPOCH - 1) is ErrorCode.STALE_BROKER_EPOCH
    assert process.follow(controller_epoch=2) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert process.role.roles == {}
    assert process.follow() is ErrorCode.NONE
    assert process.role.roles[0].replica_role is ReplicaRole.FETCHING
    assert process.stop(EPOCH, deletes=True, broker_epoch=BROKER_EPOCH - 1) is ErrorCode.STALE_BROKER_EPOCH
    assert process.stop(EPOCH, deletes=True, controller_epoch=2) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert 0 in process.role.roles


@pytest.mark.parametrize(("leader_epoch", "is_stopped"), [(EPOCH - 1, False), (EPOCH, True), (EPOCH + 1, True)])
def test_a_replica_of_a_later_leader_epoch_is_not_deleted(leader_epoch: int, is_stopped: bool) -> None:
    process = Process()
    process.follow()
    error = process.stop(leader_epoch, deletes=True)
    assert error is (ErrorCode.NONE if is_stopped else ErrorCode.FENCED_LEADER_EPOCH)
    assert process.has_log is not is_stopped
    assert (0 in process.role.roles) is not is_stopped


def test_a_replica_that_is_stopped_keeps_its_log_and_goes_on_in_another_epoch() -> None:
    process = Process()
    process.follow()
    assert process.stop(EPOCH, deletes=False) is ErrorCode.NONE
    assert process.role.roles == {}
    assert process.has_log
    process.follow(EPOCH + 1)
    assert process.role.roles[0].replica_role is ReplicaRole.FETCHING


def test_a_replica_that_is_not_there_is_deleted_from_the_disk_all_the_same() -> None:
    process = Process()
    process.follow()
    process.stop(EPOCH, deletes=False)
    assert process.stop(EPOCH, deletes=True) is ErrorCode.NONE
    assert not process.has_log
    assert process.stop(EPOCH, deletes=True) is ErrorCode.NONE


def test_a_replica_whose_directory_has_failed_neither_obeys_nor_stops() -> None:
    process = Process()
    process.role.offline = frozenset({0})
    assert process.follow() is ErrorCode.KAFKA_STORAGE_ERROR
    assert process.stop(EPOCH, deletes=True) is ErrorCode.KAFKA_STORAGE_ERROR


# Control.


def test_whose_node_it_is_reads_everything_and_whoever_loses_it_begins_anew() -> None:
    process = Process()
    assert process.role.kafka_controller is None
    assert GetClusterState(OWN, BROKER_EPOCH) in process.tell(RegisterControllerResponse(OWN, 4))
    kafka_controller = process.role.kafka_controller
    assert kafka_controller is not None
    process.tell(RegisterControllerResponse(OWN, 4))
    assert process.role.kafka_controller is kafka_controller
    assert GetClusterState(OWN, BROKER_EPOCH) in process.tell(WatchNotification("/brokers/ids"))
    assert RegisterController(OWN, BROKER_EPOCH) in process.tell(WatchNotification("/controller"))
    assert process.role.kafka_controller is None


def test_a_broker_that_is_not_controller_takes_nothing_that_is_for_the_controller() -> None:
    process = Process()
    assert process.tell(LeaderAndIsrResponse(0, ErrorCode.NONE, BROKER_EPOCH)) == []
    assert process.tell(ControlledShutdown(OTHER, BROKER_EPOCH)) == []


# Stopping.


def test_a_broker_that_stops_asks_the_controller_and_ends_its_session_when_it_is_let_go() -> None:
    process = Process()
    assert process.role.ask_to_stop()
    sent = process.send(HeartbeatDue())
    assert (OTHER, ControlledShutdown(OWN, BROKER_EPOCH)) in sent
    assert [each.heartbeat.want_shutdown for _, each in sent if isinstance(each, BrokerHeartbeat)] == [True]
    process.tell(ControlledShutdownResponse(BrokerEpoch(BROKER_EPOCH - 1)))
    assert process.role.lifecycle is LifecycleState.PENDING_CONTROLLED_SHUTDOWN
    assert process.send(ControlledShutdownResponse(BROKER_EPOCH)) == [(CONTROLLER, CloseSession(OWN, BROKER_EPOCH))]
    # A ping that was overtaken is answered as of no session: that is no reason to begin another one.
    assert process.tell(BrokerHeartbeatResponse(ErrorCode.STALE_BROKER_EPOCH, BrokerState.UNREGISTERED)) == []
    process.tell(BrokerHeartbeatResponse(ErrorCode.NONE, BrokerState.SHUTDOWN_NOW))
    assert process.role.may_stop


def test_a_broker_that_nobody_lets_go_ends_its_session_after_as_many_attempts_as_kafkas() -> None:
    process = Process()
    process.role.ask_to_stop()
    for _ in range(STOP_ATTEMPTS_MAX):
        assert CloseSession(OWN, BROKER_EPOCH) not in process.tell(HeartbeatDue())
    assert CloseSession(OWN, BROKER_EPOCH) in process.tell(HeartbeatDue())


def test_a_follower_tells_its_leader_of_the_session_that_it_is_in() -> None:
    # Seed 37, harsh, 2 minutes, rules of 3.5: a follower that went on in another session asked as of the former one for
    # ever, and its leader took that for a late message.
    process = Process()
    process.follow()
    process.tell(BrokerHeartbeatResponse(ErrorCode.STALE_BROKER_EPOCH, BrokerState.UNREGISTERED))
    process.tell(BrokerRegistrationResponse(BrokerEpoch(BROKER_EPOCH + 1)))
    number = process.fetches[-1].number
    process.tell(FetchDue(0, number))
    assert [each.request.broker_epoch for each in process.fetches] == [BROKER_EPOCH, BROKER_EPOCH + 1]


def test_a_broker_that_knows_no_controller_asks_nobody() -> None:
    process = Process()
    process.tell(RegisterControllerResponse(NO_LEADER, 3))
    process.role.ask_to_stop()
    assert not any(isinstance(each, ControlledShutdown) for each in process.tell(HeartbeatDue()))
