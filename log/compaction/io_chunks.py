"""Cut the retained batches of a segment into appends of the size that Kafka's cleaner appends.

Source: kafka.log.Cleaner.cleanInto, growBuffersOrFail and growBuffers, MemoryRecords.
filterTo and FilterResult, 4.3.1.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from broker.cluster import Int64Array
from broker.ids import Offset
from broker.units import KIB, MIB, SizeBytes
from log.batches.record_columns import BatchRun
from log.compaction.filter import FilteredBatches
from log.segments.segment import Segment
from log.storage.protocol import Buffer

BUFFER_SIZE_BYTES: Final = SizeBytes(256 * KIB)  # Half of log.cleaner.io.buffer.size; the other half is for writing.
MESSAGE_SIZE_BYTES_MAX: Final = SizeBytes(MIB + 12)  # Kafka's message.max.bytes.


@attrs.frozen(kw_only=True)
class IoLimits:
    """Set the size limits of the cleaner's I/O buffer: the first size, and the largest message to grow for.

    The message limits are message.max.bytes of the broker and max.message.bytes of the topic.
    """

    buffer_size_bytes: SizeBytes = BUFFER_SIZE_BYTES
    broker_message_size_bytes_max: SizeBytes = MESSAGE_SIZE_BYTES_MAX
    topic_message_size_bytes_max: SizeBytes = MESSAGE_SIZE_BYTES_MAX

    def grown(self, buffer_size_bytes: int, batch_size_bytes: int) -> int:
        """Return the size of the buffer in bytes after it has doubled until a batch fits."""
        while buffer_size_bytes < batch_size_bytes:
            limit = self.topic_message_size_bytes_max
            limit = SizeBytes(batch_size_bytes) if buffer_size_bytes >= limit else limit
            buffer_size_bytes = min(2 * buffer_size_bytes, max(limit, self.broker_message_size_bytes_max))
        return buffer_size_bytes


class Appender:
    """Append retained batches of an old segment to a new one in Kafka's portions; `finish` appends the last."""

    def __init__(self, destination: Segment, limits: IoLimits) -> None:
        self._destination = destination
        self._limits = limits
        self._buffer_size_bytes = int(limits.buffer_size_bytes)
        # The portion: where it begins and ends in the old segment, and what is to be appended of it.
        self._position = self._end_position = 0
        self._is_begun = False
        self._pieces: list[Buffer] = []
        self._written_bytes = 0
        self._last_offsets: list[Int64Array] = []
        self._timestamps: list[Int64Array] = []
        self._max_offset = -1

    def feed(self, batches: FilteredBatches) -> None:
        """Take the next retained batches of the old segment, and append each full portion."""
        ends = batches.end_position
        written = np.cumsum(batches.size_bytes)
        row = 0
        while row < len(ends):
            fitting = int(np.searchsorted(ends, self._position + self._buffer_size_bytes, side="right"))
            if fitting > row:
                before = int(written[row] - batches.size_bytes[row]) - self._written_bytes
                outgrown = int(np.searchsorted(written, before + self._buffer_size_bytes, side="right"))
                row_end = min(fitting, outgrown + 1)
                self._take(batches, row, row_end)
                self._written_bytes = int(written[row_end - 1]) - before
                row = row_end
                if self._written_bytes > self._buffer_size_bytes:
                    self._append(self._end_position)
            elif self._is_begun:
                self._append(self._end_position)
            else:
                batch_size_bytes = int(ends[row]) - self._position
                self._buffer_size_bytes = self._limits.grown(self._buffer_size_bytes, batch_size_bytes)

    def finish(self) -> None:
        """Append the last portion."""
        self._append(self._end_position)

    def _take(self, batches: FilteredBatches, row: int, row_end: int) -> None:
        """Add rows to the portion."""
        self._pieces.extend(batches.pieces[row:row_end])
        self._max_offset = max(self._max_offset, int(batches.max_offset[row:row_end].max()))
        self._last_offsets.append(batches.timestamp_offset[row:row_end])
        self._timestamps.append(batches.max_timestamp[row:row_end])
        self._end_position = int(batches.end_position[row_end - 1])
        self._is_begun = True

    def _append(self, next_position: int) -> None:
        """Write the portion, if any of it is left, and begin the next one at `next_position` of the old segment."""
        if self._written_bytes:
            sizes = np.fromiter(map(len, self._pieces), np.int64, len(self._pieces))
            is_left = sizes > 0  # A discarded batch has no bytes, and counts for nothing.
            run = BatchRun(
                memoryview(b"".join(self._pieces)),
                np.cumsum(sizes)[is_left],
                np.concatenate(self._last_offsets)[is_left],
                np.concatenate(self._timestamps)[is_left],
            )
            self._destination.append_set(run, last_offset=Offset(self._max_offset))
        self._position = self._end_position = next_position
        self._is_begun = False
        self._pieces = []
        self._written_bytes = 0
        self._last_offsets = []
        self._timestamps = []
        self._max_offset = -1
