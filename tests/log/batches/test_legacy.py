"""Messages of magic 0 and 1: what is written is read, by both readers, and damage is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.ids import Offset
from broker.units import TimeMs
from log.batches.in_buffer import batches_in
from log.batches.legacy import LegacyBatch
from log.batches.record_columns import RecordColumns
from log.codecs.compression import Codec, compress
from log.codecs.crc import crc32
from log.errors import CorruptBatchError, InvalidRecordError
from log.record import Record
from log.strategies import Written, written_batches

LEGACY = st.sampled_from((0, 1)).flatmap(lambda magic: written_batches(magic=magic))


def rows(columns: RecordColumns) -> tuple[Record, ...]:
    return tuple(columns.record(row) for row in range(len(columns)))


def message(offset: int, body: bytes) -> bytes:
    """An entry whose checksum is right, around `body`: magic, attributes, and what follows."""
    return offset.to_bytes(8, "big") + (len(body) + 4).to_bytes(4, "big") + crc32(body).to_bytes(4, "big") + body


def v1(offset: int, value: bytes | None, attributes: int = 0, timestamp: int = 9) -> bytes:
    size = -1 if value is None else len(value)
    fixed = bytes((1, attributes)) + timestamp.to_bytes(8, "big") + b"\xff\xff\xff\xff"
    return message(offset, fixed + size.to_bytes(4, "big", signed=True) + (value or b""))


def only(data: bytes) -> LegacyBatch:
    (batch,) = batches_in(data, source="x.log")
    assert isinstance(batch, LegacyBatch)
    return batch


def both_refuse(data: bytes, kind: tuple[type[Exception], ...]) -> str:
    batch = only(data)
    batch.ensure_valid()
    with pytest.raises(kind) as careful:
        batch.records()
    with pytest.raises(kind) as fast:
        batch.columns()
    assert str(careful.value) == str(fast.value)
    return str(careful.value)


@given(LEGACY)
def test_what_is_written_is_read_by_both_readers(written: Written) -> None:
    batches = list(batches_in(written.data))
    assert all(batch.is_valid() for batch in batches)
    assert tuple(record for batch in batches for record in batch.records()) == written.records
    assert tuple(record for batch in batches for record in rows(batch.columns())) == written.records
    assert len(batches) == (1 if written.spec.codec else len(written.records))
    assert batches[-1].next_offset == written.records[-1].offset + 1


def test_half_a_message_at_the_end_of_a_set_ends_it() -> None:
    inner = v1(0, b"a") + v1(1, b"b")[:-1]
    batch = only(v1(7, compress(Codec.GZIP, inner), 1))
    assert batch.records() == rows(batch.columns()) == (Record(Offset(7), TimeMs(9), None, b"a"),)


def test_inner_messages_of_magic_0_have_no_time_whatever_the_wrapper_says() -> None:
    inner = message(0, b"\0\0\xff\xff\xff\xff\xff\xff\xff\xff") + v1(1, b"b")
    batch = only(v1(8, compress(Codec.GZIP, inner), 0b1001, timestamp=77))
    assert [record.timestamp for record in batch.records()] == [-1, 77]
    assert rows(batch.columns()) == batch.records()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (
            v1(3, compress(Codec.GZIP, v1(4, b"a")), 1),
            "Found invalid wrapper offset in compressed v1 message set, wrapper offset '3' is less than the last inner "
            "message offset '4' and it is not zero.",
        ),
        (v1(3, compress(Codec.GZIP, bytes(12)), 1), "Record size 0 is less than the minimum record overhead (14)"),
        (v1(3, compress(Codec.GZIP, b""), 1), "Found invalid compressed record set with no inner records"),
        (v1(3, None, 1), "Found invalid compressed record set with null value (magic = 1)"),
        (v1(3, compress(Codec.GZIP, v1(0, b"a", 2)), 1), "Inner messages must not be compressed"),
        (v1(3, b"", 4), "zstd in a message of magic 1, which has none"),
        (
            message(3, b"\xfe\x01" + bytes(8) + b"\xff\xff\xff\xff\0\0\0\0"),
            "Invalid wrapper magic found in legacy deep record iterator -2",
        ),
        (
            message(3, b"\x01\x00" + bytes(8) + b"\0\0\0\x09\0\0\0\0"),
            "Found invalid record structure: a field runs past the message",
        ),
        (
            message(3, b"\x01\x00" + bytes(8) + b"\0\0\0\0\0\0\0\x09"),
            "Found invalid record structure: the value runs past the message",
        ),
    ],
)
def test_what_does_not_add_up_is_refused_by_both_readers(data: bytes, what: str) -> None:
    damage = (InvalidRecordError, CorruptBatchError)
    assert both_refuse(data, damage) == f"x.log at byte 0: {what}"


def test_the_checksum_and_the_size_of_a_message_are_held_to() -> None:
    sound = v1(3, b"a")
    batch = only(sound[:-1] + b"b")
    with pytest.raises(CorruptBatchError, match=rf"^x\.log at byte 0: Record is corrupt \(stored crc = {batch.crc}, "):
        batch.ensure_valid()
    small = message(3, b"\x01\x00" + bytes(9))
    assert not only(small).is_valid()
    with pytest.raises(CorruptBatchError, match=r"as the record is too small, size = 15\)$"):
        only(small).ensure_valid()
