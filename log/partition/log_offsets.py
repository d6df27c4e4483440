"""Hold the offsets of a log, with its segments, producers and leader epochs; describe and check a log.

Source: org.apache.kafka.storage.internals.log.{UnifiedLog,LocalLog,LogSegment}, 4.3.1; kafka.log.UnifiedLog, 3.9.1.
"""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise
from typing import Final

import attrs

from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.releases import Release
from broker.units import SizeBytes, TimeMs
from log.errors import OffsetOutOfRangeError
from log.partition.epoch_cache import LeaderEpochCache
from log.partition.local_log import LocalLog
from log.partition.producer_entry import ProducerEntry
from log.partition.producer_state import ProducerState
from log.record import TimestampOffset
from log.segments.rolling import fits_relative
from log.segments.segment import Segment
from log.storage.checkpoints import EpochEntry
from log.storage.protocol import Storage

AT_LOG_END: Final = Offset(0)  # Whatever lies below the log's end means the end.


class Flushing:
    """Roll and flush one log."""

    __slots__ = ("_log",)

    def __init__(self, log: LogOffsets) -> None:
        self._log = log

    def roll(self, *, now_ms: TimeMs, expected_next_offset: Offset = AT_LOG_END) -> Segment:
        """Begin a new active segment and return it; the schedule flushes the rolled one later."""
        log = self._log
        segment = log.local.roll(expected_next_offset, now_ms=now_ms)
        log.producers.update_map_end_offset(segment.base_offset)
        snapshot = log.producers.take_snapshot(sync=False)

        def flush_rolled(task_ms: TimeMs) -> None:
            # The snapshot may be gone by now: deleted along with its segment, or by a truncation.
            if snapshot is not None and log.storage.exists(snapshot):
                with closing(log.storage.open(snapshot)) as file:
                    file.sync()
            self._flush_to(segment.base_offset, end_offset=segment.base_offset, now_ms=task_ms)

        log.local.schedule.add(now_ms, flush_rolled)
        return segment

    def flush(self, *, now_ms: TimeMs, include_active_end: bool = False) -> None:
        """Flush the log up to its end; `include_active_end` includes an empty active segment."""
        end_offset = self._log.log_end_offset
        self._flush_to(end_offset, end_offset=Offset(end_offset + include_active_end), now_ms=now_ms)

    def flush_if_due(self, now_ms: TimeMs) -> None:
        """Flush if flush.ms have passed since the last flush."""
        local = self._log.local
        if now_ms - local.flushed_ms >= local.config.flush_ms:
            self.flush(now_ms=now_ms)

    def _flush_to(self, recovery_point: Offset, *, end_offset: Offset, now_ms: TimeMs) -> None:
        local = self._log.local
        if end_offset > local.recovery_point:
            local.flush(end_offset)
            local.mark_flushed(recovery_point, now_ms=now_ms)


BASE_OFFSETS_SINCE: Final = Release("4.0")
"""Since then a look-up of an offset answers with the base offset of its batch: LogSegment.read."""


