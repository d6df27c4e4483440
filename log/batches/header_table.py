"""Walk over batch headers with the kernel, and name the columns of its table.

What it decides: how the kernel that reads headers (`log.batches.headers_kernel`) is driven, and which message says
what stopped the walk.

Constraints: one walk covers a bounded piece of the file and a bounded number of batches.

Source: ours.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from broker.cluster import Int64Array
from broker.units import KIB, MIB
from log.batches import headers_kernel as kernel
from log.batches.memory import ColumnMemory
from log.batches.record_columns import ByteArray, Damage, HeaderColumns
from log.codecs.crc import BytesLike
from log.errors import CorruptBatchError

CHUNK_BYTES: Final = 4 * MIB
"""How much of a file one step covers: enough to forget what a step costs, little enough for the processor's caches."""
BATCHES_MAX: Final = 16 * KIB
"""How many batches one step takes at most, so that tiny batches do not make large tables."""

_WORDS: Final = {
    kernel.TORN_TAIL: "an incomplete batch stands at the end",
    kernel.BAD_SIZE: "the size of the batch is less than the minimum record overhead (14)",
    kernel.BAD_MAGIC: "Invalid magic found in record",
    kernel.TOO_SMALL: "the size of the batch cannot hold its header",
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
    rows = memory.int64_table(kernel.ROW_COUNT, min(BATCHES_MAX, (end - start) // 26 + 1))
    span = np.array((start, end, start + step_bytes), np.int64)
    count, position, code = kernel.scan_rows(array, span, is_file_reader, rows)
    damage = None
    if code not in (kernel.ROWS_FULL, kernel.AT_END):
        damage = Damage(
            CorruptBatchError(_WORDS[code], position=position),
            position,
            end - position,
            int.from_bytes(array[position : position + 8].tobytes(), "big", signed=True)
            if end - position >= 8
            else None,
            is_torn_tail=code == kernel.TORN_TAIL,
        )
    return named(rows[:, :count], position, damage)


def named(rows: Int64Array, end_position: int, damage: Damage | None) -> HeaderColumns:
    """Return the table int64[ROW_COUNT, B] as named columns."""
    return HeaderColumns(
        position=rows[kernel.POSITION],
        size_bytes=rows[kernel.SIZE_BYTES],
        base_offset=rows[kernel.BASE_OFFSET],
        last_offset=rows[kernel.LAST_OFFSET],
        magic=rows[kernel.MAGIC],
        attributes=rows[kernel.ATTRIBUTES].astype(np.int16),
        crc=rows[kernel.CRC],
        partition_leader_epoch=rows[kernel.PARTITION_LEADER_EPOCH],
        base_timestamp=rows[kernel.BASE_TIMESTAMP],
        max_timestamp=rows[kernel.MAX_TIMESTAMP],
        producer_id=rows[kernel.PRODUCER_ID],
        producer_epoch=rows[kernel.PRODUCER_EPOCH],
        base_sequence=rows[kernel.BASE_SEQUENCE],
        record_count=rows[kernel.RECORD_COUNT].astype(np.int32),
        end_position=end_position,
        damage=damage,
    )


def joined(chunks: list[HeaderColumns]) -> HeaderColumns:
    """Return consecutive pieces as one HeaderColumns."""
    if len(chunks) == 1:
        return chunks[0]
    columns = {name: np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in HeaderColumns.COLUMN_NAMES}
    return HeaderColumns(**columns, end_position=chunks[-1].end_position, damage=chunks[-1].damage)
