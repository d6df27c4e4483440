"""Define BatchRun, consecutive batches in memory that a log appends with one write.

What it decides: nothing; it carries many batches from an encoder to a segment.

Constraints: whole batches of magic 2, offsets ascending. The bytes may be a buffer that is used again: the
function that yields the run says how long they are valid.

Example: two batches of 80 and 90 bytes: ends are 80 and 170.

Source: ours; Kafka appends batch by batch.
"""

from __future__ import annotations

import attrs

from broker.cluster import Int64Array
from log.record import TimestampOffset


@attrs.frozen(eq=False)
class BatchRun:
    """Hold B consecutive batches in `data`, with end positions, last offsets and largest timestamps as int64[B]."""

    data: memoryview
    ends: Int64Array
    last_offsets: Int64Array
    max_timestamps: Int64Array

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def largest_timestamp(self) -> TimestampOffset:
        """Return the largest timestamp, with the last offset of the first batch that has it."""
        row = int(self.max_timestamps.argmax())
        return TimestampOffset(int(self.max_timestamps[row]), int(self.last_offsets[row]))

    def rows(self, start: int, end: int) -> BatchRun:
        """Return the batches from `start` to before `end`, as views."""
        if end - start == len(self):
            return self
        first = int(self.ends[start - 1]) if start else 0
        ends = self.ends[start:end] - first
        last = first + int(ends[-1]) if len(ends) else first
        return BatchRun(self.data[first:last], ends, self.last_offsets[start:end], self.max_timestamps[start:end])
