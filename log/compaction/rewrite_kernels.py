"""Write batches of magic 2 that hold only the retained records, in compiled loops.

Source: org.apache.kafka.common.record.MemoryRecords.buildRetainedRecordsInto and MemoryRecordsBuilder, 4.3.1
(2024-10).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from broker.block_copy import copy_block
from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from log.batches.record_columns import ByteArray
from log.record import TIMESTAMP_TYPE_BIT

HEADER_SIZE_BYTES: Final = 61
GROWTH_BYTES_MAX: Final = 14
"""Bytes by which one record can grow: nine of the timestamp delta, which gets large when the delete horizon becomes the
base timestamp, and up to five of the length, a varint too."""

# Columns of the result, one row per batch: its end in the output, its largest timestamp, its last retained offset.
OUT_END, MAX_TIMESTAMP, MAX_OFFSET = range(3)
RESULT_WIDTH: Final = 3

# Codec, timestamp type, transactional, control. Kafka's builder computes attributes from these alone, so an old delete
# horizon bit does not survive by itself: it is set again if the batch still has a horizon.
ATTRIBUTES_MASK: Final = 0x3F
HORIZON_BIT: Final = 0x40


class KeptRecords(NamedTuple):
    """Hold one row per record: its bytes in `data`, from the length field on, and whether it is retained."""

    data: ByteArray
    position: Int64Array
    size: Int32Array
    offset: Int64Array
    timestamp: Int64Array
    kept: NDArray[np.bool_]


class WrittenBatches(NamedTuple):
    """Hold one row per batch to write: its old header, its records, and the delete horizon or -1."""

    headers: ByteArray
    position: Int64Array
    start_record: Int64Array
    end_record: Int64Array
    base_offset: Int64Array
    attributes: NDArray[np.int16]
    max_timestamp: Int64Array
    horizon_ms: Int64Array


def put_number(out: ByteArray, position: int, value: int, size: int) -> None:
    """Write the lowest `size` bytes of `value`, big-endian."""
    for index in range(size):
        out[position + index] = np.uint8((value >> (8 * (size - 1 - index))) & 0xFF)


def zigzag(value: int) -> np.uint64:
    """Return the zigzag encoding of a signed number: the unsigned number that a varint stores."""
    return np.uint64((value << 1) ^ (value >> 63))


def put_varint(out: ByteArray, position: int, value: int) -> int:
    """Write `value` as a varint and return the position after its last byte."""
    left = zigzag(value)
    while left >= np.uint64(0x80):
        out[position] = np.uint8((left & np.uint64(0x7F)) | np.uint64(0x80))
        left >>= np.uint64(7)
        position += 1
    out[position] = np.uint8(left)
    return position + 1


def varint_size(value: int) -> int:
    """Return the size of `value` as a varint, in bytes."""
    left = zigzag(value)
    size = 1
    while left >= np.uint64(0x80):
        left >>= np.uint64(7)
        size += 1
    return size


def varint_end(data: ByteArray, position: int) -> int:
    """Return the position after the varint at `position`."""
    while data[position] >= 0x80:
        position += 1
    return position + 1


def put_record(out: ByteArray, position: int, data: ByteArray, start: int, end: int, deltas: tuple[int, int]) -> int:
    """Copy the record at `data[start:end]` with new deltas of time and offset; return the position after it."""
    # The body, key to headers, does not depend on the batch. Skip the fields before it: the length, one byte of
    # attributes, and the two old deltas.
    body = varint_end(data, varint_end(data, varint_end(data, start) + 1))
    size = 1 + varint_size(deltas[0]) + varint_size(deltas[1]) + end - body
    position = put_varint(out, position, size)
    out[position] = 0  # Record attributes: unused, Kafka always writes 0.
    position = put_varint(out, position + 1, deltas[0])
    position = put_varint(out, position, deltas[1])
    copy_block(out, position, data, body, end - body)
    return position + end - body


def put_batch(
    out: ByteArray, start: int, batches: WrittenBatches, row: int, records: KeptRecords, result: Int64Array
) -> bool:
    """Write one batch at `start`; return False if Kafka's builder would refuse a record."""
    horizon_ms, base_offset = batches.horizon_ms[row], batches.base_offset[row]
    position = start + HEADER_SIZE_BYTES
    count, last_offset = 0, -1
    # A batch with a delete horizon stores it in the base timestamp field (KIP-534), and the deltas count from there.
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
    # With LogAppendTime every record has the batch's time, whichever records stay.
    if batches.attributes[row] & TIMESTAMP_TYPE_BIT:
        max_timestamp = int(batches.max_timestamp[row])
    # The last offset delta (byte 23) stays as it was: followers and the producer's next sequence rely on the batch's
    # old range of offsets, even if its last record is gone.
    copy_block(out, start, batches.headers, int(batches.position[row]), HEADER_SIZE_BYTES)
    # Byte positions of magic 2: length 8, attributes 21, base timestamp 27, largest timestamp 35, count 57. The length
    # counts from after itself.
    put_number(out, start + 8, position - start - 12, 4)
    put_number(
        out, start + 21, (batches.attributes[row] & ATTRIBUTES_MASK) | (HORIZON_BIT if horizon_ms >= 0 else 0), 2
    )
    put_number(out, start + 27, base_timestamp, 8)
    put_number(out, start + 35, max_timestamp, 8)
    put_number(out, start + 57, count, 4)
    result[row, OUT_END], result[row, MAX_TIMESTAMP], result[row, MAX_OFFSET] = position, max_timestamp, last_offset
    return True


@compiled_with(
    copy_block, put_number, zigzag, put_varint, varint_size, varint_end, put_record, put_batch, allocates=False
)
def write_batches(batches: WrittenBatches, records: KeptRecords, out: ByteArray, result: Int64Array) -> int:
    """Write batches one after the other to `out`; return the first row that Kafka would refuse, or their count.

    `result` int64[B, RESULT_WIDTH] receives a row per batch. Each batch must retain at least one record.
    """
    position = 0
    for row in range(batches.position.shape[0]):
        if not put_batch(out, position, batches, row, records, result):
            return row
        position = int(result[row, OUT_END])
    return len(batches.position)
