"""One broker: what it says at once, what later, and what it does where a disk, a record or a question is bad."""

from __future__ import annotations

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch, Offset
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch
from log.errors import InconsistentTopicIdError, StorageError
from log.log_config import LOG_APPEND_TIME
from log.record import Record
from replication.roles.broker_role import BrokerRole
from replication.roles.hosted import BrokerStart, Host
from replication.roles.messages import (
    Address,
    AlterPartition,
    AlterPartitionResponse,
    BrokerHeartbeat,
    BrokerRegistrationResponse,
    Fetch,
    FetchResponse,
    HostedMessage,
    Message,
    MetadataFetchResponse,
    OffsetsForLeaderEpoch,
    OffsetsForLeaderEpochResponse,
    PartitionRecord,
    PartitionRemoved,
    Produce,
    ProduceResponse,
)
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.roles.settings import RoleSettings
from replication.roles.states.replica_role import ReplicaRole
from replication.rules.alter_partition import Altered
from replication.rules.fencing import StopProof
from replication.rules.partition import BrokerStatus, EpochEnd, PartitionEpoch, PartitionState
from replication.zookeeper.messages import GetClusterStateResponse, UpdateMetadata
from tests.replication.builders import ids
from tests.replication.roles.test_role_states import EPOCH, FOLLOWING, LEADER, NOW, OWN, PEER, Stage
from tests.replication.zookeeper.test_broker import Process

BATCH = build_batch(BatchSpec(partition_leader_epoch=EPOCH), (Record(Offset(0), NOW, None, b"x"),))
SETTINGS = RoleSettings()


def news(stage: Stage, **changes: object) -> list[Message]:
    """What the broker says to a new state of partition 0."""
    known = stage.role.image.partitions[0]
    later = PartitionEpoch(known.partition_epoch + 1)
    record = PartitionRecord(0, attrs.evolve(known, partition_epoch=later, **changes))  # type: ignore[arg-type] # fields by name.
    return stage.tell(MetadataFetchResponse(stage.role._question, stage.role.image.offset, (record,)))


# A leader.


def test_the_controller_is_asked_for_a_joining_follower_at_once_and_once() -> None:
    stage = Stage(ReplicaRole.LEADING)
    news(stage, isr=ids(1))
    brokers = {each: attrs.evolve(stage.role.image.brokers[OWN], fenced=False) for each in ids(1, 2, 3)}
    stage.role.image.brokers = brokers
    fetch = Fetch(0, 1, attrs.evolve(FOLLOWING, broker_epoch=BrokerEpoch(1)))
    asked = [
        [message.request.members for message in stage.tell(each) if isinstance(message, AlterPartition)]
        for each in (fetch, attrs.evolve(fetch, number=2), Produce(0, 3, 1, BATCH))
    ]
    assert asked == [[ids(1, 3)], [], []]


def test_who_leads_no_more_answers_what_it_held() -> None:
    """ReplicaManager.makeFollowers completes the delayed writes and fetches of the partition."""
    stage = Stage(ReplicaRole.LEADING)
    assert not [each for each in stage.tell(Produce(0, 1, -1, BATCH)) if isinstance(each, ProduceResponse)]
    stage.tell(Fetch(0, 2, attrs.evolve(FOLLOWING, offset=Offset(1))))
    told = news(stage, leader=LEADER, leader_epoch=LeaderEpoch(EPOCH + 1))
    errors = {type(each): each.error for each in told if isinstance(each, ProduceResponse)}
    held = [each.answer.error for each in told if isinstance(each, FetchResponse)]
    assert (errors, held) == ({ProduceResponse: ErrorCode.NOT_LEADER_OR_FOLLOWER}, [ErrorCode.FENCED_LEADER_EPOCH])


def test_an_epoch_is_known_to_its_leader_before_it_has_a_record() -> None:
    """Partition.makeLeader assigns the start of the new epoch in the leader epoch cache."""
    stage = Stage(ReplicaRole.LEADING)
    (answer,) = stage.tell(OffsetsForLeaderEpoch(0, 1, EPOCH, EPOCH))
    assert answer == OffsetsForLeaderEpochResponse(0, 1, ErrorCode.NONE, EpochEnd(EPOCH, Offset(0)))


@pytest.mark.parametrize("leader", [OWN, LEADER])
def test_metadata_older_than_the_answer_to_an_alter_partition_are_skipped(leader: BrokerId) -> None:
    """Partition.makeLeader and makeFollower skip a partition epoch below the one that the leader has applied."""
    stage = Stage(ReplicaRole.LEADING)
    stage.tell(Produce(0, 1, 1, BATCH))
    brokers = {each: BrokerStatus(epoch=BrokerEpoch(1)) for each in ids(1, 2, 3)}
    stage.role.image.brokers = brokers
    news(stage, isr=ids(1))
    (asked, *_) = stage.tell(Fetch(0, 1, attrs.evolve(FOLLOWING, offset=Offset(1), broker_epoch=BrokerEpoch(1))))
    assert isinstance(asked, AlterPartition)
    after = attrs.evolve(stage.role.image.partitions[0], isr=ids(1, 3), partition_epoch=PartitionEpoch(5))
    stage.tell(AlterPartitionResponse(0, asked.request, Altered(ErrorCode.NONE, after)))
    before = stage.snapshot()
    news(stage, leader=leader)
    assert stage.snapshot() == (before[0], before[1] + 1, before[2])  # type: ignore[index] # only the image moves.


