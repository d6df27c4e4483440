"""Hold the offsets of a log, with its segments, producers and leader epochs.

What it decides: where a log starts and ends, up to where it is replicated, stable and on disk; and what a new log
start or high watermark changes in the leader epochs and producers.

Constraints: those of `log.partition.log_invariants`, at every moment. The high watermark starts at the log start and
is set by replication; the log start only grows, except when the log is truncated below it.

Example: a log from 0 to 10 with high watermark 8 and a transaction open since 5 has the last stable offset 5.

Left out: what changes files: `log.partition.appending`, `flushing`, `truncation` and `retention` do.

Source: kafka.log.UnifiedLog, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from broker.ids import LeaderEpoch, Offset
from log.errors import OffsetOutOfRangeError
from log.partition.epoch_cache import LeaderEpochCache
from log.partition.local_log import LocalLog
from log.producers.state import ProducerState
from log.storage.protocol import Storage


class LogOffsets:
    """Hold the offsets, segments, producers and leader epochs of a log; `epochs` is None for magic 0 or 1."""

    def __init__(self, local: LocalLog, producers: ProducerState, epochs: LeaderEpochCache | None) -> None:
        self.local = local
        self.producers = producers
        self.epochs = epochs
        self.log_start_offset = Offset(0)
        self.high_watermark = Offset(0)
        self.topic_id: str | None = None
        self._first_unstable_offset: Offset | None = None

    def __repr__(self) -> str:
        return f"LogOffsets({self.directory!r}, {self.log_start_offset} to {self.log_end_offset})"

    @property
    def storage(self) -> Storage:
        """Return the storage that holds the log."""
        return self.local.storage

    @property
    def directory(self) -> str:
        """Return the log's directory in its storage."""
        return self.local.directory

    @property
    def log_end_offset(self) -> Offset:
        """Return the offset of the next record."""
        return self.local.end_offset

    @property
    def last_stable_offset(self) -> Offset:
        """Return the offset below which all records are replicated and all transactions decided."""
        unstable = self._first_unstable_offset
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    def update_high_watermark(self, offset: Offset) -> Offset:
        """Set the high watermark to `offset`, bounded by log start and log end; return the new value."""
        self.high_watermark = max(self.log_start_offset, min(offset, self.log_end_offset))
        self.producers.on_high_watermark_updated(self.high_watermark)
        self.update_first_unstable_offset()
        return self.high_watermark

    def increment_log_start_offset(self, offset: Offset) -> bool:
        """Raise the log start to `offset`; return False if it is already at or above `offset`.

        Raises OffsetOutOfRangeError above the high watermark.
        """
        if offset > self.high_watermark:
            raise OffsetOutOfRangeError(
                f"{self.directory}: the log cannot start at {offset}, above the high watermark {self.high_watermark}"
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.local.recovery_point = max(self.local.recovery_point, offset)
        if self.epochs is not None:
            self.epochs.truncate_from_start(offset)
        self.producers.on_log_start_offset_incremented(offset)
        self.update_first_unstable_offset()
        return True

    def assign_epoch_start(self, leader_epoch: LeaderEpoch, start_offset: Offset) -> None:
        """Record that `leader_epoch` begins at `start_offset`, before its leader has appended a batch."""
        if self.epochs is not None:
            self.epochs.assign(leader_epoch, start_offset)

    def update_first_unstable_offset(self) -> None:
        """Update the first offset of the open transactions, which bounds the last stable offset.

        An open transaction that began below the log start counts from the log start; if no batch is left there, from
        the log's end.
        """
        # Kafka keeps the answer too, and not only for speed: a truncation does not ask again, so the old answer holds
        # until the next append or high watermark.
        first, start = self.producers.first_unstable_offset, self.log_start_offset
        if first is not None and first < start:
            # At the end there is nothing to look for, and no index file of an empty segment to be made by looking.
            later = self.local.segments.between(start) if start < self.log_end_offset else ()
            has_data = any(segment.translate_offset(start) is not None for segment in later)
            first = start if has_data else self.log_end_offset
        self._first_unstable_offset = first
