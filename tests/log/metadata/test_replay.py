"""Records played: what counts when, what snapshots must say, and what is refused."""

from __future__ import annotations

import attrs
import pytest

from broker.errors import InputError
from broker.ids import BrokerId, Offset
from broker.units import TimeMs
from log import BatchSpec, Record, build_batch
from log.metadata import (
    MetadataFile,
    MetadataImage,
    MetadataRecord,
    Moment,
    PartitionImage,
    RecordType,
    RejectedRecords,
    Replay,
    UnreadableEntryError,
    arrange,
    images_at,
    replay_notes,
    snapshot_id,
)
from log.metadata.image import MIGRATING
from log.metadata.reading import MetadataFiles
from tests.log.metadata.made import (
    ORDERS,
    broker,
    change,
    config,
    fenced,
    log_file,
    made,
    partition,
    real_files,
    snapshot_file,
    topic,
)

BEGIN = made(RecordType.BEGIN_TRANSACTION_RECORD, name="x")
END_OF_IT = made(RecordType.END_TRANSACTION_RECORD)
ABORT = made(RecordType.ABORT_TRANSACTION_RECORD)
START = (broker(1), broker(2), broker(3), topic(), partition(1, 2, 3))


def image_of(*files: MetadataFile, rejected: RejectedRecords | None = None) -> MetadataImage:
    replay = Replay(arrange(files), rejected=rejected)
    for _ in replay.steps():
        pass
    return replay.image()


def partition_of(*records: MetadataRecord) -> PartitionImage:
    return image_of(log_file(*filter(None, (START, records)))).topics[ORDERS].partitions[0]


def test_the_leader_epoch_rises_exactly_if_the_record_names_a_leader() -> None:
    for leader, expected in ((-2, 0), (1, 1), (2, 1), (-1, 1)):
        found = partition_of(change(leader=leader))
        assert (found.leader_epoch, found.partition_epoch) == (expected, 1), leader
        assert found.leader == (1 if leader == -2 else leader)


def test_what_a_change_leaves_out_stays_and_what_it_has_replaces() -> None:
    found = partition_of(change(isr=(1,), eligibleLeaderReplicas=(2,), lastKnownElr=(3,)), change(addingReplicas=(4,)))
    assert (found.isr, found.elr, found.last_known_elr, found.adding, found.removing) == ((1,), (2,), (3,), (4,), ())
    assert found.replicas == (1, 2, 3)
    assert found.partition_epoch == 2
    emptied = partition_of(change(isr=(), eligibleLeaderReplicas=(2,)), change(eligibleLeaderReplicas=()))
    assert (emptied.isr, emptied.elr) == ((), ())


def test_directories_are_as_many_as_replicas() -> None:
    assert partition_of().directories == (MIGRATING,) * 3
    assert partition_of(change(replicas=(1, 2))).directories == (MIGRATING,) * 2
    with pytest.raises(UnreadableEntryError) as refusal:
        partition_of(change(replicas=(1, 2), directories=(ORDERS,)))
    assert str(refusal.value) == (
        "00000000000000000000.log: offset 5: PARTITION_CHANGE_RECORD: 1 directories are named for 2 replicas"
    )


def test_clearing_eligible_leaders_is_a_change_of_those_that_had_any() -> None:
    clear = made(RecordType.CLEAR_ELR_RECORD)
    assert partition_of(clear).partition_epoch == 0
    found = partition_of(change(isr=(1,), eligibleLeaderReplicas=(2,)), clear)
    assert (found.elr, found.last_known_elr, found.partition_epoch, found.leader_epoch) == ((), (), 2, 0)


def test_a_removed_topic_takes_its_settings_along_and_may_come_again() -> None:
    removed = made(RecordType.REMOVE_TOPIC_RECORD, topicId=ORDERS)
    setting = config("retention.ms", "1", topic="orders")
    image = image_of(log_file((*START, setting), (removed,)))
    assert image.topics == {}
    assert image.configs == {}
    again = image_of(log_file((*START, setting), (removed,), (topic(topic_id="Z" * 21 + "A"),)))
    assert [(each.name, each.id) for each in again.topics.values()] == [("orders", "Z" * 21 + "A")]


