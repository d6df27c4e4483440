"""Checkpoint texts: what is written, what is read, and what is refused as Kafka refuses it."""

from __future__ import annotations

import pytest

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.errors import CorruptDataError
from broker.ids import LeaderEpoch, Offset, PartitionId, TopicPartition
from log.errors import CheckpointError
from log.storage import MemoryStorage
from log.storage.checkpoints import (
    EPOCH_CHECKPOINT_BYTES_MAX,
    OFFSET_CHECKPOINT_BYTES_MAX,
    EpochEntry,
    encode_offset_checkpoint,
    parse_epoch_checkpoint,
    parse_offset_checkpoint,
    read_epoch_checkpoint,
    read_offset_checkpoint,
    write_epoch_checkpoint,
    write_offset_checkpoint,
)
from tests.support.crash import crash_states
from tests.support.disk_image import DiskImage, storage_of
from tests.support.recorded import RecordedStorage

STORAGE = "org.apache.kafka.common.errors.KafkaStorageException"
ILLEGAL = "java.lang.IllegalArgumentException"
NUMBER = "java.lang.NumberFormatException"


def which(topic: str, partition: int) -> TopicPartition:
    return TopicPartition(topic, PartitionId(partition))


def test_entries_are_written_sorted() -> None:
    offsets = {which("b", 0): Offset(3), which("a", 10): Offset(2), which("a", 2): Offset(1)}
    assert encode_offset_checkpoint(offsets) == b"0\n3\na 2 1\na 10 2\nb 0 3\n"
    assert encode_offset_checkpoint({}) == b"0\n0\n"


@pytest.mark.parametrize(
    "text",
    [
        "0\n1\ntopic 0 5\n",
        "0\r\n1\rtopic 0 5",
        "0\n1\ntopic\t \x0b0\x0c5  \n",
        "+0\n01\ntopic +0 0000000000000000000000005\n",
        "0\n1\ntopic ٠ ٥\n",
        "0\n2\ntopic 0 4\ntopic 0 5\n",
    ],
)
def test_untidy_texts_that_java_takes_are_taken(text: str) -> None:
    assert parse_offset_checkpoint(text.encode()) == {which("topic", 0): 5}


@pytest.mark.parametrize(("text", "offsets"), [("", {}), ("0", {}), ("0\n", {}), ("0\n1\n 7 5", {("", 7): 5})])
def test_files_that_end_early_are_empty_and_a_blank_start_is_an_empty_name(
    text: str, offsets: dict[tuple[str, int], int]
) -> None:
    assert parse_offset_checkpoint(text.encode()) == {which(*name): offset for name, offset in offsets.items()}


@pytest.mark.parametrize(
    ("data", "message", "kafka_class"),
    [
        (b"1\n0\n", "version 1; 0 is known", STORAGE),
        (b"\n0\n", "malformed line ''", STORAGE),
        (b"0 \n0\n", "malformed line '0 '", STORAGE),
        (b"0\n2147483648\n", "malformed line '2147483648'", STORAGE),
        (b"0\n1_0\n", "malformed line '1_0'", STORAGE),
        (b"0\n-1\n", "-1 entries announced", ILLEGAL),
        (b"0\n2\na 0 5\n", "2 entries announced, 1 found", STORAGE),
        (b"0\n0\na 0 5\n", "0 entries announced, 1 found", STORAGE),
        (b"0\n1\n\n", "malformed line ''", STORAGE),
        (b"0\n1\n a 0 5\n", "malformed line ' a 0 5'", STORAGE),
        (b"0\n1\na 0 5 6\n", "malformed line 'a 0 5 6'", STORAGE),
        (b"0\n1\na b 5\n", "'b' is not a number of 32 bits", NUMBER),
        (b"0\n1\na 2147483648 5\n", "'2147483648' is not a number of 32 bits", NUMBER),
        (b"0\n1\na 0 9223372036854775808\n", "'9223372036854775808' is not a number of 64 bits", NUMBER),
        (b"0\n1\na 0 \xf0\x9d\x9f\x8e\n", "'\U0001d7ce' is not a number of 64 bits", NUMBER),
        (b"0\n1\na\xff 0 5\n", "byte 5 is not UTF-8", STORAGE),
    ],
)
def test_what_kafka_refuses_is_refused_with_its_class(data: bytes, message: str, kafka_class: str) -> None:
    with pytest.raises(CheckpointError) as refusal:
        parse_offset_checkpoint(data, source="d/c")
    assert (str(refusal.value), refusal.value.kafka_class) == (f"d/c: {message}", kafka_class)


def test_an_epoch_line_has_two_fields() -> None:
    assert parse_epoch_checkpoint(b"0\n1\n3 17 \n") == (EpochEntry(LeaderEpoch(3), Offset(17)),)
    for text in (b"0\n1\n3\n", b"0\n1\n3 17 1\n"):
        with pytest.raises(CheckpointError, match="malformed line"):
            parse_epoch_checkpoint(text)
    with pytest.raises(CheckpointError, match="'x' is not a number of 32 bits"):
        parse_epoch_checkpoint(b"0\n1\nx 17\n")


def test_files_far_too_large_are_refused_before_they_are_read() -> None:
    storage = MemoryStorage(ManualClock())
    for read, size_bytes_max in (
        (read_offset_checkpoint, OFFSET_CHECKPOINT_BYTES_MAX),
        (read_epoch_checkpoint, EPOCH_CHECKPOINT_BYTES_MAX),
    ):
        storage.open("c", create=True).truncate(size_bytes_max + 1)
        with pytest.raises(CorruptDataError, match=f"at most {size_bytes_max} are read"):
            read(storage, "c")
    assert (read_offset_checkpoint(storage, "none"), read_epoch_checkpoint(storage, "none")) == ({}, ())


@pytest.mark.parametrize("block_size_bytes", [4, 512])
def test_a_crash_while_a_checkpoint_is_written_leaves_the_old_one_or_the_new_one(block_size_bytes: int) -> None:
    old, new = {which("t", 0): Offset(5)}, {which("t", 0): Offset(6), which("t", 1): Offset(7)}
    storage = RecordedStorage(storage_of(ManualClock(), DiskImage({"c": encode_offset_checkpoint(old)})))
    write_offset_checkpoint(storage, "c", new)
    write_epoch_checkpoint(storage, "e", [EpochEntry(LeaderEpoch(1), Offset(2))])
    recording = storage.recording()
    for end in range(len(recording.operations) + 1):
        for image in crash_states(recording, SplitMix64(1), end=end, block_size_bytes=block_size_bytes):
            crashed = storage_of(ManualClock(), image)
            assert read_offset_checkpoint(crashed, "c") in ([new] if end >= 5 else [old, new])
            epochs = read_epoch_checkpoint(crashed, "e")
            assert epochs == (EpochEntry(LeaderEpoch(1), Offset(2)),) or (end < 10 and epochs == ())
