"""Read the records of batches of magic 2 into columns, a bounded number of rows at a time.

What it decides: how the kernel that reads records (`log.batches.records_kernel`) is driven: what it gets for each
batch, how much memory its columns take, and what is handed out when a batch does not add up.

Constraints: no more than `ROWS_MAX` rows at once, whatever a header announces; a large batch is handed out in several
chunks. What the kernel refuses, `log.batches.batch_v2` refuses with words.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.units import KIB
from log.batches import records_kernel as kernel
from log.batches.header_table import as_array, walk
from log.batches.memory import ColumnMemory
from log.batches.record_columns import ByteArray, HeaderColumns, RecordColumns
from log.codecs.crc import BytesLike
from log.record import TIMESTAMP_TYPE_BIT

ROWS_MAX: Final = 256 * KIB
"""Rows of one chunk at most: 16 MiB of columns."""
RECORD_BYTES_MIN: Final = 7  # Length, attributes, two deltas, two sizes and a count, of one byte each.


@attrs.define(eq=False)
class ColumnFill:
    """Read the records of batches of magic 2 chunk by chunk; one buffer holds all payloads."""

    data: ByteArray
    batches: HeaderColumns
    plan: Int64Array
    memory: ColumnMemory = attrs.field(factory=ColumnMemory)
    """Where columns are put."""
    state: Int64Array = attrs.field(factory=lambda: np.zeros(kernel.STATE_SIZE, np.int64))

    @property
    def is_done(self) -> bool:
        """Return whether no batch is left to read."""
        return int(self.state[kernel.BATCH]) >= len(self.batches)

    @property
    def broken_batch(self) -> int | None:
        """Return the row of the damaged batch at which reading stopped; None without damage."""
        is_broken = not self.is_done and self.state[kernel.NEXT_POSITION] == kernel.BROKEN
        return int(self.state[kernel.BATCH]) if is_broken else None

    def skip_broken(self) -> None:
        """Continue with the batch after the damaged one."""
        assert self.broken_batch is not None
        self.state[:] = (self.state[kernel.BATCH] + 1, 0, 0)

    def next_columns(self, rows_max: int = ROWS_MAX) -> RecordColumns:
        """Return the next records as columns: as many as fit, up to the next damaged batch."""
        row_count = self._row_count(rows_max)
        wide = self.memory.int64_table(kernel.WIDE_COUNT, row_count)
        narrow = self.memory.int32_table(kernel.NARROW_COUNT, row_count)
        count = kernel.fill_rows(self.data, self.plan, self.state, wide, narrow)
        return named(self.data, self.batches, wide[:, :count], narrow[:, :count])

    def _row_count(self, rows_max: int) -> int:
        left = self.plan[:, int(self.state[kernel.BATCH]) :]
        room = (left[kernel.PAYLOAD_END] - left[kernel.PAYLOAD_START]) // RECORD_BYTES_MIN
        announced = np.maximum(left[kernel.RECORD_COUNT], 0)  # A damaged batch may announce fewer than none.
        counts = np.minimum(announced, room)
        return max(1, min(int(counts.sum()), rows_max))


def plan_of(batches: HeaderColumns, starts: Int64Array, ends: Int64Array) -> Int64Array:
    """Return the kernel's plan for batches whose payloads lie between `starts` and `ends`."""
    plan = np.empty((kernel.PLAN_ROW_COUNT, len(batches)), np.int64)
    plan[kernel.PAYLOAD_START] = starts
    plan[kernel.PAYLOAD_END] = ends
    plan[kernel.RECORD_COUNT] = batches.record_count
    plan[kernel.BASE_OFFSET] = batches.base_offset
    plan[kernel.BASE_TIMESTAMP] = batches.base_timestamp
    plan[kernel.IS_APPEND_TIME] = batches.attributes & TIMESTAMP_TYPE_BIT
    plan[kernel.APPEND_TIME] = batches.max_timestamp
    return plan


def named(data: ByteArray, batches: HeaderColumns, wide: Int64Array, narrow: Int32Array) -> RecordColumns:
    """Return the kernel's tables as named columns."""
    return RecordColumns(
        data=data,
        batches=batches,
        batch_index=narrow[kernel.BATCH_INDEX],
        offset=wide[kernel.OFFSET],
        timestamp=wide[kernel.TIMESTAMP],
        key_position=wide[kernel.KEY_POSITION],
        key_size=narrow[kernel.KEY_SIZE],
        value_position=wide[kernel.VALUE_POSITION],
        value_size=narrow[kernel.VALUE_SIZE],
        header_count=narrow[kernel.HEADER_COUNT],
        record_position=wide[kernel.RECORD_POSITION],
        record_size=narrow[kernel.RECORD_SIZE],
        damages=(),
    )


def tables_of_payload(payload: BytesLike, batch: Sequence[int]) -> tuple[Int64Array, Int32Array] | None:
    """Return the kernel's tables for one batch of magic 2, or None if its records are damaged.

    `batch` is a column of the kernel's plan; positions are in `payload`.
    """
    plan = np.array(batch, np.int64).reshape(kernel.PLAN_ROW_COUNT, 1)
    count = max(0, min(batch[kernel.RECORD_COUNT], len(payload) // RECORD_BYTES_MIN))
    wide, narrow = np.empty((kernel.WIDE_COUNT, count), np.int64), np.empty((kernel.NARROW_COUNT, count), np.int32)
    state = np.zeros(kernel.STATE_SIZE, np.int64)
    kernel.fill_rows(as_array(payload), plan, state, wide, narrow)
    return (wide, narrow) if state[kernel.BATCH] == 1 else None


def columns_of_payload(batch: BytesLike, payload: BytesLike) -> RecordColumns | None:
    """Return all records of one batch of magic 2, or None if they are damaged; positions are in `payload`."""
    batches = walk(as_array(batch), 0, len(batch), is_file_reader=True)
    plan = plan_of(batches, np.zeros(1, np.int64), np.full(1, len(payload), np.int64))
    tables = tables_of_payload(payload, plan[:, 0].tolist())
    return None if tables is None else named(as_array(payload), batches, *tables)
