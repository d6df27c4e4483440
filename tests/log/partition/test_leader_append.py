"""What a leader makes of the batches that it takes, plain messages of the old formats among them, and what it tells."""

from __future__ import annotations

import attrs
import pytest

from broker.errors import UsageError
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.build import build_batch, emptied
from log.batches.build_spec import BatchSpec
from log.batches.in_buffer import batches_in
from log.codecs.compression import Codec
from log.codecs.crc import crc32c
from log.errors import (
    InvalidAppendError,
    OffsetsOutOfOrderError,
    RecordTooLargeError,
    UnsupportedForMessageFormatError,
)
from log.partition.appending import AppendInfo
from log.partition.partition_log import PartitionLog
from log.partition.producer_append import AppendOrigin
from log.record import NO_TIMESTAMP, ControlType, EndTransactionMarker, Record, TimestampOffset
from tests.log.batches.test_build_columns import columns_of
from tests.log.made import EPOCH, NOW, appended, batch, config, opened, refused

FORMATS = {0: "0.9.0", 1: "0.10.2", 2: "0.11.0"}
"""A release that writes each magic."""
TRANSACTIONAL_BIT, ATTRIBUTES_LAST_BYTE, CHECKED_FROM, RECORDS_FROM = 0x10, 22, 21, 61


def of_format(magic: int, **settings: object) -> PartitionLog:
    log = opened(settings=config(segment_bytes=10_000, message_format_version=FORMATS[magic], **settings))
    appended(log, batch(magic=magic, timestamp=NOW if magic else NO_TIMESTAMP))
    return log


def messages(*times: int, magic: int) -> bytes:
    """A plain message for each time."""
    return b"".join(batch(magic=magic, timestamp=time) for time in times)


def sent(log: PartitionLog, data: bytes, now_ms: int = NOW, origin: AppendOrigin = AppendOrigin.CLIENT) -> AppendInfo:
    return log.append_as_leader(data, leader_epoch=EPOCH, now_ms=TimeMs(now_ms), origin=origin)


def found(log: PartitionLog) -> list[tuple[int, int]]:
    """Offset and time of every record but the first."""
    records = [record for each in log.segments for found in each.batches() for record in found.records()]
    return [(record.offset, record.timestamp) for record in records[1:]]


@pytest.mark.parametrize("times", [(NOW,), (NOW + 5, NOW), (NOW, NOW + 7), (NOW, NOW + 7, NOW + 7, NOW + 3)])
def test_each_plain_message_keeps_its_time_and_the_first_of_the_largest_is_told(times: tuple[int, ...]) -> None:
    log = of_format(1)
    info = sent(log, messages(*times, magic=1))
    assert found(log) == [(1 + place, time) for place, time in enumerate(times)]
    assert info.max_timestamp == TimestampOffset(max(times), 1 + times.index(max(times)))
    assert (info.first_offset, info.last_offset, info.log_append_time_ms) == (1, len(times), -1)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_where_the_broker_stamps_it_tells_its_clock_and_the_first_plain_message_or_the_end_of_a_batch(
    magic: int, count: int
) -> None:
    """LogValidator.assignOffsetsNonCompressed: a log of magic 0 keeps no time, whatever its topic says."""
    log = of_format(magic, message_timestamp_type="LogAppendTime")
    data = batch(count) if magic == 2 else messages(*[NOW - 50] * count, magic=magic)
    info = sent(log, data, NOW + 9)
    offset = {0: -1, 1: 1, 2: count}[magic]
    assert info.max_timestamp == TimestampOffset(NOW + 9 if magic else -1, offset)
    assert info.log_append_time_ms == NOW + 9
    assert found(log) == [(1 + place, NOW + 9 if magic else -1) for place in range(count)]


@pytest.mark.parametrize(("codec", "offset"), [("gzip", 3), ("uncompressed", 2)])
def test_of_messages_written_anew_the_largest_time_belongs_to_its_message_or_to_the_end_of_their_batch(
    codec: str, offset: int
) -> None:
    """MemoryRecordsBuilder.info."""
    log = of_format(1, compression_type=codec)
    data = messages(NOW, NOW + 7, NOW + 7, magic=1)
    if codec == "uncompressed":
        data = build_batch(
            BatchSpec(magic=1, codec=Codec.GZIP),
            [Record(Offset(place), TimeMs(NOW + time), b"k", b"v") for place, time in enumerate((0, 7, 7))],
        )
    assert sent(log, data).max_timestamp == TimestampOffset(NOW + 7, offset)


