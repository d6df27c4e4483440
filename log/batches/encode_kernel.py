"""Encode keys and values as batches of magic 2 in one compiled pass."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from broker.block_copy import copy_block
from broker.cluster import Int64Array
from broker.compiled import compiled_with

ByteArray: TypeAlias = NDArray[np.uint8]
Fields: TypeAlias = tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array]
"""Of N records, int64[N] each: timestamps, starts and sizes of keys, starts and sizes of values; -1 is null's size."""


def zigzag(value: int) -> np.uint64:
    """Return the zig-zag encoding of a signed number: its sign moves to the lowest bit."""
    return np.uint64((value << 1) ^ (value >> 63))


def number_size(value: int) -> int:
    """Return the size of a zig-zag encoded number as a varint, in bytes."""
    rest = zigzag(value)
    size = 1
    while rest > np.uint64(0x7F):
        rest >>= np.uint64(7)
        size += 1
    return size


def put(out: ByteArray, position: int, value: int) -> int:
    """Write a number as a varint at `position`; return the position after it."""
    rest = zigzag(value)
    while rest > np.uint64(0x7F):
        out[np.uint64(position)] = np.uint8(rest & np.uint64(0x7F) | np.uint64(0x80))
        rest >>= np.uint64(7)
        position += 1
    out[np.uint64(position)] = np.uint8(rest)
    return position + 1


def field_size(size: int) -> int:
    """Return the encoded size of a key or value of `size` bytes, in bytes; -1 means null."""
    return number_size(size) + max(size, 0)


def body_size(key_size: int, value_size: int, offset_delta: int, timestamp_delta: int) -> int:
    """Return the size of a record after its length field, in bytes: attributes, deltas, key, value, no headers."""
    return 2 + number_size(timestamp_delta) + number_size(offset_delta) + field_size(key_size) + field_size(value_size)


def put_field(out: ByteArray, position: int, data: ByteArray, start: int, size: int) -> int:
    """Write a key or value after its size; return the position after it."""
    position = put(out, position, size)
    if size > 0:
        copy_block(out, position, data, start, size)
    return position + max(size, 0)


def is_inside(data_size: int, start: int, size: int) -> bool:
    """Return whether a key or value is null or lies within the data."""
    return size == -1 or (size >= 0 and 0 <= start <= data_size - size)


@compiled_with(zigzag, number_size, field_size, body_size, is_inside, allocates=False)
def measure_batches(fields: Fields, data_size: int, per_batch: int, ends: Int64Array) -> int:
    """Fill `ends` int64[B] with the end position of each batch's records in the output, written without gaps.

    Return the first record with a key or value outside the `data_size` bytes of data, -1 if there is none.
    """
    timestamps, key_starts, key_sizes, value_starts, value_sizes = fields
    total = 0
    for record in range(len(timestamps)):
        key_size, value_size = key_sizes[record], value_sizes[record]
        if not is_inside(data_size, key_starts[record], key_size):
            return record
        if not is_inside(data_size, value_starts[record], value_size):
            return record
        delta = record % per_batch
        body = body_size(key_size, value_size, delta, int(np.int64(timestamps[record] - timestamps[record - delta])))
        total += number_size(body) + body
        ends[record // per_batch] = total
    return -1


@compiled_with(zigzag, number_size, field_size, body_size, put, put_field, copy_block, allocates=False)
def encode_batches(data: ByteArray, fields: Fields, headers: ByteArray, plan: Int64Array, out: ByteArray) -> None:
    """Write the header and records of each batch to `out`.

    `plan` int64[B, 3] holds for each batch: first record, end record, position (relative to the first batch's);
    `data` uint8[M] holds keys and values, `headers` uint8[B, H] what stands before the records.
    """
    timestamps, key_starts, key_sizes, value_starts, value_sizes = fields
    for batch in range(len(plan)):
        first = plan[batch, 0]
        position = plan[batch, 2] - plan[0, 2]
        for index in range(headers.shape[1]):
            out[np.uint64(position + index)] = headers[batch, index]
        position += headers.shape[1]
        for record in range(first, plan[batch, 1]):
            timestamp_delta = int(np.int64(timestamps[record] - timestamps[first]))
            body = body_size(key_sizes[record], value_sizes[record], record - first, timestamp_delta)
            position = put(out, position, body)
            out[np.uint64(position)] = 0
            position = put(out, position + 1, timestamp_delta)
            position = put(out, position, record - first)
            position = put_field(out, position, data, key_starts[record], key_sizes[record])
            position = put_field(out, position, data, value_starts[record], value_sizes[record])
            out[np.uint64(position)] = 0
            position += 1
