"""Keys and values to the records sections of batches: one compiled pass.

What it decides: the bytes of many records at once, as `log.build.append_record` (its twin) makes them one by one.

Constraints: `out` is sized by `encoded_sizes` first and never overrun. Records have no headers.

How: a record's body size is known from the sizes of its numbers, so each is written once, front to back.

Source: ours; the format is DefaultRecord's.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int64Array
from broker.compiled import compiled_with

ByteArray: TypeAlias = NDArray[np.uint8]


def zigzag(value: int) -> np.uint64:
    """Return a number with its sign in the lowest bit."""
    return np.uint64((value << 1) ^ (value >> 63))


def number_size(value: int) -> int:
    """Return how many bytes a number takes."""
    rest = zigzag(value)
    size = 1
    while rest > np.uint64(0x7F):
        rest >>= np.uint64(7)
        size += 1
    return size


def put(out: ByteArray, position: int, value: int) -> int:
    """Write a number at `position`; return the position after it."""
    rest = zigzag(value)
    while rest > np.uint64(0x7F):
        out[np.uint64(position)] = np.uint8(rest & np.uint64(0x7F) | np.uint64(0x80))
        rest >>= np.uint64(7)
        position += 1
    out[np.uint64(position)] = np.uint8(rest)
    return position + 1


def field_size(size: int) -> int:
    """Return how many bytes a key or value of `size` bytes takes; null for -1."""
    return number_size(size) + max(size, 0)


def body_size(sizes: Int64Array, record: int, offset_delta: int, timestamp_delta: int) -> int:
    """Return the bytes of a record after its length: attributes, two deltas, key, value and no headers."""
    return (
        2
        + number_size(timestamp_delta)
        + number_size(offset_delta)
        + field_size(sizes[0, record])
        + field_size(sizes[1, record])
    )


def put_field(out: ByteArray, position: int, data: ByteArray, start: int, size: int) -> int:
    """Write a key or value with its size; return the position after it."""
    position = put(out, position, size)
    for index in range(max(size, 0)):
        out[np.uint64(position + index)] = data[np.uint64(start + index)]
    return position + max(size, 0)


@compiled_with(zigzag, number_size, field_size, body_size, allocates=False)
def encoded_sizes(timestamps: Int64Array, sizes: Int64Array, per_batch: int, ends: Int64Array) -> None:
    """Fill `ends` int64[B] with where each batch's records end, were they written one after the other.

    `timestamps` int64[N], `sizes` int64[2, N] of keys and values, -1 for null.
    """
    total = 0
    for record in range(len(timestamps)):
        delta = record % per_batch
        body = body_size(sizes, record, delta, timestamps[record] - timestamps[record - delta])
        total += number_size(body) + body
        ends[record // per_batch] = total


@compiled_with(zigzag, number_size, field_size, body_size, put, put_field, allocates=False)
def encode_batches(
    data: ByteArray, timestamps: Int64Array, starts: Int64Array, sizes: Int64Array, plan: Int64Array, out: ByteArray
) -> None:
    """Write the records of each batch to `out` where `plan` int64[3, B] says: first record, end, position.

    `data` uint8[M] holds keys and values, `starts` and `sizes` int64[2, N] tell where.
    """
    for batch in range(plan.shape[1]):
        first = plan[0, batch]
        position = plan[2, batch]
        for record in range(first, plan[1, batch]):
            timestamp_delta = timestamps[record] - timestamps[first]
            position = put(out, position, body_size(sizes, record, record - first, timestamp_delta))
            out[np.uint64(position)] = 0
            position = put(out, position + 1, timestamp_delta)
            position = put(out, position, record - first)
            position = put_field(out, position, data, starts[0, record], sizes[0, record])
            position = put_field(out, position, data, starts[1, record], sizes[1, record])
            out[np.uint64(position)] = 0
            position += 1