class LogOffsets:
    """Hold the offsets, segments, producers and leader epochs of a log.

    `log_start_offset` is the first offset that can be read, `high_watermark` the one below which all records are
    replicated to the ISR, `topic_id` that of partition.metadata, None without one.
    """

    def __init__(self, local: LocalLog, producers: ProducerState, epochs: LeaderEpochCache) -> None:
        self.local = local
        self.producers = producers
        self.epochs = epochs
        self.log_start_offset = Offset(0)
        self.high_watermark = Offset(0)
        self.topic_id: str | None = None
        self._first_unstable_offset: Offset | None = None
        self._is_high_watermark_placed = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.directory!r}, {self.log_start_offset} to {self.log_end_offset})"

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
        self._set_high_watermark(
            max(self.log_start_offset, min(offset, self.log_end_offset)), is_placed=offset >= self.log_end_offset
        )
        return self.high_watermark

    def placed_high_watermark(self) -> Offset:
        """Return the high watermark for a consumer's read, which first looks up where it stands in the file.

        Since Kafka 4.0 the high watermark then is the base offset of the batch found, for all from then on.
        """
        if not self._is_high_watermark_placed:
            self._set_high_watermark(self._looked_up(self.high_watermark), is_placed=True)
        return self.high_watermark

    def _set_high_watermark(self, offset: Offset, *, is_placed: bool) -> None:
        self.high_watermark = offset
        self._is_high_watermark_placed = is_placed
        self.producers.on_high_watermark_updated(offset)
        self.update_first_unstable_offset()

    def _looked_up(self, offset: Offset) -> Offset:
        """Return the offset that a look-up of `offset` in the segments answers with.

        That is the base offset of the batch found, since Kafka 4.0 (before, `offset` itself); the log's end if no
        batch is left at or after `offset`, which is not below the first segment.
        """
        segments = self.local.segments
        segment = segments.floor(offset)
        if offset >= self.log_end_offset:
            # At the end there is nothing to look for, and no index file of an empty segment to be made by looking.
            return offset
        while segment is not None:
            found = segment.translate_offset(offset)
            if found is not None:
                answers_base = self.local.config.release >= BASE_OFFSETS_SINCE
                return segment.batch_at(found.position).base_offset if answers_base else offset
            segment = segments.higher(segment.base_offset)
        return self.log_end_offset

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
        self.epochs.truncate_from_start(offset)
        self.producers.on_log_start_offset_incremented(offset)
        self.update_first_unstable_offset()
        return True

    def assign_epoch_start(self, leader_epoch: LeaderEpoch, start_offset: Offset) -> None:
        """Record that `leader_epoch` begins at `start_offset`, before its leader has appended a batch."""
        self.epochs.assign(leader_epoch, start_offset)

    def update_first_unstable_offset(self) -> None:
        """Update the first offset of the open transactions, which bounds the last stable offset.

        One below the log start counts from the log start; and where its place in the file is not known, that is looked
        up, as for the high watermark.
        """
        # Kafka keeps the answer too, and not only for speed: a truncation does not ask again, so the old answer holds
        # until the next append or high watermark.
        first, start = self.producers.first_unstable_offset, self.log_start_offset
        if first is not None and (first < start or not self.producers.is_first_unstable_placed):
            first = self._looked_up(max(first, start))
        self._first_unstable_offset = first


def check_offsets(state: LogDescription) -> None:
    """Assert that a log's start, high watermark, last stable offset, recovery point and end are in order."""
    # The high watermark and the last stable offset may lie below a log start that is inside a batch: see LogOffsets.
    assert state.segments[0].base_offset <= state.high_watermark <= state.log_end_offset, state
    assert state.log_start_offset <= state.log_end_offset, state
    assert state.last_stable_offset <= state.high_watermark, state
    assert state.recovery_point <= state.log_end_offset, state
    assert state.segments, state
    assert state.segments[0].base_offset <= state.log_end_offset, state


def check_segments(segments: tuple[Segment, ...], start_offset: Offset, end_offset: Offset) -> None:
    """Assert that the segments of a log from `start_offset` to `end_offset` are in order, and each of them sound.

    Those below the start wait for deletion and may be damaged: recovery begins at the recovery point, which rises with
    the log start though nothing was flushed (UnifiedLog.updateLogStartOffset, 4.3.1).
    """
    for segment, following in pairwise(segments):
        assert segment.base_offset < following.base_offset, (segment, following)
    for index, segment in enumerate(segments):
        assert segment.suffix == "", segment
        is_active = index + 1 == len(segments)
        segment_end = end_offset if is_active else segments[index + 1].base_offset
        if is_active or segment_end > start_offset:
            check_segment(segment, segment_end)


