"""What a leader refuses of a set, and which bytes it makes of one that it takes."""

from __future__ import annotations

import pytest

from broker.ids import Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.build import build_batch, build_marker
from log.batches.build_spec import BatchSpec
from log.codecs.compression import Codec
from log.codecs.crc import crc32c
from log.errors import InvalidAppendError, RecordValidationError, UnsupportedForMessageFormatError
from log.partition.producer_append import AppendOrigin
from log.record import NO_TIMESTAMP, ControlType, EndTransactionMarker, Record, TimestampType
from tests.log.made import EPOCH, NOW, appended, batch, config, opened, refused, values

LAST_OFFSET_DELTA, BASE_SEQUENCE, RECORD_COUNT = 23, 53, 57  # Where they stand in a header, 4 bytes each.


def forged(data: bytes, fields: dict[int, int]) -> bytes:
    """A batch with other numbers in its header, and a sound checksum."""
    changed = bytearray(data)
    for position, number in fields.items():
        changed[position : position + 4] = number.to_bytes(4, signed=True)
    changed[17:21] = crc32c(bytes(changed[21:])).to_bytes(4)
    return bytes(changed)


def test_a_set_of_two_batches_is_refused() -> None:
    assert refused(opened(), batch() * 2, InvalidAppendError) == "a record set of magic 2 has more than one batch"


def test_a_client_must_not_end_transactions() -> None:
    spec = BatchSpec(producer_id=ProducerId(1), producer_epoch=ProducerEpoch(0))
    marker = build_marker(spec, EndTransactionMarker(ControlType.COMMIT, 0), NOW)
    assert (
        refused(opened(), marker, InvalidAppendError) == "clients are not allowed to write control records in topic-0"
    )


def test_a_set_of_two_compressed_messages_is_refused() -> None:
    old = config(message_format_version="0.10.2")
    message = batch(2, magic=1, codec=Codec.GZIP)
    assert refused(opened(settings=old), message * 2, InvalidAppendError) == (
        "a record set of magic 1 has more than one batch"
    )
    assert appended(opened(settings=old), message) == [0]


def test_a_set_of_two_magics_is_refused() -> None:
    mixed = batch(magic=1) + batch(magic=0, timestamp=NO_TIMESTAMP)
    assert refused(opened(), mixed, InvalidAppendError) == "batch of magic 0 after one of magic 1 in topic-0"


def test_a_log_of_old_messages_takes_no_producer_ids() -> None:
    old = opened(settings=config(message_format_version="0.10.2"))
    sent = batch(producer_id=ProducerId(1), producer_epoch=ProducerEpoch(0), base_sequence=0)
    assert refused(old, sent, UnsupportedForMessageFormatError) == (
        "records of producer ids or transactions need magic 2; topic-0 has magic 1"
    )


@pytest.mark.parametrize(("last_offset_delta", "record_count"), [(2, 2), (0, 2), (-1, 0)])
def test_a_batch_that_counts_wrongly_is_refused(last_offset_delta: int, record_count: int) -> None:
    sent = forged(batch(2), {LAST_OFFSET_DELTA: last_offset_delta, RECORD_COUNT: record_count})
    assert refused(opened(), sent, InvalidAppendError) == (
        f"a batch of {record_count} records has offsets 0 to {last_offset_delta} in topic-0"
    )


def test_a_producer_id_needs_a_sequence() -> None:
    sequenced = batch(producer_id=ProducerId(1), producer_epoch=ProducerEpoch(0), base_sequence=0)
    sent = forged(sequenced, {BASE_SEQUENCE: -1})
    assert refused(opened(), sent, InvalidAppendError) == "a batch of producer id 1 has the sequence -1 in topic-0"


@pytest.mark.parametrize("count", [1, 40])
def test_a_compacted_log_takes_no_record_without_a_key(count: int) -> None:
    records = [Record(Offset(index), NOW, b"k" if index else None, b"") for index in range(count)]
    message = refused(
        opened(settings=config(cleanup_policy="compact", segment_bytes=10_000)),
        build_batch(BatchSpec(), records),
        RecordValidationError,
    )
    assert message == "a compacted log takes no record without a key: record 0 of a batch to topic-0"


@pytest.mark.parametrize(
    ("timestamp", "is_taken"), [(NOW - 10, True), (NOW - 11, False), (NOW + 5, True), (NOW + 6, False)]
)
def test_a_time_out_of_range_is_refused(timestamp: int, is_taken: bool) -> None:
    limits = config(message_timestamp_before_max_ms=10, message_timestamp_after_max_ms=5)
    if is_taken:
        assert appended(opened(settings=limits), batch(timestamp=timestamp)) == [0]
        return
    assert refused(opened(settings=limits), batch(timestamp=timestamp), RecordValidationError) == (
        f"record 0 of a batch to topic-0 has the timestamp {timestamp} of type CreateTime; "
        f"allowed are CreateTime from {NOW - 10} to {NOW + 5}"
    )


