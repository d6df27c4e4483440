"""ZooKeeper as brokers see it: sessions, versions, watches that tell once."""

from __future__ import annotations

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, BrokerEpoch, BrokerId, LeaderEpoch
from broker.registration import BrokerState, Heartbeat, ZookeeperState
from broker.units import TimeMs
from replication.roles.messages import (
    Address,
    AlterPartition,
    AlterPartitionResponse,
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
    CreateTopic,
    Message,
    NodeId,
    SessionsDue,
)
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.rules.fencing import StopProof
from replication.rules.partition import AlterPartitionRequest, IsrMember, PartitionEpoch, PartitionState
from replication.rules.settings import PartitionSettings
from replication.rules.switches import rules_of
from replication.zookeeper import ZooKeeperRole
from replication.zookeeper.messages import (
    CloseSession,
    GetClusterState,
    GetClusterStateResponse,
    RegisterController,
    RegisterControllerResponse,
    UpdatePartitionState,
    UpdatePartitionStateResponse,
    WatchNotification,
)

ONE, TWO = BrokerId(1), BrokerId(2)
SETTINGS = RoleSettings(settings=PartitionSettings(rules=rules_of("3.5"), min_isr=1), has_zookeeper=True)


class Talk:
    """ZooKeeper with brokers 1 and 2 in session since 0 ms, and a topic on both whose partition 0 has no state yet."""

    def __init__(self) -> None:
        self.role = ZooKeeperRole(SETTINGS)
        self.epochs: dict[BrokerId, BrokerEpoch] = {}
        for broker in (ONE, TWO):
            told = self.say(BrokerRegistration(broker, f"{broker}/1", StopProof()), broker)[-1]
            assert isinstance(told, BrokerRegistrationResponse)
            assert told.epoch is not None
            self.epochs[broker] = told.epoch
        self.say(CreateTopic(0, (ONE, TWO)))

    def say(self, message: Message, broker: BrokerId = ONE, now_ms: int = 0) -> list[Message]:
        """Return what is sent because of a message."""
        return [each for _, each in self.send(message, broker, now_ms)]

    def send(self, message: Message, broker: BrokerId = ONE, now_ms: int = 0) -> list[tuple[NodeId, Message]]:
        """Return what is sent, and to whom."""
        out = Outbox()
        self.role.handle(message, Address(NodeId(broker)), TimeMs(now_ms), out)
        return [(address.node, each) for address, each in out.sent]

    def make(self) -> None:
        """Let 1 be controller and write the first state of partition 0."""
        self.control(ONE)
        self.say(UpdatePartitionState(ONE, 1, 0, PartitionState(replicas=(ONE, TWO), isr=(ONE, TWO), leader=ONE)))

    def ping(self, broker: BrokerId, now_ms: int, *, stops: bool = False) -> list[Message]:
        """Return the answer to a ping of a session."""
        heartbeat = Heartbeat(metadata_offset=0, want_shutdown=stops)
        return self.say(BrokerHeartbeat(broker, self.epochs[broker], heartbeat), broker, now_ms)

    def control(self, broker: BrokerId) -> RegisterControllerResponse:
        """Return the answer to a broker that wants to be controller."""
        told = self.say(RegisterController(broker, self.epochs[broker]), broker)[-1]
        assert isinstance(told, RegisterControllerResponse)
        return told

    @property
    def state(self) -> PartitionState:
        """Partition 0."""
        return self.role.image.partitions[0]


def test_the_first_to_make_the_node_is_controller_and_each_controller_has_its_epoch() -> None:
    talk = Talk()
    assert talk.control(TWO) == RegisterControllerResponse(TWO, 1)
    assert talk.control(ONE) == RegisterControllerResponse(TWO, 1)
    talk.ping(ONE, 9_000)
    assert (NodeId(1), WatchNotification("/controller")) in talk.send(SessionsDue(), now_ms=9_001)
    assert talk.role.controller == NO_LEADER
    assert talk.control(ONE) == RegisterControllerResponse(ONE, 2)


def test_a_session_lasts_as_long_as_it_is_heard_of_and_takes_its_node_with_it() -> None:
    talk = Talk()
    talk.ping(ONE, 5_000)
    talk.say(SessionsDue(), now_ms=9_000)
    assert not talk.role.image.brokers[TWO].fenced
    talk.say(SessionsDue(), now_ms=9_001)
    assert talk.role.image.brokers[TWO].fenced
    assert not talk.role.image.brokers[ONE].fenced
    assert talk.ping(TWO, 9_002) == [BrokerHeartbeatResponse(ErrorCode.STALE_BROKER_EPOCH, BrokerState.UNREGISTERED)]


