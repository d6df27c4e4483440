"""Read the records of a batch of magic 2 as objects.

Source: org.apache.kafka.common.record.DefaultRecord, 4.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.ids import INT32_MAX, Offset
from broker.java.utf8 import decode_java_utf8
from broker.units import TimeMs
from log.batches import records_kernel as kernel
from log.batches.batch import SLICE_ROWS, RecordBatch, RecordSlice
from log.batches.fill import BEGINNING, RecordPlace, tables_in_slices
from log.codecs.varint import read_varint, read_varlong
from log.errors import InvalidRecordError
from log.record import NO_SEQUENCE, TIMESTAMP_TYPE_BIT, Header, Record, increment_sequence, int64

MANY: Final = 20
"""From so many records on, reading all at once costs less."""
NO_HEADERS: Final[tuple[Header, ...]] = ()


def slices_of(payload: bytes, batch: RecordBatch, *, headers_max: int = INT32_MAX) -> Iterator[RecordSlice]:
    """Yield the records of a decompressed payload, some at a time, each with its first `headers_max` headers.

    Yields those before a damage, then raises InvalidRecordError with Kafka's message.
    """
    for piece in tables_in_slices(payload, _plan(payload, batch), SLICE_ROWS):
        if not isinstance(piece, RecordPlace):
            yield slice_of(payload, batch, *piece, headers_max)
            continue
        records, damage = list[Record](), None
        try:
            for record in each_record(payload, batch, piece):
                records.append(record)
        except InvalidRecordError as error:
            damage = error
        yield RecordSlice(tuple(records))
        if damage is not None:
            raise damage


def check_records(payload: bytes, batch: RecordBatch) -> None:
    """Raise InvalidRecordError, as `slices_of` does, if the payload is damaged."""
    for piece in tables_in_slices(payload, _plan(payload, batch), SLICE_ROWS):
        if isinstance(piece, RecordPlace):
            for _ in each_record(payload, batch, piece):
                pass


def _plan(payload: bytes, batch: RecordBatch) -> tuple[int, ...]:
    """Return the kernel's plan for one batch."""
    is_append_time = batch.attributes & TIMESTAMP_TYPE_BIT
    header = (batch.record_count, batch.base_offset, batch.base_timestamp, is_append_time, batch.max_timestamp)
    return 0, len(payload), *header


def slice_of(
    payload: bytes, batch: RecordBatch, wide: Int64Array, narrow: Int32Array, headers_max: int = INT32_MAX
) -> RecordSlice:
    """Return the rows of the kernel's tables as records with at most `headers_max` headers each."""
    offsets = wide[kernel.OFFSET].tolist()
    keys = _pieces(payload, wide[kernel.KEY_POSITION], narrow[kernel.KEY_SIZE])
    values = _pieces(payload, wide[kernel.VALUE_POSITION], narrow[kernel.VALUE_SIZE])
    headers, hidden = [NO_HEADERS] * len(offsets), dict[int, int]()
    for row in np.flatnonzero(narrow[kernel.HEADER_COUNT]).tolist():
        position = int(wide[kernel.VALUE_POSITION, row]) + max(int(narrow[kernel.VALUE_SIZE, row]), 0)
        count, position = read_varint(payload, position)
        headers[row], _end = _read_headers(payload, position, min(count, headers_max))
        if count > headers_max:
            hidden[row] = count - headers_max
    sequences = [NO_SEQUENCE] * len(offsets)
    if batch.base_sequence >= 0:
        sequences = [increment_sequence(batch.base_sequence, offset - batch.base_offset) for offset in offsets]
    records = map(Record, offsets, wide[kernel.TIMESTAMP].tolist(), keys, values, headers, sequences)
    return RecordSlice(tuple(records), hidden)


def _pieces(payload: bytes, positions: Int64Array, sizes: Int32Array) -> list[bytes | None]:
    """Return what stands at each position, None for a size of -1."""
    return [
        None if size < 0 else payload[position : position + size]
        for position, size in zip(positions.tolist(), sizes.tolist(), strict=True)
    ]


def each_record(payload: bytes, batch: RecordBatch, place: RecordPlace = BEGINNING) -> Iterator[Record]:
    """Yield the records from a place on up to the first damage, then raise InvalidRecordError with Kafka's message."""
    count = batch.record_count
    if count < 0:
        raise InvalidRecordError(f"Found invalid record count {count} in magic v2 batch")
    position = place.position
    for number in range(place.number, count):  # Each turn reads at least seven bytes, or raises.
        try:
            record, position = _read_record(payload, position, batch)
        except InvalidRecordError as error:
            raise InvalidRecordError(f"record {number} of {count}: {error.what}") from None
        if number == count - 1 and position != len(payload):  # Seen before the last record is given.
            raise InvalidRecordError("Incorrect declared batch size, records still remaining in file")
        yield record
    if count == 0 and payload:
        raise InvalidRecordError("Incorrect declared batch size, records still remaining in file")


def _read_record(payload: bytes, position: int, batch: RecordBatch) -> tuple[Record, int]:
    size, position = read_varint(payload, position)
    end = position + size
    if size < 0 or end > len(payload):
        raise InvalidRecordError(
            f"Invalid record size: expected {size} bytes in record payload, but {len(payload) - position} remain"
        )
    timestamp_delta, position = read_varlong(payload, position + 1)  # After the attributes, which mean nothing.
    offset_delta, position = read_varint(payload, position)
    key, position = _read_bytes(payload, position)
    value, position = _read_bytes(payload, position)
    count, position = read_varint(payload, position)
    if not 0 <= count <= len(payload) - position:
        raise InvalidRecordError(f"Found invalid number of record headers {count}")
    headers = NO_HEADERS
    if count:
        headers, position = _read_headers(payload, position, count)
    if position != end:
        raise InvalidRecordError(
            f"Invalid record size: expected to read {size} bytes in record payload, but instead read "
            f"{position - end + size}"
        )
    is_append_time = batch.attributes & TIMESTAMP_TYPE_BIT
    timestamp = batch.max_timestamp if is_append_time else int64(batch.base_timestamp + timestamp_delta)
    sequence = NO_SEQUENCE if batch.base_sequence < 0 else increment_sequence(batch.base_sequence, offset_delta)
    offset = int64(batch.base_offset + offset_delta)
    return Record(Offset(offset), TimeMs(timestamp), key, value, headers, sequence), position


def _read_bytes(payload: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = read_varint(payload, position)
    if size < 0:
        return None, position
    if size > len(payload) - position:
        raise InvalidRecordError(f"Found invalid record structure: a field of {size} bytes runs past the records")
    return payload[position : position + size], position + size


def _read_headers(payload: bytes, position: int, count: int) -> tuple[tuple[Header, ...], int]:
    headers: list[Header] = []
    for _ in range(count):  # Each turn reads at least two bytes, or raises.
        name, position = _read_bytes(payload, position)
        if name is None:
            raise InvalidRecordError("Invalid negative header key size")
        value, position = _read_bytes(payload, position)
        headers.append(Header(decode_java_utf8(name), value))
    return tuple(headers), position