# Logs that a broker must not touch.


class Housekeeper:
    """Hold the logs of a broker; those of another topic cannot be opened."""

    def __init__(self, *, is_foreign: bool) -> None:
        self.is_foreign = is_foreign
        self.opened: list[int] = []
        self.dropped: list[int] = []
        self.looked: list[tuple[int, ...]] = []
        """The partitions of the metadata by which strays were looked for, each time."""
        start = BrokerStart(
            OWN,
            "1/1",
            StopProof(),
            self.open,
            self.dropped.append,
            lambda _: None,
            drop_strays=lambda image: self.looked.append(tuple(image.partitions)),
        )
        self.role = BrokerRole(start, SETTINGS)
        self.role.begin(Outbox())
        self.role.handle(BrokerRegistrationResponse(BrokerEpoch(1)), PEER, NOW, Outbox())

    def open(self, partition: int) -> ReplicaLog:
        self.opened.append(partition)
        if self.is_foreign:
            raise InconsistentTopicIdError("of another topic")
        raise StorageError("open", "disk-0/t-0", "broken")

    def tell(self, record: PartitionRecord | PartitionRemoved) -> list[Message]:
        role, out = self.role, Outbox()
        role.handle(MetadataFetchResponse(role._question, role.image.offset, (record,)), PEER, TimeMs(NOW), out)
        return [message for _, message in out.sent]


@pytest.mark.parametrize("is_foreign", [False, True])
def test_a_log_that_could_not_be_opened_is_neither_opened_again_nor_deleted(is_foreign: bool) -> None:
    keeper = Housekeeper(is_foreign=is_foreign)
    state = PartitionState(replicas=ids(1, 2), isr=ids(1, 2), leader=BrokerId(2))
    keeper.tell(PartitionRecord(0, state))
    assert keeper.opened == [0]
    for epoch, replicas in ((1, ids(1, 2)), (2, ids(2, 3))):
        later = attrs.evolve(state, replicas=replicas, isr=ids(2), partition_epoch=PartitionEpoch(epoch))
        keeper.tell(PartitionRecord(0, later))
    keeper.tell(PartitionRemoved(0))
    assert (keeper.opened, keeper.dropped, keeper.role.roles) == ([0], [], {})
    assert keeper.looked == [(0,)]  # LogManager looks for strays once, by the first metadata.


def test_a_replica_whose_log_could_not_be_opened_is_offline_and_the_controller_is_told() -> None:
    """ReplicaManager.applyDelta marks the partition offline; KIP-858 has the broker name it in its next heartbeat."""
    keeper = Housekeeper(is_foreign=False)
    told = keeper.tell(PartitionRecord(0, PartitionState(replicas=ids(1, 2), isr=ids(1, 2), leader=BrokerId(1))))
    assert {message.offline for message in told if isinstance(message, BrokerHeartbeat)} == {frozenset({0})}
    out = Outbox()
    keeper.role.handle(Produce(0, 1, 1, BATCH), PEER, NOW, out)
    assert [message.error for _, message in out.sent if isinstance(message, ProduceResponse)] == [
        ErrorCode.KAFKA_STORAGE_ERROR
    ]


class Writer:
    """Append a batch whenever a message comes, as a coordinator does."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def handle(self, message: Message, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        if isinstance(message, HostedMessage):
            self.host.append(0, BATCH, out)

    def on_gained(self, *_: object) -> None: ...

    def on_lost(self, *_: object) -> None: ...


def test_what_a_hosted_role_appends_has_the_time_of_the_message_that_it_handles() -> None:
    """As of a write of a client, a log of LogAppendTime notes when it came."""
    stage = Stage(ReplicaRole.LEADING)
    log = stage.role.roles[0].log.log
    log.config = attrs.evolve(log.config, timestamp_type=LOG_APPEND_TIME)
    stage.role.hosted_roles = (Writer(stage.role),)
    for now in (NOW, TimeMs(NOW + 5)):
        stage.role.handle(HostedMessage(), PEER, now, stage.out)
        assert log.active_segment.max_timestamp.timestamp == now


# In ZooKeeper's mode.


def test_a_replica_is_known_to_its_broker_before_the_metadata_tell_of_it() -> None:
    """UpdateMetadata of an earlier read may come after LeaderAndIsr; ReplicaManager.getPartitionOrError knows it."""
    process = Process()
    assert process.follow() is ErrorCode.NONE
    nothing = GetClusterStateResponse(brokers={}, partitions={}, topics={}, unmade={}, offset=0, transaction=0)
    process.tell(UpdateMetadata(3, nothing))
    (answer,) = process.tell(Produce(0, 1, 1, BATCH))
    assert isinstance(answer, ProduceResponse)
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
