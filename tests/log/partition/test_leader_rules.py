"""What a leader refuses of a set, with its whole message, and which bytes it makes of one that it takes."""

from __future__ import annotations

from typing import Any

import pytest

from broker.ids import Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.build import build_batch, build_marker
from log.batches.build_spec import BatchSpec
from log.codecs.compression import Codec
from log.codecs.crc import crc32c
from log.errors import (
    CorruptBatchError,
    InvalidAppendError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    RecordValidationError,
    UnsupportedForMessageFormatError,
)
from log.partition.producer_append import AppendOrigin
from log.record import NO_TIMESTAMP, ControlType, EndTransactionMarker, Record, TimestampType
from tests.log.made import EPOCH, NOW, appended, batch, config, opened, refused, sized, values

LAST_OFFSET_DELTA, BASE_SEQUENCE, RECORD_COUNT = 23, 53, 57  # Where they stand in a header, 4 bytes each.
OLD = {"message_format_version": "0.10.2"}
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


MANY, OLD_ONLY = (
    "a record set of magic {} has more than one batch",
    "records of producer ids or transactions need magic 2",
)


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
        (OLD, WRAPPER * 2, InvalidAppendError, MANY.format(1)),
        ({}, MARKER, InvalidAppendError, "clients are not allowed to write control records in topic-0"),
        (
            {},
            batch(magic=1) + batch(magic=0, timestamp=NO_TIMESTAMP),
            InvalidAppendError,
            "batch of magic 0 after one of magic 1 in topic-0",
        ),
        (OLD, SEQUENCED, UnsupportedForMessageFormatError, f"{OLD_ONLY}; topic-0 has magic 1"),
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
        (OLD, WRAPPER),
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
    log = opened(settings=config(segment_bytes=10_000, **OLD))
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


@pytest.mark.parametrize("settings", [{}, OLD])
def test_a_leader_that_compresses_keeps_every_plain_message(settings: dict[str, str]) -> None:
    """Old messages have a batch each; all of them become one compressed batch, not the first alone."""
    log = opened(settings=config(compression_type="gzip", segment_bytes=1_000, **settings))
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
