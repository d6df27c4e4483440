"""One broker: what it says at once, what later, and what it does where a disk, a record or a question is bad."""

from __future__ import annotations

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, BrokerEpoch, BrokerId, LeaderEpoch, Offset
from broker.units import DurationMs, SizeBytes, TimeMs
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.errors import InconsistentTopicIdError, StorageError
from log.log_config import LOG_APPEND_TIME
from log.record import Record
from replication.roles.broker_role import BrokerRole
from replication.roles.broker_start import BrokerStart
from replication.roles.controller import ControllerRole
from replication.roles.hosted import Host
from replication.roles.messages import (
    CONTROLLER,
    Address,
    AlterPartition,
    AlterPartitionResponse,
    BrokerHeartbeat,
    BrokerRegistration,
    BrokerRegistrationResponse,
    CheckpointDue,
    Fetch,
    FetchDue,
    FetchResponse,
    HostedMessage,
    LagCheckDue,
    ListOffsetsResponse,
    Message,
    MetadataFetchResponse,
    OffsetsForLeaderEpoch,
    OffsetsForLeaderEpochResponse,
    PartitionRecord,
    PartitionRemoved,
    Produce,
    ProduceResponse,
    RegistrationDue,
)
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.roles.settings import RoleSettings
from replication.roles.states import ReplicaRole
from replication.rules.alter_partition import Altered
from replication.rules.fencing import StopProof
from replication.rules.fetch import FetchAnswer
from replication.rules.partition import BrokerStatus, EpochEnd, PartitionEpoch, PartitionState
from replication.rules.produce import ACKS_ALL
from replication.zookeeper.messages import GetClusterStateResponse, UpdateMetadata
from tests.replication.builders import ids
from tests.replication.roles.test_role_states import EPOCH, FOLLOWING, LEADER, NOW, OWN, PEER, Stage, evolved
from tests.replication.zookeeper.test_broker import Process

BATCH = build_batch(BatchSpec(partition_leader_epoch=EPOCH), (Record(Offset(0), NOW, None, b"x"),))
SETTINGS = RoleSettings()


def news(stage: Stage, **changes: object) -> list[Message]:
    """What the broker says to a new state of partition 0."""
    known = stage.role.image.partitions[0]
    later = PartitionEpoch(known.partition_epoch + 1)
    record = PartitionRecord(0, attrs.evolve(known, partition_epoch=later, **changes))  # type: ignore[arg-type] # fields by name.
    return stage.tell(MetadataFetchResponse(stage.role._question, stage.role.image.offset, (record,)))


def woken(stage: Stage, message: Message) -> list[tuple[DurationMs, Message]]:
    before = len(stage.out.woken)
    stage.tell(message)
    return stage.out.woken[before:]


