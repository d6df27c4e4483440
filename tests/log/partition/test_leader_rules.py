"""What a leader refuses of a set, with its whole message, and what it stores and returns of one that it takes."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from broker.errors import UsageError
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch, build_marker, emptied
from log.batches.in_buffer import batches_in
from log.codecs.compression import Codec
from log.codecs.crc import crc32c
from log.errors import (
    CorruptBatchError,
    InvalidAppendError,
    OffsetsOutOfOrderError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    RecordValidationError,
)
from log.partition.appending import AppendInfo
from log.partition.partition_log import PartitionLog
from log.partition.producer_append import AppendOrigin
from log.record import NO_TIMESTAMP, ControlType, EndTransactionMarker, Record, TimestampOffset, TimestampType
from tests.log.batches.test_build_columns import columns_of
from tests.log.made import EPOCH, NOW, appended, batch, config, opened, refused, sized, values

LAST_OFFSET_DELTA, BASE_SEQUENCE, RECORD_COUNT = 23, 53, 57  # Where they stand in a header, 4 bytes each.
COMPACTED = {"cleanup_policy": "compact", "segment_bytes": 10_000}
LIMITED = {"message_timestamp_before_max_ms": 10, "message_timestamp_after_max_ms": 5}
PRODUCER: dict[str, Any] = {"producer_id": ProducerId(1), "producer_epoch": ProducerEpoch(0)}
MARKER = build_marker(BatchSpec(**PRODUCER), EndTransactionMarker(ControlType.COMMIT, 0), NOW)
WRAPPER = batch(2, magic=1, codec=Codec.GZIP)
SEQUENCED = batch(base_sequence=0, **PRODUCER)


def forged(data: bytes, fields: dict[int, int]) -> bytes:
    """A batch with other numbers in its header, and a sound checksum."""
    changed = bytearray(data)
    for position, number in fields.items():
        changed[position : position + 4] = number.to_bytes(4, signed=True)
    changed[17:21] = crc32c(bytes(changed[21:])).to_bytes(4)
    return bytes(changed)


def miscounted(last_offset_delta: int, record_count: int) -> tuple[dict[str, Any], bytes, type[Exception], str]:
    data = forged(batch(2), {LAST_OFFSET_DELTA: last_offset_delta, RECORD_COUNT: record_count})
    return (
        {},
        data,
        InvalidAppendError,
        f"a batch of {record_count} records has offsets 0 to {last_offset_delta} in topic-0",
    )


def untimely(timestamp: int) -> tuple[dict[str, Any], bytes, type[Exception], str]:
    message = (
        f"record 0 of a batch to topic-0 has the timestamp {timestamp} of type CreateTime; "
        f"allowed are CreateTime from {NOW - 10} to {NOW + 5}"
    )
    return LIMITED, batch(timestamp=timestamp), RecordValidationError, message


def keyless(count: int) -> tuple[dict[str, Any], bytes, type[Exception], str]:
    records = [Record(Offset(index), NOW, b"k" if index else None, b"") for index in range(count)]
    message = "a compacted log takes no record without a key: record 0 of a batch to topic-0"
    return COMPACTED, build_batch(BatchSpec(), records), RecordValidationError, message


MANY = "a record set of magic {} has more than one batch"


@pytest.mark.parametrize(
    ("settings", "data", "error", "message"),
    [
        (
            {},
            batch()[:-1] + b"!",
            CorruptBatchError,
            "topic-0 at byte 0: batch of offset 0 is damaged: its stored checksum is ",
        ),
        (
            {},
            batch(base_offset=7),
            InvalidAppendError,
            "topic-0: a client's batch has base offset 7; it must be 0, as the leader gives it",
        ),
        (
            {"max_message_bytes": 100},
            sized(101),
            RecordTooLargeError,
            "topic-0: a batch of 101 bytes is larger than max.message.bytes, 100",
        ),
        ({}, batch() * 2, InvalidAppendError, MANY.format(2)),
        ({}, WRAPPER * 2, InvalidAppendError, MANY.format(1)),
        ({}, MARKER, InvalidAppendError, "clients are not allowed to write control records in topic-0"),
        (
            {},
            batch(magic=1) + batch(magic=0, timestamp=NO_TIMESTAMP),
            InvalidAppendError,
            "batch of magic 0 after one of magic 1 in topic-0",
        ),
        miscounted(2, 2),
        miscounted(0, 2),
        miscounted(-1, 0),
        (
            {},
            forged(SEQUENCED, {BASE_SEQUENCE: -1}),
            InvalidAppendError,
            "a batch of producer id 1 has the sequence -1 in topic-0",
        ),
        keyless(1),
        keyless(40),
        untimely(NOW - 11),
        untimely(NOW + 6),
    ],
)
def test_a_set_that_breaks_a_rule_is_refused_and_changes_nothing(
    settings: dict[str, Any], data: bytes, error: type[Exception], message: str
) -> None:
    assert refused(opened(settings=config(**settings)), data, error).startswith(message)


@pytest.mark.parametrize(
    ("settings", "data"),
    [
        ({}, WRAPPER),
        ({"max_message_bytes": 100}, sized(100)),
        ({"segment_bytes": 99}, sized(99)),
        (LIMITED, batch(timestamp=NOW - 10)),
        (LIMITED, batch(timestamp=NOW + 5)),
    ],
)
def test_a_set_at_its_limit_is_taken(settings: dict[str, Any], data: bytes) -> None:
    assert appended(opened(settings=config(**settings)), data) == [0]


def test_a_producer_must_not_stamp_as_if_it_were_the_broker() -> None:
    log = opened(settings=config(message_timestamp_type="LogAppendTime"))
    sent = batch(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=NOW)
    assert "of type LogAppendTime" in refused(log, sent, RecordValidationError)


@pytest.mark.parametrize("count", [1, 40])
def test_an_empty_key_is_a_key_and_no_time_is_allowed(count: int) -> None:
    records = [Record(Offset(index), NO_TIMESTAMP, b"", b"") for index in range(count)]
    settings = config(**COMPACTED, message_timestamp_before_max_ms=10)
    assert appended(opened(settings=settings), build_batch(BatchSpec(), records)) == [0]


def test_no_time_is_no_fault_beside_one_that_is() -> None:
    records = [Record(Offset(0), NO_TIMESTAMP, b"", b""), Record(Offset(1), NOW, b"", b"")]
    log = opened(settings=config(message_timestamp_after_max_ms=10))
    with pytest.raises(RecordValidationError) as caught:
        log.append_as_leader(build_batch(BatchSpec(), records), leader_epoch=EPOCH, now_ms=TimeMs(NOW - 11))
    assert (caught.value.record_indexes, caught.value.has_invalid_timestamp) == ((1,), True)


def test_compressed_messages_whose_offsets_have_gaps_are_written_anew() -> None:
    records = [Record(Offset(offset), NOW, b"k", b"%d" % offset) for offset in (0, 2, 5)]
    log = opened(settings=config(segment_bytes=10_000))
    appended(log, build_batch(BatchSpec(magic=1, codec=Codec.GZIP), records))
    assert values(log) == [(0, b"0"), (1, b"2"), (2, b"5")]


def test_a_leader_that_compresses_keeps_the_producer_of_a_batch() -> None:
    log = opened(settings=config(compression_type="gzip", segment_bytes=1_000))
    sent = batch(3, producer_id=ProducerId(7), producer_epoch=ProducerEpoch(2), base_sequence=5)
    assert appended(log, sent) == [0]
    (stored,) = (each for segment in log.segments for each in segment.batches())
    assert (stored.codec, stored.producer_id, stored.producer_epoch, stored.base_sequence) == (Codec.GZIP, 7, 2, 5)
    assert appended(log, sent) == [0], "a retry is known as such"
    assert log.log_end_offset == 3


def test_a_leader_that_compresses_keeps_every_plain_message() -> None:
    """Old messages have a batch each; all of them become one compressed batch, not the first alone."""
    log = opened(settings=config(compression_type="gzip", segment_bytes=1_000))
    assert appended(log, batch(3, magic=1)) == [0]
    assert log.log_end_offset == 3
    (stored,) = (each for segment in log.segments for each in segment.batches())
    assert (stored.codec, [record.key for record in stored.records()]) == (Codec.GZIP, [b"k0", b"k1", b"k2"])


def test_a_marker_is_not_compressed_whatever_the_log_is() -> None:
    log = opened(settings=config(compression_type="zstd"))
    log.append_as_leader(MARKER, leader_epoch=EPOCH, now_ms=NOW, origin=AppendOrigin.COORDINATOR, transaction_version=0)
    (stored,) = log.active_segment.batches()
    assert (stored.codec, stored.is_control, stored.base_offset) == (Codec.NONE, True, 0)


def test_a_set_above_the_segment_size_is_refused() -> None:
    with pytest.raises(
        RecordBatchTooLargeError, match=r"^topic-0: a record set of 100 bytes is larger than segment\.bytes, 99$"
    ):
        opened(settings=config(segment_bytes=99)).append_as_leader(sized(100), leader_epoch=EPOCH, now_ms=NOW)


TRANSACTIONAL_BIT, ATTRIBUTES_LAST_BYTE, CHECKED_FROM, RECORDS_FROM = 0x10, 22, 21, 61


def begun(**settings: object) -> PartitionLog:
    """A log with one record."""
    log = opened(settings=config(segment_bytes=10_000, **settings))
    appended(log, batch())
    return log


def messages(*times: int, magic: int) -> bytes:
    """A plain message for each time."""
    return b"".join(batch(magic=magic, timestamp=time) for time in times)


def append_to(
    log: PartitionLog, data: bytes, now_ms: int = NOW, origin: AppendOrigin = AppendOrigin.CLIENT
) -> AppendInfo:
    return log.append_as_leader(data, leader_epoch=EPOCH, now_ms=TimeMs(now_ms), origin=origin)


def found(log: PartitionLog) -> list[tuple[int, int]]:
    """Offset and time of every record but the first."""
    records = [record for each in log.segments for found in each.batches() for record in found.records()]
    return [(record.offset, record.timestamp) for record in records[1:]]


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("stamps", [False, True])
def test_messages_of_any_magic_become_one_batch_whose_end_has_the_largest_time(
    magic: int, count: int, stamps: bool
) -> None:
    """LogValidator.assignOffsetsNonCompressed and convertAndAssignOffsetsNonCompressed, MemoryRecordsBuilder.info."""
    log = begun(message_timestamp_type="LogAppendTime" if stamps else "CreateTime")
    times = [NOW + 7 * (place == 1) for place in range(count)]
    records = [Record(Offset(place), TimeMs(time), b"k", b"v") for place, time in enumerate(times)]
    data = build_batch(BatchSpec(), records) if magic == 2 else messages(*times, magic=magic)
    info = append_to(log, data, NOW + 9)
    stored = [NOW + 9] * count if stamps else times if magic else [NO_TIMESTAMP] * count
    assert found(log) == [(1 + place, time) for place, time in enumerate(stored)]
    largest = max(stored)
    assert info.max_timestamp == TimestampOffset(TimeMs(largest), -1 if largest == NO_TIMESTAMP else count)
    assert (info.first_offset, info.last_offset) == (1, count)
    assert info.log_append_time_ms == (NOW + 9 if stamps else -1)
    assert {each.magic for each in log.active_segment.batches()} == {2}


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_records_without_a_time_have_no_largest_one_and_belong_to_no_offset(magic: int) -> None:
    log = begun()
    record = Record(Offset(0), NO_TIMESTAMP, b"k", b"v")
    assert append_to(log, build_batch(BatchSpec(magic=magic), [record])).max_timestamp == TimestampOffset(-1, -1)
    spec = BatchSpec(magic=magic, base_offset=Offset(2), partition_leader_epoch=EPOCH)
    copied = log.append_as_follower(build_batch(spec, [attrs.evolve(record, offset=Offset(2))]), now_ms=NOW)
    assert copied.max_timestamp == TimestampOffset(-1, -1)


def test_an_append_of_nothing_reports_no_time_and_no_offset() -> None:
    for info in (append_to(opened(), batch()[:-1]), opened().append_as_follower(batch()[:-1], now_ms=NOW)):
        assert (info.max_timestamp, info.first_offset, info.last_offset) == (TimestampOffset(-1, -1), -1, -1)


def test_a_batch_that_grows_above_the_limit_as_the_log_stores_it_is_refused() -> None:
    small = batch(5, value=b"v" * 100, codec=Codec.GZIP)
    assert len(small) < 300
    log = opened(settings=config(segment_bytes=10_000, max_message_bytes=300, compression_type="uncompressed"))
    size_bytes = len(batch(5, value=b"v" * 100))
    assert refused(log, small, RecordTooLargeError) == (
        f"topic-0: a batch of {size_bytes} bytes is larger than max.message.bytes, 300"
    )


@pytest.mark.parametrize("origin", [AppendOrigin.CLIENT, AppendOrigin.COORDINATOR, AppendOrigin.RAFT_LEADER])
def test_a_batch_above_the_limit_is_refused_though_the_log_would_compress_it(origin: AppendOrigin) -> None:
    log = opened(settings=config(segment_bytes=10_000, max_message_bytes=300, compression_type="gzip"))
    large = batch(5, value=b"v" * 100, partition_leader_epoch=EPOCH)
    with pytest.raises(RecordTooLargeError):
        append_to(log, large, origin=origin)
    assert log.log_end_offset == 0


@pytest.mark.parametrize(("codec", "level"), [(Codec.GZIP, 1), (Codec.ZSTD, 19)])
@pytest.mark.parametrize("is_chosen", [True, False])
def test_a_log_compresses_at_its_level_only_with_the_codec_it_has_chosen(
    codec: Codec, level: int, is_chosen: bool
) -> None:
    """BrokerCompressionType.targetCompression: for "producer" the producer's codec, at that codec's default level."""
    name = codec.name.lower()
    levels = {f"compression_{name}_level": level}
    log = opened(settings=config(segment_bytes=10_000, compression_type=name if is_chosen else "producer", **levels))
    records = [Record(Offset(place), NOW, b"%d" % place, b"%d" % (place * place) * 5) for place in range(60)]
    # The leader writes a compressed batch anew whose offsets have gaps.
    gaps = build_batch(BatchSpec(codec=codec), [attrs.evolve(each, offset=Offset(2 * each.offset)) for each in records])
    append_to(log, gaps, origin=AppendOrigin.COORDINATOR)
    spec = BatchSpec(codec=codec, partition_leader_epoch=EPOCH)
    by_level = [build_batch(spec, records), build_batch(attrs.evolve(spec, compression_level=level), records)]
    assert by_level[0] != by_level[1], "the levels differ"
    assert bytes(log.active_segment.records.view()) == by_level[is_chosen]


def test_a_raft_leader_s_batches_keep_their_offsets_and_need_its_epoch() -> None:
    """UnifiedLog.append with AppendOrigin.RAFT_LEADER: the batches have offsets and epoch, and both must be right."""
    log = opened(settings=config(segment_bytes=10_000))
    pair = batch(2, base_offset=5, partition_leader_epoch=EPOCH) + batch(
        base_offset=7, timestamp=NOW + 1, partition_leader_epoch=EPOCH
    )
    info = log.append_as_leader(pair, leader_epoch=EPOCH, now_ms=NOW, origin=AppendOrigin.RAFT_LEADER)
    assert (info.first_offset, info.last_offset, log.log_end_offset) == (5, 7, 8)
    assert info.max_timestamp == TimestampOffset(NOW + 1, 6)
    assert bytes(log.active_segment.records.view()) == pair
    assert (info.log_append_time_ms, info.is_duplicate) == (-1, False)
    later_ms = TimeMs(NOW + log.config.segment_ms + 5)
    last = batch(base_offset=8, timestamp=later_ms, partition_leader_epoch=EPOCH)
    log.append_as_leader(last, leader_epoch=EPOCH, now_ms=later_ms, origin=AppendOrigin.RAFT_LEADER)
    assert [each.base_offset for each in log.segments] == [0, 8]


@pytest.mark.parametrize(
    ("offsets", "epoch", "error"),
    [
        ((5, 6), EPOCH - 1, InvalidAppendError),
        ((6, 5), EPOCH, OffsetsOutOfOrderError),
        ((5, 5), EPOCH, OffsetsOutOfOrderError),
    ],
)
def test_a_raft_leader_s_batches_of_another_epoch_or_out_of_order_are_refused(
    offsets: tuple[int, int], epoch: int, error: type[Exception]
) -> None:
    log = opened()
    data = b"".join(batch(base_offset=offset, partition_leader_epoch=LeaderEpoch(epoch)) for offset in offsets)
    with pytest.raises(error):
        log.append_as_leader(data, leader_epoch=EPOCH, now_ms=NOW, origin=AppendOrigin.RAFT_LEADER)
    assert log.log_end_offset == 0


def test_a_follower_takes_no_batch_that_ends_below_the_first_offset() -> None:
    """UnifiedLog.analyzeAndValidateRecords counts the offsets from -1 on: a batch that ends there does not grow."""
    data = bytearray(batch(partition_leader_epoch=EPOCH))
    data[:8] = (-1).to_bytes(8, signed=True)
    log = opened()
    with pytest.raises(OffsetsOutOfOrderError):
        log.append_as_follower(bytes(data), now_ms=NOW)


def test_only_a_leader_that_gives_offsets_reports_an_append_time() -> None:
    """UnifiedLog.append sets LogAppendInfo.logAppendTime only where it validates and assigns offsets."""
    log = opened(settings=config(segment_bytes=10_000, message_timestamp_type="LogAppendTime"))
    assert append_to(log, batch(), NOW + 9).log_append_time_ms == NOW + 9
    copied = batch(base_offset=1, partition_leader_epoch=EPOCH)
    assert log.append_as_follower(copied, now_ms=NOW).log_append_time_ms == -1
    of_raft = batch(base_offset=2, partition_leader_epoch=EPOCH)
    assert append_to(log, of_raft, origin=AppendOrigin.RAFT_LEADER).log_append_time_ms == -1
    columns = columns_of([Record(Offset(3), NOW, b"k", b"v")])
    spec = BatchSpec(base_offset=Offset(3), partition_leader_epoch=EPOCH)
    assert log.append_columns(spec, columns, 1, now_ms=NOW).log_append_time_ms == -1


def test_a_control_batch_that_came_compressed_by_another_codec_than_the_log_s_cannot_be_appended() -> None:
    """LogValidator leaves a control batch as it is only if it is not compressed; the builder then asks for a sequence.

    Coordinators never compress one.
    """
    spec = BatchSpec(codec=Codec.GZIP, is_control=True, producer_id=ProducerId(1), producer_epoch=ProducerEpoch(0))
    marker = EndTransactionMarker(ControlType.COMMIT, 0)
    data = build_batch(spec, [Record(Offset(0), NOW, marker.key(), marker.value())])
    log = opened(settings=config(segment_bytes=10_000, compression_type="zstd"))
    with pytest.raises(UsageError, match="Invalid negative sequence number used"):
        append_to(log, data, origin=AppendOrigin.COORDINATOR)
    assert log.log_end_offset == 0


def test_the_bytes_of_a_compressed_batch_are_kept_as_the_producer_compressed_them() -> None:
    log = begun()
    spec = BatchSpec(codec=Codec.GZIP, compression_level=1)
    records = [Record(Offset(place), NOW, b"%d" % place, b"%d" % (place * place) * 5) for place in range(60)]
    data = build_batch(spec, records)
    assert data != build_batch(attrs.evolve(spec, compression_level=None), records), "the level shows in the bytes"
    append_to(log, data)
    assert bytes(log.active_segment.records.view()).endswith(data[RECORDS_FROM:])


def test_an_empty_batch_of_a_coordinator_has_no_time_that_could_be_out_of_range() -> None:
    log = opened(settings=config(message_timestamp_before_max_ms=1, message_timestamp_after_max_ms=1))
    appended(log, batch(2))
    (given,) = batches_in(batch(partition_leader_epoch=EPOCH))
    assert append_to(log, emptied(given), origin=AppendOrigin.COORDINATOR).max_timestamp == TimestampOffset(-1, -1)