def test_a_late_ping_of_a_former_session_is_answered_to_nobody_once_there_is_another() -> None:
    talk = Talk()
    late = talk.epochs[TWO]
    talk.say(SessionsDue(), now_ms=9_001)
    told = talk.say(BrokerRegistration(TWO, "2/2", StopProof()), TWO, 9_002)[-1]
    assert isinstance(told, BrokerRegistrationResponse)
    assert talk.say(BrokerHeartbeat(TWO, late, Heartbeat(metadata_offset=0)), TWO, 9_003) == []


def test_a_broker_that_comes_back_waits_until_its_former_node_is_gone() -> None:
    talk = Talk()
    again = BrokerRegistration(TWO, "2/2", StopProof())
    assert talk.say(again, TWO) == [BrokerRegistrationResponse(None)]
    talk.say(SessionsDue(), now_ms=20_000)
    told = talk.say(again, TWO, 20_000)[0]
    assert isinstance(told, BrokerRegistrationResponse)
    assert told.epoch is not None
    assert told.epoch > talk.epochs[TWO]


def test_a_broker_that_stops_ends_its_session_itself() -> None:
    talk = Talk()
    assert talk.ping(ONE, 100, stops=True) == [BrokerHeartbeatResponse(ErrorCode.NONE, BrokerState.UNFENCED)]
    assert talk.role.broker_nodes[ONE] is ZookeeperState.SHUTTING_DOWN
    close = CloseSession(ONE, talk.epochs[ONE])
    assert talk.say(close) == [BrokerHeartbeatResponse(ErrorCode.NONE, BrokerState.SHUTDOWN_NOW)]
    assert talk.role.image.brokers[ONE].fenced
    # The answer may have been lost.
    assert talk.say(close) == [BrokerHeartbeatResponse(ErrorCode.NONE, BrokerState.SHUTDOWN_NOW)]


def test_a_broker_that_has_lost_its_connection_may_end_its_session_over_another() -> None:
    """Swarm seed 11: a broker that was cut off while it stopped closed its session, and ZooKeeper refused that."""
    talk = Talk()
    talk.say(SessionsDue(), now_ms=6_001)
    assert talk.role.broker_nodes[ONE] is ZookeeperState.DISCONNECTED
    close = CloseSession(ONE, talk.epochs[ONE])
    assert talk.say(close, now_ms=6_002) == [BrokerHeartbeatResponse(ErrorCode.NONE, BrokerState.SHUTDOWN_NOW)]
    assert talk.role.broker_nodes[ONE] is ZookeeperState.ABSENT


def test_a_broker_that_is_silent_for_two_thirds_of_a_session_has_lost_its_connection_and_finds_it_again() -> None:
    talk = Talk()
    talk.ping(TWO, 5_000)
    talk.say(SessionsDue(), now_ms=6_000)
    assert talk.role.broker_nodes[ONE] is ZookeeperState.ALIVE
    talk.say(SessionsDue(), now_ms=6_001)
    assert talk.role.broker_nodes == {ONE: ZookeeperState.DISCONNECTED, TWO: ZookeeperState.ALIVE}
    assert not talk.role.image.brokers[ONE].fenced
    talk.ping(ONE, 6_002)
    assert talk.role.broker_nodes[ONE] is ZookeeperState.ALIVE


def test_a_watch_tells_once_that_something_has_changed_and_not_what() -> None:
    talk = Talk()
    read = talk.say(GetClusterState(TWO, talk.epochs[TWO]), TWO)[0]
    assert isinstance(read, GetClusterStateResponse)
    assert read.unmade == {0: CreateTopic(0, (ONE, TWO), "topic-0")}
    assert talk.send(CreateTopic(1, (ONE,))) == [(NodeId(2), WatchNotification("/brokers/topics"))]
    assert talk.send(CreateTopic(2, (ONE,))) == []


def test_who_has_no_session_reads_and_takes_nothing() -> None:
    talk = Talk()
    assert talk.say(GetClusterState(TWO, BrokerEpoch(99)), TWO) == []
    assert talk.say(RegisterController(TWO, BrokerEpoch(99)), TWO) == []