def test_the_records_of_a_transaction_count_when_it_ends_and_never_if_it_is_aborted() -> None:
    inside = (BEGIN, change(leader=2))
    before, after = (Moment(offset=Offset(offset)) for offset in (6, 7))
    for last, leaders in ((END_OF_IT, [1, 2]), (ABORT, [1, 1])):
        replay = Replay(arrange([log_file(START, inside, (last,))]))
        found = list(images_at(replay, (before, after)))
        assert [image.topics[ORDERS].partitions[0].leader for image in found] == leaders
        assert [image.offset for image in found] == [4, 7]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ((END_OF_IT,), "END_TRANSACTION_RECORD without having seen a BeginTransactionRecord"),
        ((ABORT,), "ABORT_TRANSACTION_RECORD without having seen a BeginTransactionRecord"),
        ((BEGIN, BEGIN), "Encountered BeginTransactionRecord while already in a transaction"),
        ((change(leader=1),), f"PARTITION_CHANGE_RECORD: there is no topic of id {ORDERS}"),
        ((topic(), change(7)), f"PARTITION_CHANGE_RECORD: Unable to find partition {ORDERS}:7"),
        (
            (fenced(1),),
            "BROKER_REGISTRATION_CHANGE_RECORD: Tried to change broker 1, but that broker was not registered.",
        ),
        (
            (broker(1, brokerEpoch=9), fenced(1)),
            "BROKER_REGISTRATION_CHANGE_RECORD: Tried to change broker 1, but the given epoch, 1, "
            "did not match the current broker epoch, 9",
        ),
    ],
)
def test_a_record_that_contradicts_is_reported_with_offset_and_type_or_put_aside(
    records: tuple[MetadataRecord, ...], message: str
) -> None:
    file = log_file(records)
    with pytest.raises(UnreadableEntryError) as refusal:
        image_of(file)
    assert str(refusal.value) == f"00000000000000000000.log: offset {len(records) - 1}: {message}"
    rejected = RejectedRecords()
    image_of(file, rejected=rejected)
    assert [str(error) for error in rejected.errors] == [str(refusal.value)]


def test_a_log_from_its_beginning_a_snapshot_with_the_tail_and_every_snapshot_agree() -> None:
    files = real_files()
    (segment,) = (file for file in files if file.name.endswith(".log"))
    snapshots = [(found, file) for file in files if (found := snapshot_id(file.name)) and found.end_offset]
    assert len(snapshots) == 4
    whole = image_of(*files)
    replay = Replay(arrange(files))
    at = [Moment(offset=Offset(found.end_offset - 1)) for found, _ in snapshots]
    for (found, file), image in zip(snapshots, images_at(replay, at), strict=True):
        alone = image_of(file)
        assert list(alone.differences(image)) == []
        assert (alone.offset, alone.epoch) == (found.end_offset - 1, found.epoch)
        tail = Replay(MetadataFiles(file, (segment,), (), found))
        for _ in tail.steps():
            pass
        assert tail.image() == whole
    assert replay.disagreements == []


def test_a_snapshot_that_says_something_else_than_the_log_is_reported() -> None:
    replay = Replay(arrange([log_file((broker(1),), (broker(2),)), snapshot_file(1, broker(1, rack="other"))]))
    for _ in replay.steps():
        pass
    assert replay.disagreements == [
        "00000000000000000001-0000000001.checkpoint: the snapshot up to offset 1 differs from the log: brokers: 1"
    ]


def test_a_log_whose_beginning_is_gone_begins_with_the_earliest_snapshot_that_reaches_it() -> None:
    tail = log_file((broker(3),), (broker(4),), start_offset=2)
    files = [snapshot_file(2, broker(1), broker(2)), snapshot_file(3, broker(1), broker(2), broker(3)), tail]
    arranged = arrange(files)
    assert arranged.start is files[0]
    assert [found.end_offset for found, _ in arranged.checks] == [3]
    image = image_of(*files)
    assert sorted(image.brokers) == [1, 2, 3, 4]
    assert image.offset == 3
    assert arrange(files[:2]).start is files[1]
    with pytest.raises(InputError) as refusal:
        arrange([tail])
    assert str(refusal.value) == (
        "00000000000000000002.log: the log begins at offset 2, and no snapshot holds what stood before; "
        "give the directory"
    )


def test_missing_records_are_reported() -> None:
    with pytest.raises(UnreadableEntryError, match="offset 3: the records from offset 1 are missing"):
        image_of(log_file((broker(1),)), log_file((broker(2),), start_offset=3))


