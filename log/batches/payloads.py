"""Collect the decompressed records of consecutive batches in one buffer.

What it decides: when a buffer is full, and where in it each batch's records stand, so that one call of the kernel reads
many batches.

Constraints: columns that are handed out point into the buffer, and it stays as it is while they are held. A batch
larger than a buffer stands alone, where its codec put it.

Example: three batches of lz4 are decompressed one behind the other into `room`; `fill` reads them all.

Source: ours.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from broker.units import KIB
from log.batches.fill import ColumnFill, plan_of
from log.batches.header_table import CHUNK_BYTES, as_array
from log.batches.memory import ColumnMemory
from log.batches.record_columns import HeaderColumns
from log.codecs.crc import BytesLike

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
