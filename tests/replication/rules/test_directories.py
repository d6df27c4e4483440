"""Several log directories a broker: one fails, and only its replicas go."""

from __future__ import annotations

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId
from broker.registration import Heartbeat
from broker.units import TimeMs
from replication.roles.controller import ControllerRole
from replication.roles.messages import (
    Address,
    AlterPartitionReassignments,
    AlterPartitionReassignmentsResponse,
    BrokerHeartbeat,
    BrokerRegistration,
    BrokerRegistrationResponse,
    CreateTopic,
    DeleteTopic,
    ElectLeaders,
    ElectLeadersResponse,
    Message,
    NodeId,
)
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.rules.election import Election
from replication.rules.fencing import StopProof

ONE, TWO = BrokerId(1), BrokerId(2)


class Talk:
    """A controller, brokers 1 and 2 unfenced, and partitions 0 and 1 on both."""

    def __init__(self) -> None:
        self.role = ControllerRole(RoleSettings())
        self.epochs: dict[BrokerId, BrokerEpoch] = {}
        for broker in (ONE, TWO):
            self.register(broker, 1)
        for partition in (0, 1):
            self.say(CreateTopic(partition, (ONE, TWO)))

    def say(self, message: Message, broker: int = ONE, now_ms: int = 0) -> list[Message]:
        """Return what is sent because of a message."""
        out = Outbox()
        self.role.handle(message, Address(NodeId(broker)), TimeMs(now_ms), out)
        return [each for _, each in out.sent]

    def register(self, broker: BrokerId, life: int, now_ms: int = 0) -> None:
        """Let a broker register and report that it is there."""
        told = self.say(BrokerRegistration(broker, f"{broker}/{life}", StopProof()), broker, now_ms)[0]
        assert isinstance(told, BrokerRegistrationResponse)
        assert told.epoch is not None
        self.epochs[broker] = told.epoch
        self.report(broker, now_ms=now_ms)

    def report(self, broker: BrokerId, *offline: int, now_ms: int = 0) -> None:
        """Let a broker send a heartbeat."""
        heartbeat = Heartbeat(metadata_offset=len(self.role.log) - 1)
        self.say(BrokerHeartbeat(broker, self.epochs[broker], heartbeat, frozenset(offline)), broker, now_ms)

    def isr(self, partition: int) -> tuple[BrokerId, ...]:
        """Return the ISR of a partition."""
        return self.role.image.partitions[partition].isr


def test_only_the_replicas_in_the_directory_that_failed_leave_their_isr() -> None:
    talk = Talk()
    talk.report(ONE, 0)
    assert (talk.isr(0), talk.isr(1)) == ((TWO,), (ONE, TWO))
    assert talk.role.image.partitions[0].leader == TWO
    assert talk.role.image.brokers[ONE].is_active


def test_the_same_report_again_changes_nothing() -> None:
    talk = Talk()
    talk.report(ONE, 0)
    records = len(talk.role.log)
    talk.report(ONE, 0)
    assert len(talk.role.log) == records


def test_a_replica_in_a_failed_directory_is_not_elected() -> None:
    talk = Talk()
    talk.report(ONE, 0)
    told = talk.say(ElectLeaders(0, Election.PREFERRED), 2_000)
    assert told == [ElectLeadersResponse(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]
    talk.say(AlterPartitionReassignments(1, (TWO, ONE)))
    talk.say(ElectLeaders(1, Election.PREFERRED))
    assert talk.say(AlterPartitionReassignments(1, (ONE, TWO)), 2_000) == [
        AlterPartitionReassignmentsResponse(1, ErrorCode.NONE)
    ]
    assert talk.say(ElectLeaders(1, Election.PREFERRED), 2_000) == [ElectLeadersResponse(1, ErrorCode.NONE)]


def test_a_partition_without_any_directory_has_no_leader_until_one_is_back() -> None:
    talk = Talk()
    talk.report(ONE, 0)
    talk.report(TWO, 0)
    assert not talk.role.image.partitions[0].has_leader
    talk.report(ONE, 0)
    assert not talk.role.image.partitions[0].has_leader


def test_a_new_life_of_a_broker_has_its_directories_again() -> None:
    talk = Talk()
    talk.report(ONE, 0)
    talk.register(ONE, 2, now_ms=60_000)
    assert talk.role.image.brokers[ONE].offline == frozenset()


def test_orders_for_what_is_not_there_are_refused() -> None:
    talk = Talk()
    talk.say(DeleteTopic(0))
    assert 0 not in talk.role.image.partitions
    assert talk.say(DeleteTopic(0)) == []
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert talk.say(ElectLeaders(0, Election.PREFERRED), 2_000) == [ElectLeadersResponse(0, unknown)]
    assert talk.say(AlterPartitionReassignments(0, (ONE,)), 2_000) == [AlterPartitionReassignmentsResponse(0, unknown)]