def test_a_process_begins_with_its_registration_and_a_timer_for_each_task() -> None:
    proof = StopProof(BrokerEpoch(4))
    start = BrokerStart(OWN, "1/1", proof, lambda _: None, lambda _: None, lambda _: None, rack="a")  # type: ignore[arg-type, return-value] # no partition, so none is called.
    out = Outbox()
    BrokerRole(start, SETTINGS).begin(out)
    assert out.sent == [(Address(CONTROLLER), BrokerRegistration(OWN, "1/1", proof, "a"))]
    assert out.woken == [
        (SETTINGS.answer_ms_max, RegistrationDue()),
        (SETTINGS.checkpoint_ms, CheckpointDue()),
        (SETTINGS.settings.lag_ms_max // 2, LagCheckDue()),
    ]


# A leader.


def test_a_write_with_acks_1_is_answered_at_once_and_one_with_all_when_it_is_committed() -> None:
    stage = Stage(ReplicaRole.LEADING)
    assert stage.tell(Produce(0, 1, 1, BATCH)) == [ProduceResponse(0, 1, 1, ErrorCode.NONE, Offset(0), appended=True)]
    assert stage.tell(Produce(0, 2, 0, BATCH)) == []
    assert stage.tell(Produce(0, 3, ACKS_ALL, BATCH)) == []


def test_a_refused_write_is_at_no_offset() -> None:
    (answer,) = Stage(ReplicaRole.LEADING).tell(Produce(0, 1, 2, BATCH))
    assert answer == ProduceResponse(0, 1, 2, ErrorCode.INVALID_REQUIRED_ACKS, Offset(-1), appended=False)


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


@pytest.mark.parametrize(
    ("epoch", "error"), [(EPOCH + 1, ErrorCode.FENCED_LEADER_EPOCH), (EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
)
def test_a_fetch_that_waits_is_told_of_the_new_leader_by_its_epoch(epoch: int, error: ErrorCode) -> None:
    stage = Stage(ReplicaRole.LEADING)
    assert stage.tell(Fetch(0, 7, FOLLOWING)) == []
    told = news(stage, leader=BrokerId(2), leader_epoch=LeaderEpoch(epoch))
    assert FetchResponse(0, 7, FetchAnswer(error=error), b"") in told


def test_a_fetch_at_which_the_disk_fails_is_answered_with_a_storage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(ReplicaRole.LEADING)
    stage.tell(Produce(0, 1, 1, BATCH))

    def read(log: ReplicaLog, offset: Offset, bytes_max: SizeBytes) -> bytes:
        raise StorageError("read", log.log.directory, "broken")

    monkeypatch.setattr(ReplicaLog, "read", read)
    answers = [message for message in stage.tell(Fetch(0, 7, FOLLOWING)) if isinstance(message, FetchResponse)]
    assert answers == [FetchResponse(0, 7, FetchAnswer(error=ErrorCode.KAFKA_STORAGE_ERROR), b"")]


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


# A follower.


def test_a_follower_that_asks_for_its_place_has_no_timer_of_the_fetch_before() -> None:
    stage = Stage(ReplicaRole.FETCHING)
    number = stage.number
    stage.tell(FetchResponse(0, number, FetchAnswer(error=ErrorCode.OFFSET_OUT_OF_RANGE), b""))
    assert (stage.tell(FetchDue(0, number)), stage.replica_role) == ([], ReplicaRole.PLACING)
    assert stage.tell(FetchDue(0, stage.number)) != []


def test_records_that_are_corrupt_are_fetched_again_later() -> None:
    stage = Stage(ReplicaRole.FETCHING)
    number, spoilt = stage.number, BATCH[:-1] + bytes([BATCH[-1] ^ 1])
    again = woken(stage, FetchResponse(0, number, FetchAnswer(end_offset=Offset(1)), spoilt))
    assert again == [(stage.role.role_settings.fetch_backoff_ms, FetchDue(0, number))]
    assert stage.role.roles[0].log.state.end_offset == 0


@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH])
def test_a_follower_whose_question_for_a_place_is_refused_asks_again_later(error: ErrorCode) -> None:
    stage = Stage(ReplicaRole.PLACING)
    number = stage.number
    again = woken(stage, ListOffsetsResponse(0, number, error, Offset(-1), Offset(-1)))
    assert again == [(stage.role.role_settings.fetch_backoff_ms, FetchDue(0, number))]


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


class Guest:
    """Note what a hosted role is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def handle(self, *_: object) -> None:
        raise AssertionError

    def on_gained(self, partition: int, *_: object) -> None:
        self.notes.append(f"leads {partition}")

    def on_lost(self, partition: int, *_: object) -> None:
        self.notes.append(f"lost {partition}")


def test_a_hosted_role_is_told_of_a_partition_that_is_lost_with_its_directory() -> None:
    stage, guest = Stage(ReplicaRole.LEADING), Guest()
    stage.role.hosted_roles = (guest,)
    stage.role._lose_directory(stage.role.roles[0].log.log.directory, NOW, stage.out)
    assert guest.notes == ["lost 0"]


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
    nothing = GetClusterStateResponse(
        brokers={}, partitions={}, topics={}, unmade={}, deleted=frozenset(), offset=0, transaction=0
    )
    process.tell(UpdateMetadata(3, nothing))
    (answer,) = process.tell(Produce(0, 1, 1, BATCH))
    assert isinstance(answer, ProduceResponse)
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


# The controller.


def test_a_controller_writes_no_record_that_its_tables_do_not_list() -> None:
    controller, known = ControllerRole(SETTINGS), PartitionRecord(0, evolved())
    controller._write(known)
    for change in ({"recovering": True}, {"leader": NO_LEADER, "recovering": True}):
        with pytest.raises(AssertionError):
            controller._write(PartitionRecord(0, evolved(partition_epoch=PartitionEpoch(1), **change)))
    assert (controller.log, controller.image.partitions) == ([known], {0: known.state})
