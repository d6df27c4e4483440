"""Reuse the memory of columns that no caller references any more.

What it decides: when an array may be written over. The system hands out new memory page by page, each with a fault and
four kibibytes of zeros: a scan that takes new memory for each chunk spends more on that than on the records.

Constraints: an array stays unchanged while a reference to it exists, or to a slice, a view or a memoryview of it. No
more than `KEPT_MAX` buffers are kept; with a caller that keeps every chunk, all memory is new.

How: arrays are views of buffers of bytes, and a view holds its buffer; CPython counts who does.

Example: for chunk in scan(data): ... writes to two sets of columns in turn, as the loop holds one while the next is
filled; list(scan(data)) gives each chunk its own.

Source: ours.
"""

from __future__ import annotations

import sys
from typing import Final

import numpy as np

from broker.cluster import Int32Array, Int64Array
from log.batches.record_columns import ByteArray

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