def test_a_compressed_message_without_times_is_written_anew_with_the_offsets_of_its_messages() -> None:
    """Messages of magic 0 have their whole offsets within a compressed one, so that none can be given to it alone."""
    log = of_format(0)
    sent(log, batch(3, magic=0, codec=Codec.GZIP, timestamp=NO_TIMESTAMP))
    assert [offset for offset, _ in found(log)] == [1, 2, 3]


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_records_without_a_time_have_no_largest_one_and_belong_to_no_offset(magic: int) -> None:
    log = of_format(magic)
    record = Record(Offset(0), NO_TIMESTAMP, b"k", b"v")
    assert sent(log, build_batch(BatchSpec(magic=magic), [record])).max_timestamp == TimestampOffset(-1, -1)
    spec = BatchSpec(magic=magic, base_offset=Offset(2), partition_leader_epoch=EPOCH)
    copied = log.append_as_follower(build_batch(spec, [attrs.evolve(record, offset=Offset(2))]), now_ms=NOW)
    assert copied.max_timestamp == TimestampOffset(-1, -1)


def test_an_append_of_nothing_tells_no_time_and_no_offset() -> None:
    info = sent(opened(), batch()[:-1])
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
        sent(log, large, origin=origin)
    assert log.log_end_offset == 0


def test_a_log_of_old_messages_takes_no_transaction_even_without_a_producer() -> None:
    data = bytearray(batch())
    data[ATTRIBUTES_LAST_BYTE] |= TRANSACTIONAL_BIT
    data[17:21] = crc32c(bytes(data[CHECKED_FROM:])).to_bytes(4)
    assert refused(of_format(1), bytes(data), UnsupportedForMessageFormatError) == (
        "records of producer ids or transactions need magic 2; topic-0 has magic 1"
    )


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
    sent(log, gaps, origin=AppendOrigin.COORDINATOR)
    spec = BatchSpec(codec=codec, partition_leader_epoch=EPOCH)
    by_level = [build_batch(spec, records), build_batch(attrs.evolve(spec, compression_level=level), records)]
    assert by_level[0] != by_level[1], "the levels can be told apart"
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


def test_only_a_leader_that_gives_offsets_tells_an_append_time() -> None:
    """UnifiedLog.append sets LogAppendInfo.logAppendTime only where it validates and assigns offsets."""
    log = opened(settings=config(segment_bytes=10_000, message_timestamp_type="LogAppendTime"))
    assert sent(log, batch(), NOW + 9).log_append_time_ms == NOW + 9
    copied = batch(base_offset=1, partition_leader_epoch=EPOCH)
    assert log.append_as_follower(copied, now_ms=NOW).log_append_time_ms == -1
    of_raft = batch(base_offset=2, partition_leader_epoch=EPOCH)
    assert sent(log, of_raft, origin=AppendOrigin.RAFT_LEADER).log_append_time_ms == -1
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
        sent(log, data, origin=AppendOrigin.COORDINATOR)
    assert log.log_end_offset == 0


@pytest.mark.parametrize("magic", [1, 2])
def test_the_bytes_of_a_compressed_batch_are_kept_as_the_producer_compressed_them(magic: int) -> None:
    log = of_format(magic)
    spec = BatchSpec(magic=magic, codec=Codec.GZIP, compression_level=1)
    records = [Record(Offset(place), NOW, b"%d" % place, b"%d" % (place * place) * 5) for place in range(60)]
    data = build_batch(spec, records)
    assert data != build_batch(attrs.evolve(spec, compression_level=None), records), "the level can be told"
    sent(log, data)
    compressed_from = {1: 34, 2: RECORDS_FROM}[magic]
    assert bytes(log.active_segment.records.view()).endswith(data[compressed_from:])


def test_an_empty_batch_of_a_coordinator_has_no_time_that_could_be_out_of_range() -> None:
    log = opened(settings=config(message_timestamp_before_max_ms=1, message_timestamp_after_max_ms=1))
    appended(log, batch(2))
    (given,) = batches_in(batch(partition_leader_epoch=EPOCH))
    assert sent(log, emptied(given), origin=AppendOrigin.COORDINATOR).max_timestamp == TimestampOffset(-1, -1)
