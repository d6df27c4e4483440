"""Gather slices of scanned bytes into one buffer, and find the headers of records, in compiled loops.

What it decides: where Arrow's bytes and offsets of keys, values and headers come from: one pass over the slices, one
copy of their bytes.

Constraints: slices lie inside `data`, as a scan has checked each of them; `offsets` int32[N + 1] so
that all slices of a call are less than 2 GiB together, which the caller sees to.

Source: Arrow's layout of variable-size binary; Kafka's record format, magic 2, for headers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from broker.block_copy import copy_block
from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with


@compiled_with(copy_block, allocates=False)
def fill_slices(
    data: NDArray[np.uint8], starts: Int64Array, sizes: Int32Array, offsets: Int32Array, out: NDArray[np.uint8]
) -> None:
    """Copy the slices (start, size) of `data` to `out`, one after another; fill where each begins, and the last ends.

    A slice of size -1, a null, has no bytes.
    """
    end = 0
    offsets[0] = 0
    for row in range(starts.shape[0]):
        size = sizes[row]
        if size > 0:
            copy_block(out, end, data, starts[row], size)
            end += size
        offsets[row + 1] = end


def size_at(data: NDArray[np.uint8], position: int) -> tuple[np.int64, int]:
    """Return the zig-zag encoded size at `position`, -1 for a null, and the position after it."""
    value, shift = np.int64(0), 0
    while True:  # A scan has read these bytes: at most five.
        byte = np.int64(data[position])
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return np.int64(max(np.int64((value >> 1) ^ -(value & 1)), np.int64(-1))), position


@compiled_with(size_at)
def find_headers(
    data: NDArray[np.uint8], positions: Int64Array, counts: Int32Array, starts: Int64Array, sizes: Int32Array
) -> None:
    """Fill int64[2, H] starts and int32[2, H] sizes of the names and values of all headers, record by record.

    `positions` int64[N] are where the values of the records end, `counts` int32[N] their numbers of headers.
    """
    header = 0
    for row in range(positions.shape[0]):
        if counts[row] == 0:
            continue
        _, position = size_at(data, positions[row])
        for _ in range(counts[row]):
            for part in range(2):
                size, position = size_at(data, position)
                starts[part, header], sizes[part, header] = position, size
                position += int(max(size, np.int64(0)))
            header += 1