def _moved(state: PartitionState, version: int) -> PartitionState:
    return attrs.evolve(
        state, leader=TWO, leader_epoch=LeaderEpoch(1), isr=(TWO,), partition_epoch=PartitionEpoch(version + 1)
    )


@pytest.mark.parametrize(
    ("controller_epoch", "version", "is_written"),
    [(1, 0, True), (0, 0, False), (2, 0, False), (1, 1, False)],
    ids=["current", "former controller", "later controller", "old version"],
)
def test_a_controller_writes_under_its_epoch_and_on_the_version_it_has_read(
    controller_epoch: int, version: int, is_written: bool
) -> None:
    talk = Talk()
    talk.make()
    before = talk.state
    told = talk.say(UpdatePartitionState(ONE, controller_epoch, 0, _moved(before, version)))[-1]
    if controller_epoch == 1:
        assert told == UpdatePartitionStateResponse(0, talk.state, is_written)
    else:
        assert told == RegisterControllerResponse(ONE, 1)
    assert (talk.state == _moved(before, 0)) is is_written


def _ask(talk: Talk, *, version: int = 0, epoch: BrokerEpoch | None = None) -> AlterPartition:
    isr = (IsrMember(ONE),)
    request = AlterPartitionRequest(
        leader=ONE, leader_epoch=LeaderEpoch(0), partition_epoch=PartitionEpoch(version), isr=isr
    )
    return AlterPartition(0, 1, request, talk.epochs[ONE] if epoch is None else epoch)


def test_a_leader_writes_its_isr_on_the_version_that_it_knows() -> None:
    talk = Talk()
    talk.make()
    told = talk.say(_ask(talk))[-1]
    assert isinstance(told, AlterPartitionResponse)
    assert told.altered.error is ErrorCode.NONE
    assert (talk.state.isr, talk.state.partition_epoch) == ((ONE,), 1)


def test_a_leader_that_has_not_heard_that_its_write_succeeded_is_told_when_it_writes_the_same_again() -> None:
    # Seed 218, harsh, 2 minutes, rules of 3.5: refused for the version that it made itself, the leader never got on.
    talk = Talk()
    talk.make()
    talk.say(_ask(talk))
    written = talk.state
    told = talk.say(_ask(talk))[-1]
    assert isinstance(told, AlterPartitionResponse)
    assert (told.altered.error, told.altered.partition) == (ErrorCode.NONE, written)
    assert talk.state is written


@pytest.mark.parametrize(
    ("version", "epoch", "error"),
    [(1, None, ErrorCode.INVALID_UPDATE_VERSION), (0, BrokerEpoch(99), ErrorCode.STALE_BROKER_EPOCH)],
    ids=["version", "session"],
)
def test_a_refused_write_of_an_isr_changes_nothing(version: int, epoch: BrokerEpoch | None, error: ErrorCode) -> None:
    talk = Talk()
    talk.make()
    before = talk.state
    told = talk.say(_ask(talk, version=version, epoch=epoch))[-1]
    assert isinstance(told, AlterPartitionResponse)
    assert told.altered.error is error
    assert talk.state is before


def test_the_controller_is_told_that_a_leader_has_written_its_isr_and_of_the_next_time_only_after_it_has_read() -> None:
    talk = Talk()
    talk.make()
    note = (NodeId(2), WatchNotification("/isr_change_notification"))
    for version, notes in ((0, [note]), (1, [])):
        if version == 0:
            talk.say(GetClusterState(TWO, talk.epochs[TWO]), TWO)
        assert [
            each for each in talk.send(_ask(talk, version=version)) if isinstance(each[1], WatchNotification)
        ] == notes
    talk.say(GetClusterState(TWO, talk.epochs[TWO]), TWO)
    assert talk.role.tree.children("/isr_change_notification") == ()
    assert note in talk.send(_ask(talk, version=2))


def test_the_controller_too_is_told_that_its_node_was_removed() -> None:
    talk = Talk()
    talk.control(ONE)
    out = Outbox()
    talk.role.start(TimeMs(0), out)
    assert [(address.node, each) for address, each in out.sent] == [(NodeId(1), WatchNotification("/controller"))]
    assert talk.control(TWO) == RegisterControllerResponse(TWO, 2)
