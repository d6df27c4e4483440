"""What is known of a log: its parts, and the offsets on which they agree.

Decides where a log starts and ends, up to where it is replicated, stable and on disk; and what a new start or high
watermark means to its leader epochs and producers.

Constraints: those of `log.partition.log_invariants`, at every moment. The high watermark starts at the log start and
is told by the replication; the log start only grows, but for a cut below it.

Example: a log from 0 to 10 with high watermark 8 and a transaction open since 5 has the last stable offset 5.

Left out: what changes files, see `log.partition.log_upkeep`.

Source: kafka.log.UnifiedLog, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from broker.ids import LeaderEpoch, Offset
from broker.units import SizeBytes
from log.errors import OffsetOutOfRangeError
from log.partition.epoch_cache import LeaderEpochCache
from log.partition.local_log import LocalLog
from log.partition.log_invariants import check_epochs, check_offsets, check_segments
from log.partition.log_state import LogState, ProducerView, SegmentState
from log.producers.state import ProducerState
from log.segments.segment import Segment
from log.storage.protocol import Storage


class LogOffsets:
    """A log's files, producers and leader epochs, and its offsets; `epochs` is None where it writes magic 0 or 1."""

    def __init__(self, local: LocalLog, producers: ProducerState, epochs: LeaderEpochCache | None) -> None:
        self.local = local
        self.producers = producers
        self.epochs = epochs
        self.log_start_offset = Offset(0)
        self.high_watermark = Offset(0)
        self.topic_id: str | None = None
        self._first_unstable_offset: Offset | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.directory!r}, {self.log_start_offset} to {self.log_end_offset})"

    @property
    def storage(self) -> Storage:
        """Where the log is kept."""
        return self.local.storage

    @property
    def directory(self) -> str:
        """The log's directory in its storage."""
        return self.local.directory

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Every segment, by base offset; the last one is active."""
        return self.local.segments.all

    @property
    def active_segment(self) -> Segment:
        """The segment that is appended to."""
        return self.local.segments.active

    @property
    def size_bytes(self) -> SizeBytes:
        """Bytes of all log files."""
        return self.local.segments.size_bytes

    @property
    def log_end_offset(self) -> Offset:
        """The next offset to be written."""
        return self.local.end_offset

    @property
    def recovery_point(self) -> Offset:
        """All below this offset is known to be on disk."""
        return self.local.recovery_point

    @property
    def last_stable_offset(self) -> Offset:
        """All below this offset is replicated, and no transaction in it is undecided."""
        unstable = self._first_unstable_offset
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    def update_high_watermark(self, offset: Offset) -> Offset:
        """Set the high watermark, kept within the log; return what it is now."""
        self.high_watermark = max(self.log_start_offset, min(offset, self.log_end_offset))
        self.producers.on_high_watermark_updated(self.high_watermark)
        self._update_first_unstable_offset()
        return self.high_watermark

    def increment_log_start_offset(self, offset: Offset) -> bool:
        """Let the log begin at `offset`, and tell whether that is new.

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
        self._update_first_unstable_offset()
        return True

    def assign_epoch_start(self, leader_epoch: LeaderEpoch, start_offset: Offset) -> None:
        """Note that a leader begins its epoch at `start_offset`, before it has appended anything."""
        if self.epochs is not None:
            self.epochs.assign(leader_epoch, start_offset)

    def _update_first_unstable_offset(self) -> None:
        """Look up what holds back the last stable offset. Kafka keeps the answer too, and not only for speed:

        a truncation does not ask again, so until the next append or high watermark the old answer holds.
        A transaction that began below the log's start holds back from there on, or nobody if no batch is left there.
        """
        first, start = self.producers.first_unstable_offset, self.log_start_offset
        if first is not None and first < start:
            # At the end there is nothing to look for, and no index file of an empty segment to be made by looking.
            later = self.local.segments.between(start) if start < self.log_end_offset else ()
            has_data = any(segment.translate_offset(start) is not None for segment in later)
            first = start if has_data else self.log_end_offset
        self._first_unstable_offset = first

    def state(self) -> LogState:
        """Return what can be seen of the log."""
        return LogState(
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            high_watermark=self.high_watermark,
            last_stable_offset=self.last_stable_offset,
            recovery_point=self.recovery_point,
            segments=tuple(
                SegmentState(
                    segment.base_offset,
                    segment.size_bytes,
                    segment.offset_index.entry_count,
                    segment.time_index.entry_count,
                    segment.max_timestamp,
                )
                for segment in self.segments
            ),
            leader_epochs=None if self.epochs is None else self.epochs.entries,
            producers=tuple(map(ProducerView.of, self.producers.producers)),
        )

    def check_invariants(self) -> None:
        """Assert what always holds; see `log.partition.log_invariants`."""
        check_offsets(self.state())
        check_segments(self.segments, self.log_end_offset)
        check_epochs(self.epochs, self.log_end_offset)