def check_segment(segment: Segment, end_offset: Offset) -> None:
    """Assert that the batches of a segment lie between its base and `end_offset`, and that its indexes are sound."""
    positions: dict[int, int] = {}
    next_offset, position = int(segment.base_offset), 0
    for batch in segment.batches():
        assert batch.position == position, (segment, batch.position, position)
        assert batch.base_offset >= next_offset, (segment, batch.base_offset, next_offset)
        assert fits_relative(segment.base_offset, batch.last_offset), (segment, batch.last_offset)
        next_offset, position = batch.next_offset, batch.end_position
        positions[batch.position] = batch.last_offset
    assert position == segment.size_bytes, (segment, position)
    assert next_offset <= max(end_offset, segment.base_offset), (segment, next_offset, end_offset)
    check_indexes(segment, positions)


def check_indexes(segment: Segment, last_offset_by_position: dict[int, int]) -> None:
    """Assert that index entries ascend, and that each points to the batch of its offset or an earlier one."""
    entries = segment.offset_index.entries()
    previous = (segment.base_offset - 1, -1)
    for offset, position in zip(entries.offsets.tolist(), entries.positions.tolist(), strict=True):
        assert offset > previous[0], (segment, offset, position)
        assert position > previous[1], (segment, offset, position)
        assert position in last_offset_by_position, (segment, offset, position)
        assert last_offset_by_position[position] <= offset, (segment, offset, position)
        found = segment.translate_offset(Offset(offset))
        assert found is not None, (segment, offset)
        assert found.last_offset >= offset, (segment, offset, found)
        previous = (offset, position)
    times = segment.time_index.entries()
    last = (-1, -1)
    for timestamp, offset in zip(times.timestamps.tolist(), times.offsets.tolist(), strict=True):
        assert timestamp > last[0], (segment, timestamp, offset)
        assert offset >= last[1], (segment, timestamp, offset)
        last = (timestamp, offset)


def check_epochs(epochs: LeaderEpochCache, end_offset: Offset) -> None:
    """Assert that the leader epochs ascend, and that none begins above the log's end."""
    epochs.check_invariants()
    assert all(entry.start_offset <= end_offset for entry in epochs.entries), (epochs.entries, end_offset)


@attrs.frozen
class SegmentState:
    """Describe one segment: sizes, entries, largest timestamp and that record's offset, or (-1, base offset)."""

    base_offset: Offset
    size_bytes: SizeBytes
    offset_entry_count: int
    time_entry_count: int
    max_timestamp: TimestampOffset


@attrs.frozen
class ProducerView:
    """Describe the state of one producer in a log; unknown numbers are -1, no open transaction is None."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    last_sequence: int
    last_data_offset: Offset
    last_offset_delta: int
    last_timestamp: TimeMs
    coordinator_epoch: int
    current_txn_first_offset: Offset | None

    @classmethod
    def of(cls, entry: ProducerEntry) -> ProducerView:
        """Return the current state of `entry`."""
        return cls(*(getattr(entry, field.name) for field in attrs.fields(cls)))


@attrs.frozen(kw_only=True)
class LogDescription:
    """Describe a log at one moment; `log_end_offset` is the offset of the next record."""

    log_start_offset: Offset
    log_end_offset: Offset
    high_watermark: Offset
    last_stable_offset: Offset
    recovery_point: Offset
    segments: tuple[SegmentState, ...]
    leader_epochs: tuple[EpochEntry, ...]
    producers: tuple[ProducerView, ...]


def describe(log: LogOffsets) -> LogDescription:
    """Return the current description of `log`."""
    return LogDescription(
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        recovery_point=log.local.recovery_point,
        segments=tuple(
            SegmentState(
                segment.base_offset,
                segment.size_bytes,
                segment.offset_index.entry_count,
                segment.time_index.entry_count,
                segment.max_timestamp,
            )
            for segment in log.local.segments
        ),
        leader_epochs=log.epochs.entries,
        producers=tuple(map(ProducerView.of, log.producers.producers)),
    )
