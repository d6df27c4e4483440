"""Batches of magic 2: what is written is read, what is damaged is refused, in words and by both readers."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given

from broker.errors import UsageError
from broker.ids import Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.batch import RecordBatch
from log.batches.batch_v2 import BatchV2
from log.batches.build import BatchSpec, build_batch, rebuild, sealed, spec_of
from log.batches.in_buffer import BatchReader, batch_at, batches_in
from log.batches.record_columns import RecordColumns
from log.codecs.compression import Codec
from log.errors import CorruptBatchError, DecompressionError, InvalidRecordError, UnknownCodecError
from log.record import (
    Header,
    Record,
    TimestampType,
    increment_sequence,
    marker_of,
)
from log.strategies import Written, written_batches

RECORDS = (
    Record(Offset(5), TimeMs(1000), b"k", b"v", (Header("h", None),)),
    Record(Offset(7), TimeMs(900), None, b""),
    Record(Offset(8), TimeMs(1100), b"", None),
)


def only(data: bytes) -> BatchV2:
    (batch,) = batches_in(data, source="x.log")
    assert isinstance(batch, BatchV2)
    return batch


def by_slices(batch: RecordBatch) -> tuple[Record, ...]:
    """The records as the kernel gives them, however few."""
    return tuple(record for found in batch.record_slices() for record in found.records)


def rows(columns: RecordColumns) -> tuple[Record, ...]:
    return tuple(columns.record(row) for row in range(len(columns)))


def v2(payload: bytes, count: int, **fields: int) -> BatchV2:
    """A batch whose checksum is right, around whatever stands in its records section."""
    header = only(build_batch(BatchSpec(), (Record(Offset(0), TimeMs(0), None, None),))).header
    return only(sealed(header._replace(record_count=count, **fields), payload))


def both_refuse(batch: BatchV2) -> str:
    """What both readers say of a batch; the fast one asks the careful one for words."""
    batch.ensure_valid()
    with pytest.raises(InvalidRecordError) as careful:
        batch.records_one_by_one()
    with pytest.raises(InvalidRecordError) as fast:
        batch.columns()
    assert str(careful.value) == str(fast.value)
    return str(careful.value)


@given(written_batches(magic=2))
def test_what_is_written_is_read_by_both_readers(written: Written) -> None:
    batch = only(written.data)
    batch.ensure_valid()
    assert batch.records() == batch.records_one_by_one() == written.records
    assert by_slices(batch) == rows(batch.columns()) == written.records


@given(written_batches(magic=2))
def test_building_a_batch_from_what_was_read_gives_the_same_bytes(written: Written) -> None:
    batch = only(written.data)
    again = build_batch(spec_of(batch), batch.records())
    if written.spec.timestamp_type is TimestampType.CREATE_TIME:
        assert again == written.data
    else:  # The producer's times are gone for readers.
        assert only(again).records() == written.records


def test_sequences_wrap_to_zero() -> None:
    assert increment_sequence(2**31 - 1, 1) == 0
    assert increment_sequence(2**31 - 1, 0) == 2**31 - 1
    assert increment_sequence(3, 4) == 7


@pytest.mark.parametrize(
    ("sequence", "increment", "found"),
    [(10, -5, -2147483643), (0, -1, 2147483647), (2**31 - 1, -1, -2), (5, -(2**31), 5), (100, -100, -(2**31))],
)
def test_a_negative_delta_wraps_a_sequence_as_in_kafka(sequence: int, increment: int, found: int) -> None:
    """Printed by DefaultRecordBatch.incrementSequence of 4.4.0."""
    assert increment_sequence(sequence, increment) == found
    record = b"\x0c\0\0" + bytes(((-increment << 1) - 1,)) + b"\x01\x01\0" if -64 <= increment < 0 else b""
    if record:
        batch = v2(record, 1, base_sequence=sequence)
        assert batch.records()[0].sequence == found
        assert batch.columns().to_arrow(("sequence",)).to_pydict() == {"sequence": [found]}


def test_offsets_wrap_as_a_java_long_does() -> None:
    batch = v2(b"\x0c\0\0\x02\x01\x01\0", 1, base_offset=2**63 - 1, last_offset_delta=1)
    assert (batch.last_offset, batch.records()[0].offset) == (-(2**63), -(2**63))
    assert rows(batch.columns()) == batch.records()
    assert v2(b"", 0, base_offset=2**63 - 1, last_offset_delta=0).next_offset == -(2**63)


@pytest.mark.parametrize(
    ("payload", "count", "what"),
    [
        (b"", 1, "record 0 of 1: a number runs past the end of the records"),
        (b"\x80\x80\x80\x80\x80\x01", 1, "record 0 of 1: a number takes more than 5 bytes"),
        (b"\x0c\0\0\0\x01\x01\0", 2, "record 1 of 2: a number runs past the end of the records"),
        (b"\x0c\0\0\0\x01\x01\0", -1, "Found invalid record count -1 in magic v2 batch"),
        (
            b"\x0c\0\0\0\x01\x01\0!",
            1,
            "Incorrect declared batch size, records still remaining in file",
        ),
        (
            b"\x0e\0\0\0\x01\x01\0",
            1,
            "record 0 of 1: Invalid record size: expected 7 bytes in record payload, but 6 remain",
        ),
        (
            b"\x01\0\0\0\x01\x01\0",
            1,
            "record 0 of 1: Invalid record size: expected -1 bytes in record payload, but 6 remain",
        ),
        (
            b"\x0e\0\0\0\x01\x01\0\0",
            1,
            "record 0 of 1: Invalid record size: expected to read 7 bytes in record payload, but instead read 6",
        ),
        (
            b"\x0c\0\0\0\x06\x01\0",
            1,
            "record 0 of 1: Found invalid record structure: a field of 3 bytes runs past the records",
        ),
        (b"\x0c\0\0\0\x01\x01\x02", 1, "record 0 of 1: Found invalid number of record headers 1"),
        (b"\x0c\0\0\0\x01\x01\x01", 1, "record 0 of 1: Found invalid number of record headers -1"),
        (b"", -1, "Found invalid record count -1 in magic v2 batch"),
        (b"\x10\0\0\0\x01\x01\x02\x01\x01", 1, "record 0 of 1: Invalid negative header key size"),
    ],
)
def test_records_that_do_not_add_up_are_refused_by_both_readers(payload: bytes, count: int, what: str) -> None:
    assert both_refuse(v2(payload, count)) == f"x.log at byte 0: {what}"


def test_a_batch_of_no_records_may_be_followed_by_anything_as_in_kafka() -> None:
    batch = v2(b"anything", 0)
    assert batch.records() == ()
    assert len(batch.columns()) == 0


def test_a_size_below_minus_one_is_null_as_in_kafka() -> None:
    batch = v2(b"\x0c\0\0\0\x05\x03\0", 1)
    assert batch.records() == (Record(Offset(0), TimeMs(0), None, None),)
    assert rows(batch.columns()) == batch.records()


def test_a_header_name_that_is_not_utf_8_is_the_text_that_java_makes_of_it() -> None:
    batch = v2(b"\x16\0\0\0\x01\x01\x02\x06\xed\xa0\x80\x01", 1)
    assert batch.records()[0].headers == (Header("\ufffd", None),)
    assert rows(batch.columns()) == by_slices(batch) == batch.records()


def test_a_batch_that_cannot_hold_its_header_is_refused() -> None:
    data = bytearray(build_batch(BatchSpec(Offset(5)), RECORDS)[:60])
    data[8:12] = (48).to_bytes(4, "big")
    batch = only(bytes(data))
    assert not batch.is_valid()
    with pytest.raises(CorruptBatchError) as refusal:
        batch.ensure_valid()
    assert str(refusal.value) == (
        "x.log at byte 0: Record batch is corrupt (the size 60 is smaller than the minimum allowed overhead 61)"
    )


def test_an_unknown_codec_and_broken_compression_are_distinguished() -> None:
    with pytest.raises(UnknownCodecError, match=r"Unknown compression type id: 5$"):
        v2(b"", 1, attributes=5).records()
    with pytest.raises(DecompressionError, match=r"^x\.log at byte 0: lz4: not a frame$"):
        v2(b"no frame", 1, attributes=3).records()
    with pytest.raises(DecompressionError, match=r"^x\.log at byte 0: lz4: not a frame$"):
        v2(b"no frame", 1, attributes=3).columns()


def test_the_two_readers_part_at_seventeen_bytes_and_at_unknown_magics() -> None:
    message = bytes(8) + (5).to_bytes(4, "big") + bytes(5)
    with pytest.raises(CorruptBatchError, match=r"Record size 5 is less than the minimum record overhead"):
        batch_at(message, 0, reader=BatchReader.MEMORY)
    assert batch_at(message, 0, reader=BatchReader.FILE) is None
    data = bytearray(build_batch(BatchSpec(Offset(5)), RECORDS))
    data[16] = 18
    assert [batch.magic for batch in batches_in(data)] == [18]
    data[16] = 0xFE
    assert [batch.magic for batch in batches_in(data)] == [-2]
    with pytest.raises(CorruptBatchError, match=r"^x at byte 0: Invalid magic found in record: -2$"):
        batch_at(data, 0, reader=BatchReader.MEMORY, source="x")


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        (
            None,
            b"",
            "Invalid value size found for end control record key. Must have at least 4 bytes, but found only 0",
        ),
        (
            b"\0\0\0",
            b"",
            "Invalid value size found for end control record key. Must have at least 4 bytes, but found only 3",
        ),
        (b"\xff\xff\0\0", b"", "Invalid version found for control record: -1. May indicate data corruption"),
        (
            b"\0\0\0\1",
            bytes(5),
            "Invalid value size found for end transaction marker. Must have at least 6 bytes, but found only 5",
        ),
        (
            b"\0\0\0\1",
            None,
            "Invalid value size found for end transaction marker. Must have at least 6 bytes, but found only 0",
        ),
        (
            b"\0\0\0\1",
            b"\xff\xff\0\0\0\0",
            "Invalid version found for end transaction marker: -1. May indicate data corruption",
        ),
    ],
)
def test_a_damaged_marker_is_refused_in_kafkas_words(key: bytes | None, value: bytes | None, what: str) -> None:
    with pytest.raises(InvalidRecordError) as refusal:
        marker_of(Record(Offset(0), TimeMs(0), key, value))
    assert str(refusal.value) == what


@pytest.mark.parametrize(
    ("spec", "records", "what"),
    [
        (BatchSpec(), (), "a batch needs a record; an empty one is what the cleaner leaves of another (`emptied`)"),
        (BatchSpec(magic=3), RECORDS, "magic is 3; 0, 1 and 2 are known"),
        (
            BatchSpec(Offset(6)),
            RECORDS,
            "Illegal offset 5 following previous offset 5 (Offsets must increase monotonically).",
        ),
        (BatchSpec(), (attrs.evolve(RECORDS[0], timestamp=TimeMs(-2)),), "Invalid negative timestamp -2"),
        (BatchSpec(is_transactional=True), RECORDS, "Cannot write transactional messages without a valid producer ID"),
        (BatchSpec(producer_id=ProducerId(1)), RECORDS, "Invalid negative producer epoch"),
        (
            BatchSpec(producer_id=ProducerId(1), producer_epoch=ProducerEpoch(0)),
            RECORDS,
            "Invalid negative sequence number used",
        ),
        (BatchSpec(magic=1), RECORDS, "Magic v1 does not support record headers"),
        (BatchSpec(magic=1, codec=Codec.ZSTD), RECORDS, "ZStandard compression is not supported for magic 1"),
        (BatchSpec(magic=1, is_control=True), RECORDS, "Control records are not supported for magic 1"),
        (
            BatchSpec(last_offset=Offset(7)),
            RECORDS,
            "Maximum offset delta exceeded, base offset: 0, last record: 8, last offset: 7",
        ),
        (
            BatchSpec(),
            (attrs.evolve(RECORDS[0], offset=Offset(2**31)),),
            "Maximum offset delta exceeded, base offset: 0, last record: 2147483648, last offset: 2147483648",
        ),
    ],
)
def test_what_kafka_refuses_to_write_is_refused(spec: BatchSpec, records: tuple[Record, ...], what: str) -> None:
    with pytest.raises(UsageError) as refusal:
        build_batch(spec, records)
    assert str(refusal.value) == what


LARGEST_TIME = TimeMs(2**63 - 1)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("times", [(-1, LARGEST_TIME), (LARGEST_TIME, -1), (0, LARGEST_TIME), (LARGEST_TIME, 0)])
def test_a_time_delta_beyond_java_s_long_wraps_and_is_read_back(codec: Codec, times: tuple[TimeMs, TimeMs]) -> None:
    records = [Record(Offset(row), time, b"k", b"v") for row, time in enumerate(times)]
    batch = only(build_batch(BatchSpec(codec=codec), records))
    assert [record.timestamp for record in batch.records()] == list(times)
    assert batch.columns().timestamp.tolist() == list(times)
    assert batch.max_timestamp == LARGEST_TIME
    rebuilt = only(rebuild(batch, np.array([True, True]), delete_horizon_ms=TimeMs(3)))
    assert [record.timestamp for record in rebuilt.records()] == list(times)


def test_the_bytes_of_a_time_delta_that_wraps_are_kafka_s() -> None:
    """2^63 - 1 less -1 is 2^63, in a long -2^63: a varlong of ten bytes, nine of them ff, as Kafka 4.3.1 writes it."""
    times = (TimeMs(-1), LARGEST_TIME)
    built = build_batch(BatchSpec(), [Record(Offset(row), time, b"k", b"v") for row, time in enumerate(times)])
    assert built[70:].hex() == "2200" + "ff" * 9 + "01" + "02" + "026b" + "0276" + "00"


@pytest.mark.parametrize(
    ("field", "number", "allowed"),
    [
        ("base_offset", 2**63, "-9223372036854775808 to 9223372036854775807"),
        ("delete_horizon_ms", 2**63, "-9223372036854775808 to 9223372036854775807"),
        ("base_sequence", 2**31, "-2147483648 to 2147483647"),
        ("partition_leader_epoch", -(2**31) - 1, "-2147483648 to 2147483647"),
        ("producer_epoch", 2**15, "-32768 to 32767"),
    ],
)
def test_a_number_that_its_field_cannot_hold_is_refused(field: str, number: int, allowed: str) -> None:
    spec = attrs.evolve(BatchSpec(producer_id=ProducerId(1), producer_epoch=ProducerEpoch(0), base_sequence=0))
    with pytest.raises(UsageError) as caught:
        build_batch(attrs.evolve(spec, **{field: number}), RECORDS)
    assert str(caught.value) == f"{field} is {number}; allowed are {allowed}"


def test_half_a_character_in_a_header_name_is_written_as_java_writes_it() -> None:
    record = Record(Offset(0), TimeMs(0), None, None, (Header("a\ud800b", None),))
    (read,) = only(build_batch(BatchSpec(), [record])).records()
    assert read.headers[0].name == "a?b"
