"""A log as a plain list of batches: what a reader of Kafka's documentation would write down.

No files, no segments, no indexes; offsets and values only. Tests compare the real log with it after every operation.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs


@attrs.frozen
class PlainBatch:
    """Values from a first offset on, and the leader epoch that they were written in."""

    first_offset: int
    values: tuple[bytes, ...]
    epoch: int

    @property
    def end_offset(self) -> int:
        """The offset after the last value."""
        return self.first_offset + len(self.values)


class PlainLog:
    """Batches in order; what lies below `start_offset` is not to be read any more."""

    def __init__(self) -> None:
        self.batches: list[PlainBatch] = []
        self.start_offset = 0
        self.end_offset = 0
        self.high_watermark = 0

    def append(self, values: Sequence[bytes], epoch: int) -> int:
        """Add a batch and return its first offset."""
        first_offset = self.end_offset
        self.batches.append(PlainBatch(first_offset, tuple(values), epoch))
        self.end_offset += len(values)
        return first_offset

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that reaches beyond `offset`; the next one begins at `offset`."""
        if offset < self.end_offset:
            self.batches = [batch for batch in self.batches if batch.end_offset <= offset]
            self.end_offset = offset
            self.start_offset = min(self.start_offset, offset)
            self.high_watermark = min(self.high_watermark, offset)

    def raise_high_watermark(self, offset: int) -> None:
        """Let consumers see more, or less, within the log."""
        self.high_watermark = max(self.start_offset, min(offset, self.end_offset))

    def begin_at(self, offset: int) -> bool:
        """Forget what lies below `offset`; tell whether that is allowed."""
        if offset > self.high_watermark:
            return False
        self.start_offset = max(self.start_offset, offset)
        return True

    def reopen(self) -> None:
        """Close and open: the high watermark is not known any more."""
        self.high_watermark = self.start_offset

    def readable(self) -> list[tuple[int, bytes]]:
        """Every offset that can be read, with its value."""
        return [
            (offset, value)
            for batch in self.batches
            for offset, value in enumerate(batch.values, start=batch.first_offset)
            if offset >= self.start_offset
        ]

    def epoch_starts(self) -> list[tuple[int, int]]:
        """Each leader epoch whose records are in the log, and its first offset."""
        starts: dict[int, int] = {}
        for batch in self.batches:
            if batch.end_offset > self.start_offset:
                starts.setdefault(batch.epoch, max(batch.first_offset, self.start_offset))
        return sorted(starts.items())