def test_a_snapshot_that_was_not_written_to_its_end_is_damage() -> None:
    whole = snapshot_file(2, broker(1))
    torn = MetadataFile(whole.name, whole.source, whole.data[:-30])
    with pytest.raises(Exception, match="a snapshot without SNAPSHOT_FOOTER; it was not written to its end"):
        image_of(torn)


def test_there_must_be_a_file() -> None:
    with pytest.raises(InputError, match="there is no segment and no snapshot of a metadata log"):
        arrange([])


DIRECTORIES = ("A" * 21 + "Q", "B" * 21 + "A")


def test_a_change_of_cordoned_directories_replaces_them_and_absence_leaves_them() -> None:
    kind, start = RecordType.BROKER_REGISTRATION_CHANGE_RECORD, broker(1, logDirs=DIRECTORIES)
    one = made(kind, brokerId=1, brokerEpoch=1, cordonedLogDirs=DIRECTORIES[:1])
    both, none = (attrs.evolve(one, data={**one.data, "cordonedLogDirs": each}) for each in (DIRECTORIES, ()))
    for records, expected in (
        ((), (None, False)),
        ((one,), (DIRECTORIES[:1], False)),
        ((one, fenced(1)), (DIRECTORIES[:1], False)),
        ((one, both), (DIRECTORIES, True)),
        ((both, none), ((), False)),
    ):
        found = image_of(log_file((start, *records))).brokers[BrokerId(1)]
        assert (found.cordoned, found.is_cordoned) == expected


def test_records_of_later_versions_are_read_and_counted() -> None:
    known = fenced(1)
    later = attrs.evolve(known, version=known.version + 1)
    data = known.to_bytes()
    data = data[:2] + bytes([later.version]) + data[3:]
    values = (broker(1).to_bytes(), data, data)
    batch = build_batch(BatchSpec(), [Record(Offset(i), TimeMs(0), None, each) for i, each in enumerate(values)])
    replay = Replay(arrange([MetadataFile("0.log", "0.log", batch)]))
    for _ in replay.steps():
        pass
    assert replay.image().brokers[BrokerId(1)].fenced
    assert list(replay_notes(replay)) == [
        "2 BROKER_REGISTRATION_CHANGE_RECORDs of version 4, later than the newest known, 3: what it adds was skipped"
    ]


@pytest.mark.parametrize(
    ("value", "is_uncertain"),
    [
        (made(RecordType.REGISTER_BROKER_RECORD).to_bytes() + b"x", True),  # A later version with an untagged field.
        (made(RecordType.REGISTER_BROKER_RECORD).to_bytes()[:-4], True),
        (b"\1\x63\0\0", True),  # A type that is not known.
        (fenced(9).to_bytes(), True),  # A broker that is not registered.
        (made(RecordType.NO_OP_RECORD).to_bytes() + b"x", False),
        (change().to_bytes(), False),  # A topic that is not known.
    ],
)
def test_a_record_left_out_that_may_decide_who_is_alive_has_a_note(value: bytes, is_uncertain: bool) -> None:
    batch = build_batch(BatchSpec(), [Record(Offset(0), TimeMs(0), None, value)])
    rejected = RejectedRecords()
    replay = Replay(arrange([MetadataFile("0.log", "0.log", batch)]), rejected=rejected)
    for _ in replay.steps():
        pass
    assert len(rejected.errors) == 1
    note = "the unfenced brokers and their racks are uncertain: 1 record that may decide them was left out"
    assert list(replay_notes(replay, rejected)) == [note] * is_uncertain


@pytest.mark.parametrize("rejected", [None, RejectedRecords()])
def test_a_file_that_ends_within_a_batch_has_a_note(rejected: RejectedRecords | None) -> None:
    whole = build_batch(BatchSpec(), [Record(Offset(0), TimeMs(0), None, made(RecordType.NO_OP_RECORD).to_bytes())])
    replay = Replay(arrange([MetadataFile("0.log", "0.log", whole + whole[:-1])]), rejected=rejected)
    assert len(list(replay.steps())) == 1
    assert rejected is None or rejected.errors == []
    assert list(replay_notes(replay, rejected)) == [
        f"0.log: the last {len(whole) - 1} bytes are not a whole batch and were left out: the file was copied while it "
        "was written, or is cut off"
    ]