def test_a_producer_must_not_stamp_as_if_it_were_the_broker() -> None:
    log = opened(settings=config(message_timestamp_type="LogAppendTime"))
    sent = batch(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=NOW)
    assert "of type LogAppendTime" in refused(log, sent, RecordValidationError)


@pytest.mark.parametrize("count", [1, 40])
def test_an_empty_key_is_a_key_and_no_time_is_allowed(count: int) -> None:
    records = [Record(Offset(index), NO_TIMESTAMP, b"", b"") for index in range(count)]
    settings = config(cleanup_policy="compact", segment_bytes=10_000, message_timestamp_before_max_ms=10)
    assert appended(opened(settings=settings), build_batch(BatchSpec(), records)) == [0]


def test_no_time_is_no_fault_beside_one_that_is() -> None:
    records = [Record(Offset(0), NO_TIMESTAMP, b"", b""), Record(Offset(1), NOW, b"", b"")]
    log = opened(settings=config(message_timestamp_after_max_ms=10))
    with pytest.raises(RecordValidationError) as caught:
        log.append_as_leader(build_batch(BatchSpec(), records), leader_epoch=EPOCH, now_ms=TimeMs(NOW - 11))
    assert caught.value.record_indexes == (1,)


def test_compressed_messages_whose_offsets_have_gaps_are_written_anew() -> None:
    records = [Record(Offset(offset), NOW, b"k", b"%d" % offset) for offset in (0, 2, 5)]
    message = build_batch(BatchSpec(magic=1, codec=Codec.GZIP), records)
    log = opened(settings=config(message_format_version="0.10.2", segment_bytes=10_000))
    appended(log, message)
    assert values(log) == [(0, b"0"), (1, b"2"), (2, b"5")]


def test_a_leader_that_compresses_keeps_the_producer_of_a_batch() -> None:
    log = opened(settings=config(compression_type="gzip", segment_bytes=1_000))
    sent = batch(3, producer_id=ProducerId(7), producer_epoch=ProducerEpoch(2), base_sequence=5)
    assert appended(log, sent) == [0]
    (stored,) = (each for segment in log.segments for each in segment.batches())
    assert (stored.codec, stored.producer_id, stored.producer_epoch, stored.base_sequence) == (Codec.GZIP, 7, 2, 5)
    assert appended(log, sent) == [0], "a retry is known as such"
    assert log.log_end_offset == 3


@pytest.mark.parametrize("settings", [{}, {"message_format_version": "0.10.2"}])
def test_a_leader_that_compresses_keeps_every_plain_message(settings: dict[str, str]) -> None:
    """Old messages have a batch each; all of them become one compressed batch, not the first alone."""
    log = opened(settings=config(compression_type="gzip", segment_bytes=1_000, **settings))
    assert appended(log, batch(3, magic=1)) == [0]
    assert log.log_end_offset == 3
    (stored,) = (each for segment in log.segments for each in segment.batches())
    assert (stored.codec, [record.key for record in stored.records()]) == (Codec.GZIP, [b"k0", b"k1", b"k2"])


def test_a_marker_is_not_compressed_whatever_the_log_is() -> None:
    spec = BatchSpec(producer_id=ProducerId(1), producer_epoch=ProducerEpoch(0))
    marker = build_marker(spec, EndTransactionMarker(ControlType.COMMIT, 0), NOW)
    log = opened(settings=config(compression_type="zstd"))
    log.append_as_leader(marker, leader_epoch=EPOCH, now_ms=NOW, origin=AppendOrigin.COORDINATOR, transaction_version=0)
    (stored,) = log.active_segment.batches()
    assert (stored.codec, stored.is_control, stored.base_offset) == (Codec.NONE, True, 0)


def test_a_leader_that_compresses_keeps_times_that_are_a_long_apart() -> None:
    log = opened(settings=config(compression_type="gzip", message_timestamp_after_max_ms=2**63 - 1))
    times = (TimeMs(-1), TimeMs(2**63 - 1))
    records = [Record(Offset(row), time, b"k", b"v") for row, time in enumerate(times)]
    log.append_as_leader(build_batch(BatchSpec(), records), leader_epoch=EPOCH, now_ms=NOW)
    (stored,) = log.segments[-1].batches()
    assert stored.codec is Codec.GZIP
    assert [record.timestamp for record in stored.records()] == list(times)
