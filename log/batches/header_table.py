"""Walk over batch headers with the kernel, and name the columns of its table."""

from __future__ import annotations

import sys
from typing import Final

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from broker.units import KIB, MIB
from log.batches.record_columns import ByteArray, Damage, HeaderColumns
from log.codecs.crc import BytesLike
from log.errors import CorruptBatchError

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
    return np.int64(unsigned32(data, position) << 32 | unsigned32(data, position + 4))


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
    rows[ATTRIBUTES, row] = np.int64(signed32(data, position + 14) << 56) >> 56
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


KEPT_MAX: Final = 8
"""How many buffers are kept: for headers, payloads and two tables of columns, of a chunk and of the one after it."""
UNHELD_COUNT: Final = 2
"""References to a buffer that only the list of buffers holds: the list's and that of the call that counts."""
SPARE_SHARE: Final = 8
"""A new buffer is an eighth larger than asked for, as the next chunk may have a few rows more."""


class ColumnMemory:
    """Keep the buffers of one scan, for use by one thread."""

    __slots__ = ("_buffers",)

    def __init__(self) -> None:
        self._buffers: list[ByteArray] = []

    def octets(self, size_bytes: int) -> ByteArray:
        """Return an uninitialised uint8[size_bytes]."""
        fitting = [
            number
            for number in range(len(self._buffers))
            if len(self._buffers[number]) >= size_bytes and sys.getrefcount(self._buffers[number]) == UNHELD_COUNT
        ]
        if fitting:
            return self._buffers[min(fitting, key=lambda number: len(self._buffers[number]))][:size_bytes]
        buffer = np.empty(size_bytes + size_bytes // SPARE_SHARE, np.uint8)
        self._buffers = [*self._buffers[-KEPT_MAX + 1 :], buffer]
        return buffer[:size_bytes]

    def int64_table(self, row_count: int, column_count: int) -> Int64Array:
        """Return an uninitialised int64[row_count, column_count]."""
        return self.octets(8 * row_count * column_count).view(np.int64).reshape(row_count, column_count)

    def int32_table(self, row_count: int, column_count: int) -> Int32Array:
        """Return an uninitialised int32[row_count, column_count]."""
        return self.octets(4 * row_count * column_count).view(np.int32).reshape(row_count, column_count)


CHUNK_BYTES: Final = 4 * MIB
"""How much of a file one step covers: enough to forget what a step costs, little enough for the processor's caches."""
BATCHES_MAX: Final = 16 * KIB
"""How many batches one step takes at most, so that tiny batches do not make large tables."""

_WORDS: Final = {
    TORN_TAIL: "an incomplete batch stands at the end",
    BAD_SIZE: "the size of the batch is less than the minimum record overhead (14)",
    BAD_MAGIC: "Invalid magic found in record",
    TOO_SMALL: "the size of the batch cannot hold its header",
}


def as_array(data: BytesLike) -> ByteArray:
    """Return the bytes as read-only uint8[N], so that numba compiles each kernel for one type."""
    array = np.frombuffer(data, np.uint8)
    array.flags.writeable = False
    return array


def walk(
    array: ByteArray,
    start: int,
    end: int,
    is_file_reader: bool,
    memory: ColumnMemory | None = None,
    *,
    step_bytes: int = CHUNK_BYTES,
) -> HeaderColumns:
    """Return the headers of about `step_bytes` bytes from `start` on, stored in `memory`."""
    memory = ColumnMemory() if memory is None else memory
    rows = memory.int64_table(ROW_COUNT, min(BATCHES_MAX, (end - start) // 26 + 1))
    span = np.array((start, end, start + step_bytes), np.int64)
    count, position, code = scan_rows(array, span, is_file_reader, rows)
    damage = None
    if code not in (ROWS_FULL, AT_END):
        damage = Damage(
            CorruptBatchError(_WORDS[code], position=position),
            position,
            end - position,
            int.from_bytes(array[position : position + 8].tobytes(), "big", signed=True)
            if end - position >= 8
            else None,
            is_torn_tail=code == TORN_TAIL,
        )
    return named(rows[:, :count], position, damage)


def named(rows: Int64Array, end_position: int, damage: Damage | None) -> HeaderColumns:
    """Return the table int64[ROW_COUNT, B] as named columns."""
    return HeaderColumns(
        position=rows[POSITION],
        size_bytes=rows[SIZE_BYTES],
        base_offset=rows[BASE_OFFSET],
        last_offset=rows[LAST_OFFSET],
        magic=rows[MAGIC],
        attributes=rows[ATTRIBUTES].astype(np.int16),
        crc=rows[CRC],
        partition_leader_epoch=rows[PARTITION_LEADER_EPOCH],
        base_timestamp=rows[BASE_TIMESTAMP],
        max_timestamp=rows[MAX_TIMESTAMP],
        producer_id=rows[PRODUCER_ID],
        producer_epoch=rows[PRODUCER_EPOCH],
        base_sequence=rows[BASE_SEQUENCE],
        record_count=rows[RECORD_COUNT].astype(np.int32),
        end_position=end_position,
        damage=damage,
    )


def joined(chunks: list[HeaderColumns]) -> HeaderColumns:
    """Return consecutive pieces as one HeaderColumns."""
    if len(chunks) == 1:
        return chunks[0]
    columns = {name: np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in HeaderColumns.COLUMN_NAMES}
    return HeaderColumns(**columns, end_position=chunks[-1].end_position, damage=chunks[-1].damage)
