"""Read messages of magic 0 and 1 into columns, in one compiled pass from size to size.

What it decides: where the key and value of each message of a set stand, exactly as `log.batches.legacy` reads
them, which is this kernel's twin and finds the words for what is wrong.

Constraints: nothing outside the set is read; every step moves on by at least 26 bytes.

How: a first pass (`measure`) counts the messages and finds the last offset, which a wrapper of magic 1 needs; the
second fills the columns of `log.batches.records_kernel`, some rows a call. Half a message at the end ends the set.

Source: ours; the format is LegacyRecord's.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with

ByteArray: TypeAlias = NDArray[np.uint8]

# Rows of the columns, as in `log.batches.records_kernel`: the cache notices changes of one file only.
OFFSET: Final = 0
TIMESTAMP: Final = 1
KEY_POSITION: Final = 2
VALUE_POSITION: Final = 3
RECORD_POSITION: Final = 4
KEY_SIZE: Final = 0
VALUE_SIZE: Final = 1
HEADER_COUNT: Final = 2
RECORD_SIZE: Final = 3
BATCH_INDEX: Final = 4

# What `frame` holds: where the set stands, what is added to its offsets, the time that all messages of magic 1 tell,
# if any, and the batch of the first message and by how much it grows from one message to the next (0 in a wrapper).
NEXT_POSITION: Final = 0
END: Final = 1
OFFSET_BASE: Final = 2
HAS_TIME: Final = 3
TIME: Final = 4
NEXT_BATCH: Final = 5
BATCH_STEP: Final = 6
FRAME_SIZE: Final = 7

ENTRY_BYTES: Final = 12
SIZE_MIN: Final = 14
BROKEN: Final = -1
ABSENT: Final = -2
"""Less than a message is left."""


def signed32(data: ByteArray, position: int) -> np.int64:
    """Return four big-endian bytes as an int32."""
    return np.int64(
        np.int32(
            np.int64(data[np.uint64(position)]) << 24
            | np.int64(data[np.uint64(position + 1)]) << 16
            | np.int64(data[np.uint64(position + 2)]) << 8
            | np.int64(data[np.uint64(position + 3)])
        )
    )


def signed64(data: ByteArray, position: int) -> np.int64:
    """Return eight big-endian bytes as an int64."""
    return signed32(data, position) << 32 | (signed32(data, position + 4) & 0xFFFF_FFFF)


def message_end(data: ByteArray, position: int, end: int) -> int:
    """Return the end position of the message at `position`; ABSENT if it is incomplete, BROKEN if impossible."""
    if end - position < ENTRY_BYTES:
        return ABSENT
    size = int(signed32(data, position + 8))
    if size < SIZE_MIN:
        return BROKEN
    if size > end - position - ENTRY_BYTES:
        return ABSENT
    return position + ENTRY_BYTES + size


def key_start(data: ByteArray, position: int) -> int:
    """Return the position of the key of the message at `position`."""
    return position + (22 if data[np.uint64(position + 16)] == 0 else 30)


def value_start(data: ByteArray, position: int, end: int) -> int:
    """Return the position of the value of the message at `position`; BROKEN if the value passes `end`."""
    key = key_start(data, position)
    if key + 4 > end:
        return BROKEN
    key_size = max(int(signed32(data, key - 4)), 0)
    if key_size > end - key - 4:
        return BROKEN
    value = key + key_size + 4
    return BROKEN if int(signed32(data, value - 4)) > end - value else value


@compiled_with(signed32, signed64, message_end, key_start, value_start, allocates=False)
def measure(data: ByteArray, start: int, end: int) -> tuple[int, int, int]:
    """Return (count, last offset, position) of the set in `start`..`end`; position is BROKEN for damage."""
    position = start
    count = 0
    last_offset = 0
    while True:
        after = message_end(data, position, end)
        if after == ABSENT:
            return count, last_offset, position
        if after == BROKEN or value_start(data, position, after) == BROKEN:
            return count, last_offset, BROKEN
        if data[np.uint64(position + 17)] & 7 != 0:
            return count, last_offset, BROKEN
        last_offset = int(signed64(data, position))
        count += 1
        position = after


@compiled_with(signed32, signed64, message_end, key_start, value_start, allocates=False)
def fill_messages(data: ByteArray, frame: Int64Array, wide: Int64Array, narrow: Int32Array) -> int:
    """Fill columns with the messages of a measured set, from `frame` on; return the number of rows filled."""
    row = 0
    position = int(frame[NEXT_POSITION])
    batch = frame[NEXT_BATCH]
    while row < wide.shape[1]:
        after = message_end(data, position, int(frame[END]))
        if after < 0:
            break
        key = key_start(data, position)
        value = value_start(data, position, after)
        is_v0 = data[np.uint64(position + 16)] == 0
        wide[OFFSET, row] = frame[OFFSET_BASE] + signed64(data, position)
        wide[TIMESTAMP, row] = -1 if is_v0 else frame[TIME] if frame[HAS_TIME] else signed64(data, position + 18)
        wide[KEY_POSITION, row] = key
        wide[VALUE_POSITION, row] = value
        wide[RECORD_POSITION, row] = position
        narrow[KEY_SIZE, row] = max(int(signed32(data, key - 4)), -1)
        narrow[VALUE_SIZE, row] = max(int(signed32(data, value - 4)), -1)
        narrow[HEADER_COUNT, row] = 0
        narrow[RECORD_SIZE, row] = after - position
        narrow[BATCH_INDEX, row] = batch
        batch += frame[BATCH_STEP]
        position = after
        row += 1
    frame[NEXT_POSITION] = position
    frame[NEXT_BATCH] = batch
    return row
