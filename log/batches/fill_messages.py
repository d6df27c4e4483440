"""Read messages of magic 0 and 1 into columns, a bounded number of rows at a time.

What it decides: how the kernel that reads messages (`log.batches.messages_kernel`) is driven, for messages that stand
plainly in a file and for the set that a wrapper held.

Constraints: as in `log.batches.fill`.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from log.batches import messages_kernel as kernel
from log.batches.fill import ROWS_MAX, named
from log.batches.record_columns import ByteArray, HeaderColumns, RecordColumns
from log.batches.records_kernel import NARROW_COUNT, WIDE_COUNT
from log.record import int64


@attrs.frozen
class MessageSet:
    """Hold the position of a set of messages in a buffer, and the offsets and times given by the wrapper."""

    start_position: int
    end_position: int
    is_relative: bool = False
    """Whether offsets count within the set, so that the last is the wrapper's."""
    last_offset: int = 0
    append_time: int | None = None
    """The time that all messages tell, if the wrapper has LogAppendTime."""
    is_wrapped: bool = False
    """Whether all messages belong to one batch, the only one; else each is a batch of its own."""


def columns_of_set(
    data: ByteArray, batches: HeaderColumns, spec: MessageSet, rows_max: int = ROWS_MAX
) -> Iterator[RecordColumns] | None:
    """Return an iterator over the messages as columns; None if the set is empty or damaged."""
    count, last_inner, position = kernel.measure(data, spec.start_position, spec.end_position)
    if position == kernel.BROKEN or count == 0:
        return None
    base = spec.last_offset - last_inner if spec.is_relative and spec.last_offset != 0 else 0
    if base < 0:
        return None
    has_time = spec.append_time is not None
    time = 0 if spec.append_time is None else spec.append_time
    frame = np.array((spec.start_position, position, int64(base), has_time, time, 0, not spec.is_wrapped), np.int64)
    return _pieces(data, batches, frame, (count, rows_max))


def _pieces(
    data: ByteArray, batches: HeaderColumns, frame: np.ndarray[tuple[int], np.dtype[np.int64]], counts: tuple[int, int]
) -> Iterator[RecordColumns]:
    left, rows_max = counts
    while left > 0:  # Each turn reads at least one message: they were counted.
        size = min(left, rows_max)
        wide = np.empty((WIDE_COUNT, size), np.int64)
        narrow = np.empty((NARROW_COUNT, size), np.int32)
        filled = kernel.fill_messages(data, frame, wide, narrow)
        assert filled == size, (filled, size)
        left -= filled
        yield named(data, batches, wide, narrow)
