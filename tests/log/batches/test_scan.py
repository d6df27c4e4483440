"""Scans of whole files: the careful reader's records, in bounded pieces, around damage, and as Arrow columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import UsageError
from broker.ids import Offset
from broker.units import TimeMs
from log.batches import header_table
from log.batches.arrow_columns import RECORD_COLUMNS
from log.batches.batch_v2 import BatchV2
from log.batches.build import BatchSpec, build_batch, sealed
from log.batches.fill import ROWS_MAX
from log.batches.header_table import KEPT_MAX, ColumnMemory
from log.batches.in_buffer import batches_in
from log.batches.record_columns import ByteArray, Damage, RecordColumns
from log.batches.scan import STEP_BYTES_MAX, ScanOptions, header_chunks, scan, scan_headers
from log.codecs.compression import Codec
from log.errors import DecompressionError, InvalidRecordError
from log.record import Record
from log.strategies import Written, streams

KEEP_GOING = ScanOptions(keep_going=True)


def batch(base_offset: int, codec: Codec = Codec.NONE, count: int = 3, magic: int = 2) -> bytes:
    records = tuple(Record(Offset(base_offset + each), TimeMs(each), b"key", b"v" * 40) for each in range(count))
    return build_batch(BatchSpec(Offset(base_offset), codec=codec, magic=magic), records)


def offsets(chunks: Iterable[RecordColumns]) -> list[int]:
    return [offset for chunk in chunks for offset in chunk.offset.tolist()]


def damages(data: bytes) -> list[Damage]:
    return [damage for chunk in scan(data, options=KEEP_GOING) for damage in chunk.damages]


def broken(data: bytes, at: int) -> bytes:
    return data[:at] + bytes((data[at] ^ 0x55,)) + data[at + 1 :]


@given(streams())
def test_a_scan_reads_what_the_careful_reader_reads(stream: tuple[Written, ...]) -> None:
    data = b"".join(written.data for written in stream)
    chunks = list(scan(data))
    found = [chunk.record(row) for chunk in chunks for row in range(len(chunk))]
    assert found == [record for written in stream for record in written.records]
    assert [damage for chunk in chunks for damage in chunk.damages] == []
    positions = [position for chunk in chunks for position in chunk.batches.position.tolist()]
    assert positions == [each.position for each in batches_in(data)]


@given(streams())
def test_headers_as_columns_say_what_batches_say(stream: tuple[Written, ...]) -> None:
    data = b"".join(written.data for written in stream)
    columns = scan_headers(data)
    careful = list(batches_in(data))
    assert (len(columns), columns.end_position, columns.damage) == (len(careful), len(data), None)
    for name in columns.COLUMN_NAMES:
        if name not in ("base_offset", "record_count") or all(each.magic == 2 for each in careful):
            assert getattr(columns, name).tolist() == [getattr(each, name) for each in careful], name


def test_a_file_of_uncompressed_batches_is_not_copied() -> None:
    data = bytearray(batch(0) + batch(3))
    (chunk,) = scan(data)
    assert np.shares_memory(chunk.data, np.frombuffer(data, np.uint8))


def test_files_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(header_table, "BATCHES_MAX", 50)
    data = batch(0) * 101
    assert len(next(scan(data))) == 3 * 50
    assert len(scan_headers(data)) == 101
    assert [len(chunk) for chunk in header_chunks(data)] == [50, 50, 1]


@pytest.mark.parametrize("codec", [pytest.param(Codec.NONE, marks=pytest.mark.deep), Codec.ZSTD])
def test_a_batch_of_more_records_than_a_chunk_has_rows_is_read_in_pieces(codec: Codec) -> None:
    count = ROWS_MAX + 10
    records = tuple(Record(Offset(each), TimeMs(0), None, None) for each in range(count))
    chunks = list(scan(build_batch(BatchSpec(codec=codec), records)))
    assert [len(chunk) for chunk in chunks] == [ROWS_MAX, 10]
    assert offsets(chunks) == list(range(count))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_chunk_covers_about_a_step_and_all_chunks_the_same_records(codec: Codec) -> None:
    size = len(batch(0, codec))
    data = b"".join(batch(3 * each, codec) for each in range(6)) + broken(batch(18, codec), 70) + batch(21, codec)
    for step_bytes, sizes in ((1, [3] * 7), (size, [3] * 7), (2 * size, [6, 6, 6, 3]), (100 * size, [18, 3])):
        options = ScanOptions(keep_going=True, step_bytes=step_bytes)
        chunks = list(scan(data, options=options))
        assert [len(chunk) for chunk in chunks] == sizes
        assert offsets(chunks) == [*range(18), *range(21, 24)]
        assert [damage.position for chunk in chunks for damage in chunk.damages] == [6 * size]


@pytest.mark.parametrize("step_bytes", [0, -1, STEP_BYTES_MAX + 1])
def test_a_step_that_reads_nothing_or_too_much_is_refused(step_bytes: int) -> None:
    with pytest.raises(UsageError, match=rf"^step_bytes is {step_bytes}; allowed is 1 to 268435456$"):
        ScanOptions(step_bytes=step_bytes)


def test_records_that_do_not_add_up_cost_their_batch_only() -> None:
    for codec in (Codec.NONE, Codec.SNAPPY):
        (sound,) = batches_in(batch(3, codec))
        assert isinstance(sound, BatchV2)
        lying = sealed(sound.header._replace(record_count=4), sound.data[61:])
        data = batch(0, codec) + lying + batch(6, codec)
        assert offsets(scan(data, options=KEEP_GOING)) == [0, 1, 2, 6, 7, 8]
        assert [damage.kafka_class for damage in damages(data)] == ["org.apache.kafka.common.InvalidRecordException"]
        with pytest.raises(InvalidRecordError, match=r"record 3 of 4: a number runs past the end of the records$"):
            list(scan(data))


def test_a_batch_that_grows_beyond_the_limit_is_damage() -> None:
    data = batch(0, Codec.GZIP, count=100)
    with pytest.raises(DecompressionError, match="the records decompress to more than the allowed 1000 bytes"):
        list(scan(data, options=ScanOptions(decompressed_bytes_max=1000)))


@given(streams(magics=(2,), count_max=3), st.data())
def test_whatever_one_bit_does_the_rest_is_read(stream: tuple[Written, ...], data: st.DataObject) -> None:
    sound = b"".join(written.data for written in stream)
    if not sound:
        return
    at = data.draw(st.integers(0, len(sound) - 1))
    damaged = sound[:at] + bytes((sound[at] ^ 1 << data.draw(st.integers(0, 7)),)) + sound[at + 1 :]
    found = {chunk.record(row) for chunk in scan(damaged, options=KEEP_GOING) for row in range(len(chunk))}
    starts = np.cumsum([0, *(len(written.data) for written in stream)])
    hit = int(np.searchsorted(starts, at, side="right")) - 1
    assert found >= {record for index, written in enumerate(stream) if index != hit for record in written.records}


def test_broken_compression_costs_its_batch_only() -> None:
    (sound,) = batches_in(batch(3, Codec.ZSTD))
    assert isinstance(sound, BatchV2)
    data = batch(0, Codec.ZSTD) + sealed(sound.header, b"not zstd") + batch(6)
    assert offsets(scan(data, options=KEEP_GOING)) == [0, 1, 2, 6, 7, 8]
    with pytest.raises(DecompressionError, match=r"^x at byte \d+: zstd: "):
        list(scan(data, source="x"))


def rows_of(data: bytes, columns: tuple[str, ...] = RECORD_COLUMNS) -> list[dict[str, Any]]:
    return [row for chunk in scan(data) for row in chunk.to_arrow(columns).to_pylist()]


def expected(data: bytes) -> list[dict[str, Any]]:
    """Return the rows from the batches and their record objects."""
    return [
        {
            "offset": record.offset,
            "timestamp_ms": record.timestamp,
            "key": record.key,
            "value": record.value,
            "headers": [{"key": each.name, "value": each.value} for each in record.headers],
            "producer_id": batch.producer_id,
            "producer_epoch": batch.producer_epoch,
            "sequence": record.sequence,
            "is_transactional": batch.is_transactional,
            "is_control": batch.is_control,
            "codec": batch.codec.name.lower(),
            "leader_epoch": batch.partition_leader_epoch,
        }
        for batch in batches_in(data)
        for record in batch.records()
    ]


@given(streams())
def test_columns_say_what_the_objects_say(stream: tuple[Written, ...]) -> None:
    data = b"".join(written.data for written in stream)
    found, wanted = rows_of(data), expected(data)
    assert [{name: row[name] for name in wanted[0]} for row in found] == wanted if wanted else found == []


def test_columns_come_in_the_order_that_is_asked_for() -> None:
    (chunk,) = scan(three_records())
    batch = chunk.to_arrow(("value", "offset"))
    assert isinstance(batch, pa.RecordBatch)
    assert (batch.schema.names, batch.num_rows) == (["value", "offset"], len(chunk))
    assert chunk.to_arrow().schema.names == list(RECORD_COLUMNS)


def test_a_column_that_there_is_not_is_one_sentence() -> None:
    (chunk,) = scan(three_records())
    with pytest.raises(UsageError, match=r"^columns of records are offset, .*; not 'ofset'$"):
        chunk.to_arrow(("ofset",))


def three_records() -> bytes:
    return build_batch(BatchSpec(), [Record(Offset(each), TimeMs(each), b"k", b"v") for each in range(3)])


def address(array: ByteArray) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize(
    "part",
    [
        lambda array: array[5:6],
        lambda array: array.view(np.int64),
        lambda array: array.reshape(10, 100)[:, 1],
        lambda array: array.data,
        lambda array: memoryview(array)[3:4],
        lambda array: np.frombuffer(array.data, np.int32)[1:],
    ],
)
def test_memory_of_which_a_part_is_held_is_not_used_again(part: Callable[[ByteArray], object]) -> None:
    memory = ColumnMemory()
    array = memory.octets(1000)
    first, held = address(array), part(array)
    del array
    other = memory.octets(1000)
    assert address(other) != first
    del held
    assert {address(memory.octets(1000))} == {first}


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 3 * KEPT_MAX)), max_size=60))
def test_whatever_is_held_stays_as_it_is(steps: list[tuple[int, int]]) -> None:
    """Each step takes an array, fills it with its number, and lets go of one of those that are held."""
    memory = ColumnMemory()
    held: dict[int, ByteArray] = {}
    for number, (size_bytes, dropped) in enumerate(steps):
        array = memory.octets(size_bytes)
        array[:] = number
        held[number] = array
        held.pop(number - dropped, None)
        del array
    assert all((array == number).all() for number, array in held.items())
