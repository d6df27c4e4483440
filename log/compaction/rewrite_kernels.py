"""Batches of magic 2 with some of their records, compiled.

How: it writes the records that stay of each batch as a batch of its own, uncompressed, as Kafka's builder
would: the header that was there with a new count, largest timestamp and base timestamp, and each record with its
offset and time written anew, relative to those; keys, values and headers are copied as they are.

Left out: what the caller does: the checksum in the header; and of records that are compressed then, the size.

The readable twin is `log.batches.rewrite.rebuild`; what Kafka refuses to write (times below -1, offsets that do not
ascend) is left to it. The cost is linear in the bytes written. Source: org.apache.kafka.common.record.MemoryRecords.
buildRetainedRecordsInto and MemoryRecordsBuilder, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from log.batches.record_columns import ByteArray
from log.record import TIMESTAMP_TYPE_BIT

HEADER_SIZE_BYTES: Final = 61
GROWTH_BYTES_MAX: Final = 14
"""A record can grow by nine bytes of time, when its batch gets a horizon, and by as many of its length as it takes."""

# Results for each batch written: where it ends in the output, its largest time, the offset of its last record.
OUT_END, MAX_TIMESTAMP, MAX_OFFSET = range(3)
RESULT_WIDTH: Final = 3

ATTRIBUTES_MASK: Final = 0x3F  # Codec, timestamp type, transactional, control: what a builder can say.
HORIZON_BIT: Final = 0x40


class KeptRecords(NamedTuple):
    """Records, one a row: their bytes in `data`, from the length on, and whether they stay."""

    data: ByteArray
    position: Int64Array
    size: Int32Array
    offset: Int64Array
    timestamp: Int64Array
    kept: NDArray[np.bool_]


class WrittenBatches(NamedTuple):
    """Batches to write, one a row: their headers in `headers`, their records, and the delete horizon or -1."""

    headers: ByteArray
    position: Int64Array
    start_record: Int64Array
    end_record: Int64Array
    base_offset: Int64Array
    attributes: NDArray[np.int16]
    max_timestamp: Int64Array
    horizon_ms: Int64Array


def put_number(out: ByteArray, position: int, value: int, size: int) -> None:
    """Write the lowest `size` bytes of `value`, highest first."""
    for index in range(size):
        out[position + index] = np.uint8((value >> (8 * (size - 1 - index))) & 0xFF)


def zigzag(value: int) -> np.uint64:
    """Return the unsigned number whose bytes a varint is."""
    return np.uint64((value << 1) ^ (value >> 63))


def put_varint(out: ByteArray, position: int, value: int) -> int:
    """Write `value` as a varint and return where it ends."""
    left = zigzag(value)
    while left >= np.uint64(0x80):
        out[position] = np.uint8((left & np.uint64(0x7F)) | np.uint64(0x80))
        left >>= np.uint64(7)
        position += 1
    out[position] = np.uint8(left)
    return position + 1


def varint_size(value: int) -> int:
    """Return how many bytes `value` takes as a varint."""
    left = zigzag(value)
    size = 1
    while left >= np.uint64(0x80):
        left >>= np.uint64(7)
        size += 1
    return size


def varint_end(data: ByteArray, position: int) -> int:
    """Return where the varint at `position` ends."""
    while data[position] >= 0x80:
        position += 1
    return position + 1


def put_record(out: ByteArray, position: int, data: ByteArray, start: int, end: int, deltas: tuple[int, int]) -> int:
    """Write the record that stands in `data` with other deltas of time and offset; return where it ends."""
    # Its length, a byte of attributes, and the deltas that it had.
    body = varint_end(data, varint_end(data, varint_end(data, start) + 1))
    size = 1 + varint_size(deltas[0]) + varint_size(deltas[1]) + end - body
    position = put_varint(out, position, size)
    out[position] = 0
    position = put_varint(out, position + 1, deltas[0])
    position = put_varint(out, position, deltas[1])
    for index in range(end - body):
        out[position + index] = data[body + index]
    return position + end - body


def put_batch(
    out: ByteArray, start: int, batches: WrittenBatches, row: int, records: KeptRecords, result: Int64Array
) -> bool:
    """Write one batch at `start`; False if Kafka would refuse to."""
    horizon_ms, base_offset = batches.horizon_ms[row], batches.base_offset[row]
    position = start + HEADER_SIZE_BYTES
    count, last_offset = 0, -1
    base_timestamp, max_timestamp = int(horizon_ms), -1
    for record in range(batches.start_record[row], batches.end_record[row]):
        if not records.kept[record]:
            continue
        offset, timestamp = int(records.offset[record]), int(records.timestamp[record])
        if timestamp < -1 or (count > 0 and offset <= last_offset):
            return False
        if count == 0 and horizon_ms < 0:
            base_timestamp = timestamp
        count += 1
        last_offset = offset
        max_timestamp = max(max_timestamp, timestamp)
        end = records.position[record] + records.size[record]
        deltas = (timestamp - base_timestamp, offset - base_offset)
        position = put_record(out, position, records.data, records.position[record], end, deltas)
    if batches.attributes[row] & TIMESTAMP_TYPE_BIT:
        max_timestamp = int(batches.max_timestamp[row])
    for index in range(HEADER_SIZE_BYTES):
        out[start + index] = batches.headers[batches.position[row] + index]
    put_number(out, start + 8, position - start - 12, 4)
    put_number(
        out, start + 21, (batches.attributes[row] & ATTRIBUTES_MASK) | (HORIZON_BIT if horizon_ms >= 0 else 0), 2
    )
    put_number(out, start + 27, base_timestamp, 8)
    put_number(out, start + 35, max_timestamp, 8)
    put_number(out, start + 57, count, 4)
    result[row, OUT_END], result[row, MAX_TIMESTAMP], result[row, MAX_OFFSET] = position, max_timestamp, last_offset
    return True


@compiled_with(put_number, zigzag, put_varint, varint_size, varint_end, put_record, put_batch, allocates=False)
def write_batches(batches: WrittenBatches, records: KeptRecords, out: ByteArray, result: Int64Array) -> int:
    """Write the batches one after the other to `out`; return the row that Kafka would refuse, their number if none.

    `result` int64[B, RESULT_WIDTH] gets the end of each. Each has at least one record that stays.
    """
    position = 0
    for row in range(batches.position.shape[0]):
        if not put_batch(out, position, batches, row, records, result):
            return row
        position = int(result[row, OUT_END])
    return len(batches.position)
