"""Read batch headers of a file into rows of numbers, in one compiled pass.

What it decides: where batches begin and what their headers say, without looking at records or checksums.

Constraints: nothing outside the span is read; every step moves on by at least 26 bytes, so the walk ends. What
stops it is returned as a code and the position, in the order in which `log.batches.in_buffer.batch_at` looks at things
(its twin).

How: a row is `ROW_COUNT` int64s, the constants below naming them. Messages of magic 0 and 1 fill what they have.

The cost is about 10 ns a batch, and the memory of the pages touched.

Source: ours.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int64Array
from broker.compiled import compiled_with

ByteArray: TypeAlias = NDArray[np.uint8]

POSITION: Final = 0
SIZE_BYTES: Final = 1
BASE_OFFSET: Final = 2
LAST_OFFSET: Final = 3
MAGIC: Final = 4
ATTRIBUTES: Final = 5
CRC: Final = 6
PARTITION_LEADER_EPOCH: Final = 7
BASE_TIMESTAMP: Final = 8
MAX_TIMESTAMP: Final = 9
PRODUCER_ID: Final = 10
PRODUCER_EPOCH: Final = 11
BASE_SEQUENCE: Final = 12
RECORD_COUNT: Final = 13
ROW_COUNT: Final = 14

# What `span` holds.
START: Final = 0
END: Final = 1
STOP: Final = 2

AT_END: Final = 0
"""Nothing is left that a reader would look at."""
ROWS_FULL: Final = 1
TORN_TAIL: Final = 2
"""What is left is less than the batch that begins there."""
BAD_SIZE: Final = 3
BAD_MAGIC: Final = 4
TOO_SMALL: Final = 5
"""A batch of magic 2 that cannot hold its header, or a message of magic 1 that cannot."""

ENTRY_BYTES: Final = 12
BYTES_UP_TO_MAGIC: Final = 17
SIZE_MIN: Final = 14
SIZE_MIN_V1: Final = 22
SIZE_MIN_V2: Final = 49


def unsigned16(data: ByteArray, position: int) -> np.int64:
    """Return two big-endian bytes as a uint16."""
    return np.int64(data[np.uint64(position)]) << 8 | np.int64(data[np.uint64(position + 1)])


def unsigned32(data: ByteArray, position: int) -> np.int64:
    """Return four big-endian bytes as a uint32."""
    return unsigned16(data, position) << 16 | unsigned16(data, position + 2)


def signed32(data: ByteArray, position: int) -> np.int64:
    """Return four big-endian bytes as an int32."""
    return np.int64(np.int32(unsigned32(data, position)))


def signed64(data: ByteArray, position: int) -> np.int64:
    """Return eight big-endian bytes as an int64."""
    return unsigned32(data, position) << 32 | unsigned32(data, position + 4)


def check(data: ByteArray, position: int, end: int, is_file_reader: bool) -> int:
    """Return ROWS_FULL if a whole batch begins at `position`, else the code of the damage there."""
    left = end - position
    if left < ENTRY_BYTES or (is_file_reader and left <= BYTES_UP_TO_MAGIC):
        return AT_END if left <= 0 else TORN_TAIL
    size = signed32(data, position + 8)
    if size < SIZE_MIN:
        return BAD_SIZE
    if left < BYTES_UP_TO_MAGIC:
        return TORN_TAIL
    magic = data[np.uint64(position + 16)]
    if magic > 2 and not is_file_reader:
        return BAD_MAGIC
    if left < ENTRY_BYTES + size:
        return TORN_TAIL
    if (2 <= magic < 128 and size < SIZE_MIN_V2) or ((magic == 1 or magic >= 128) and size < SIZE_MIN_V1):
        return TOO_SMALL
    return ROWS_FULL


def fill_row(data: ByteArray, position: int, rows: Int64Array, row: int) -> None:
    """Write the header of the whole batch or message at `position` into column `row`."""
    magic = np.int64(data[np.uint64(position + 16)])
    rows[POSITION, row] = position
    rows[SIZE_BYTES, row] = ENTRY_BYTES + signed32(data, position + 8)
    rows[BASE_OFFSET, row] = signed64(data, position)
    rows[MAGIC, row] = magic if magic < 128 else magic - 256
    if 2 <= magic < 128:
        rows[PARTITION_LEADER_EPOCH, row] = signed32(data, position + 12)
        rows[CRC, row] = unsigned32(data, position + 17)
        rows[ATTRIBUTES, row] = signed32(data, position + 21) >> 16
        rows[LAST_OFFSET, row] = rows[BASE_OFFSET, row] + signed32(data, position + 23)
        rows[BASE_TIMESTAMP, row] = signed64(data, position + 27)
        rows[MAX_TIMESTAMP, row] = signed64(data, position + 35)
        rows[PRODUCER_ID, row] = signed64(data, position + 43)
        rows[PRODUCER_EPOCH, row] = signed32(data, position + 51) >> 16
        rows[BASE_SEQUENCE, row] = signed32(data, position + 53)
        rows[RECORD_COUNT, row] = signed32(data, position + 57)
        return
    rows[PARTITION_LEADER_EPOCH, row] = -1
    rows[CRC, row] = unsigned32(data, position + 12)
    rows[ATTRIBUTES, row] = signed32(data, position + 14) << 56 >> 56
    rows[LAST_OFFSET, row] = rows[BASE_OFFSET, row]
    rows[BASE_TIMESTAMP, row] = -1
    rows[MAX_TIMESTAMP, row] = -1 if magic == 0 else signed64(data, position + 18)
    rows[PRODUCER_ID, row] = -1
    rows[PRODUCER_EPOCH, row] = -1
    rows[BASE_SEQUENCE, row] = -1
    rows[RECORD_COUNT, row] = 1


@compiled_with(unsigned16, unsigned32, signed32, signed64, check, fill_row, allocates=False)
def scan_rows(data: ByteArray, span: Int64Array, is_file_reader: bool, rows: Int64Array) -> tuple[int, int, int]:
    """Fill `rows` int64[ROW_COUNT, R] with the batches from `span[START]` on; return (count, position, code).

    No batch reaches beyond `span[END]`, none begins at `span[STOP]` or later. `position` is where the walk stopped
    and `code` why: ROWS_FULL to be gone on with, AT_END, or what is wrong there.
    """
    position = span[START]
    count = 0
    while count < rows.shape[1] and (position < span[STOP] or position >= span[END]):
        code = check(data, position, span[END], is_file_reader)
        if code != ROWS_FULL:
            return count, position, code
        fill_row(data, position, rows, count)
        position += rows[SIZE_BYTES, count]
        count += 1
    return count, position, ROWS_FULL
