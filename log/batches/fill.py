"""Read the records of batches of magic 2 into columns, a bounded number of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.ids import INT32_MAX
from broker.units import KIB
from log.batches import records_kernel as kernel
from log.batches.header_table import CHUNK_BYTES, ColumnMemory, as_array, walk
from log.batches.record_columns import ByteArray, HeaderColumns, RecordColumns
from log.codecs.crc import BytesLike
from log.record import TIMESTAMP_TYPE_BIT

ROOM_BYTES_MIN: Final = 128 * KIB
"""How much is left before a buffer counts as full: enough for what lz4 asks for most batches, 64 KiB a block."""


class Payloads:
    """Collect decompressed records batch by batch in one buffer."""

    __slots__ = ("_data", "_ends", "_memory", "_size_bytes", "_view")

    def __init__(self, memory: ColumnMemory) -> None:
        self._memory = memory
        self._data: BytesLike = memory.octets(CHUNK_BYTES + ROOM_BYTES_MIN).data
        self._view = memoryview(self._data)
        self._ends: list[int] = []
        self._size_bytes = 0

    @property
    def room(self) -> memoryview:
        """Return the free rest of the buffer, in which to put the next batch's records."""
        return self._view[self._size_bytes :]

    @property
    def is_full(self) -> bool:
        """Return whether the buffer should be read before another batch is added."""
        return self._size_bytes > CHUNK_BYTES

    def add(self, payload: int | BytesLike) -> bool:
        """Add a batch's records: the number of bytes already put into `room`, or the records themselves.

        Return whether there was room for them; the first batch's are always taken.
        """
        if isinstance(payload, int):
            self._size_bytes += payload
        elif len(payload) <= len(self.room):
            self._view[self._size_bytes : self._size_bytes + len(payload)] = payload
            self._size_bytes += len(payload)
        elif not self._ends:
            self._data, self._size_bytes = payload, len(payload)
        else:
            return False
        self._ends.append(self._size_bytes)
        return True

    def fill(self, batches: HeaderColumns) -> ColumnFill:
        """Return the reader of all added records; `batches` are the headers of the added batches."""
        assert len(batches) == len(self._ends), (len(batches), len(self._ends))
        ends = np.array(self._ends, np.int64)
        starts = np.concatenate((np.zeros(1, np.int64), ends))[: len(ends)]
        plan = plan_of(batches, starts, ends)
        return ColumnFill(as_array(self._data)[: self._size_bytes], batches, plan, self._memory)


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


@attrs.frozen
class RecordPlace:
    """Name a record of a batch by the count of records before it and its position in the payload."""

    number: int
    position: int


BEGINNING: Final = RecordPlace(0, 0)


def tables_in_slices(
    payload: BytesLike, batch: Sequence[int], rows_max: int
) -> Iterator[tuple[Int64Array, Int32Array] | RecordPlace]:
    """Yield the kernel's tables for one batch of magic 2, of `rows_max` rows each; at damage the slice's first record.

    `batch` is a column of the kernel's plan; positions are in `payload`.
    """
    plan = np.array(batch, np.int64).reshape(kernel.PLAN_ROW_COUNT, 1)
    row_count = max(1, min(batch[kernel.RECORD_COUNT], len(payload) // RECORD_BYTES_MIN, rows_max))
    array, state = as_array(payload), np.zeros(kernel.STATE_SIZE, np.int64)
    while state[kernel.BATCH] == 0:  # Each turn reads a row at least, or ends.
        place = RecordPlace(int(state[kernel.RECORDS_DONE]), int(state[kernel.NEXT_POSITION]))
        wide, narrow = (
            np.empty((kernel.WIDE_COUNT, row_count), np.int64),
            np.empty((kernel.NARROW_COUNT, row_count), np.int32),
        )
        count = kernel.fill_rows(array, plan, state, wide, narrow)
        if state[kernel.NEXT_POSITION] == kernel.BROKEN:
            yield place
            return
        yield wide[:, :count], narrow[:, :count]


def columns_of_payload(batch: BytesLike, payload: BytesLike) -> RecordColumns | None:
    """Return all records of one batch of magic 2, or None if they are damaged; positions are in `payload`."""
    batches = walk(as_array(batch), 0, len(batch), is_file_reader=True)
    plan = plan_of(batches, np.zeros(1, np.int64), np.full(1, len(payload), np.int64))
    tables = next(tables_in_slices(payload, plan[:, 0].tolist(), INT32_MAX))
    if not isinstance(tables, RecordPlace) and tables[0].shape[1] != max(int(batches.record_count[0]), 0):
        return None
    return None if isinstance(tables, RecordPlace) else named(as_array(payload), batches, *tables)
