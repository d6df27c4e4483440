"""Delete the segments of a log that lie before its start, exceed its size limit, or are too old.

Only whole segments go, only the oldest: the first one that stays keeps all after it. No segment goes that ends above
the high watermark, nor an empty active one. The log keeps at least retention.bytes, and every segment whose newest
record is within retention.ms. Without "delete" in cleanup.policy only the log start counts. One record stamped far in
the future keeps its segment, and all behind it. A segment takes its producer snapshot and its leader epochs along.

Example: segments of 100, 100 and 50 bytes, retention.bytes 120: the excess is 130, so the first goes (30 are left,
less than the second holds), and 150 bytes stay.

Source: kafka.log.UnifiedLog.{deleteOldSegments,deletableSegments}, 4.3.1; KAFKA-5634 for the bound by the high
watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import attrs

from broker.ids import Offset
from broker.units import DurationMs, SizeBytes, TimeMs
from log.errors import IllegalArgumentError
from log.partition.log_offsets import Flushing, LogOffsets
from log.partition.recovery import delete_producer_snapshots
from log.partition.segment_recovery import RebuildRequest, rebuild_producer_state
from log.segments.segment import Segment


class Truncation:
    """Truncate one log."""

    __slots__ = ("_log",)

    def __init__(self, log: LogOffsets) -> None:
        self._log = log

    def to(self, offset: Offset, *, now_ms: TimeMs) -> bool:
        """Truncate the log to end at `offset`; return False if its end is already at or below `offset`.

        Raises IllegalArgumentError below 0.
        """
        log = self._log
        if offset < 0:
            raise IllegalArgumentError(f"{log.directory}: a log cannot be cut to the negative offset {offset}")
        if offset >= log.log_end_offset:
            log.epochs.truncate_from_end(log.log_end_offset)
            return False
        if log.local.segments.first.base_offset > offset:
            self.fully_and_start_at(offset, now_ms=now_ms)
            return True
        gone = log.local.truncate_to(offset, now_ms=now_ms)
        delete_producer_snapshots(log.local, log.producers, gone, now_ms=now_ms)
        log.epochs.truncate_from_end(offset)
        log.log_start_offset = min(offset, log.log_start_offset)
        self._rebuild_producers(offset, now_ms)
        # Only here: an unchanged high watermark must not ask for the first unstable offset again, as in Kafka.
        if log.high_watermark >= log.log_end_offset:
            log.update_high_watermark(log.log_end_offset)
        return True

    def fully_and_start_at(self, offset: Offset, *, now_ms: TimeMs, log_start_offset: Offset | None = None) -> None:
        """Delete every segment and begin anew at `offset`, which is also the log start unless one is given."""
        log = self._log
        log.local.truncate_fully_and_start_at(offset, now_ms=now_ms)
        log.epochs.clear()
        log.producers.truncate_fully_and_start_at(offset)
        log.log_start_offset = offset if log_start_offset is None else log_start_offset
        self._rebuild_producers(offset, now_ms)
        log.update_high_watermark(log.log_end_offset)

    def _rebuild_producers(self, last_offset: Offset, now_ms: TimeMs) -> None:
        log = self._log
        request = RebuildRequest(
            log_start_offset=log.log_start_offset,
            last_offset=last_offset,
            had_clean_shutdown=False,
            now_ms=now_ms,
        )
        rebuild_producer_state(log.producers, log.local.segments, request)


@attrs.frozen(kw_only=True)
class RetainedSegment:
    """Hold a segment's figures for retention; `end_offset` is the next base, or the log's end if active."""

    size_bytes: SizeBytes
    end_offset: Offset
    largest_timestamp_ms: TimeMs
    is_active: bool


Breach: TypeAlias = Callable[[RetainedSegment], bool]
"""A question to each segment in turn, oldest first: may it go?"""


def deletable_count(segments: Iterable[RetainedSegment], *, high_watermark: Offset, breach: Breach) -> int:
    """Return the count of the oldest segments to delete. Cost: linear in those deleted."""
    count = 0
    for segment in segments:
        is_empty_active = segment.is_active and segment.size_bytes == 0
        if high_watermark < segment.end_offset or not breach(segment) or is_empty_active:
            break
        count += 1
    return count


def before_start(log_start_offset: Offset) -> Breach:
    """Return a predicate: whether a segment lies wholly before the log start; False for the active segment."""
    return lambda segment: not segment.is_active and segment.end_offset <= log_start_offset


def beyond_size(log_size_bytes: SizeBytes, retention_bytes: SizeBytes) -> Breach:
    """Return a predicate: whether at least `retention_bytes` remain without a segment and all older ones."""
    excess_bytes = log_size_bytes - retention_bytes

    def breaches(segment: RetainedSegment) -> bool:
        nonlocal excess_bytes
        if excess_bytes < segment.size_bytes:
            return False
        excess_bytes -= segment.size_bytes
        return True

    return breaches


def too_old(now_ms: TimeMs, retention_ms: DurationMs) -> Breach:
    """Return a predicate: whether a segment's newest record is older than `retention_ms`; equal is not older."""
    return lambda segment: now_ms - segment.largest_timestamp_ms > retention_ms


class Retention:
    """Delete the old segments of one log."""

    __slots__ = ("_flushing", "_log")

    def __init__(self, log: LogOffsets, flushing: Flushing) -> None:
        self._log = log
        self._flushing = flushing

    def delete_old_segments(self, *, now_ms: TimeMs) -> int:
        """Delete segments before the log start or beyond retention.bytes or retention.ms; return their count."""
        log, config = self._log, self._log.local.config
        count = self._delete_breaching(before_start(log.log_start_offset), now_ms)
        if config.deletes and config.retention_bytes >= 0:
            count += self._delete_breaching(beyond_size(log.local.segments.size_bytes, config.retention_bytes), now_ms)
        if config.deletes and config.retention_ms >= 0:
            count += self._delete_breaching(too_old(now_ms, config.retention_ms), now_ms)
        return count

    def _delete_breaching(self, breach: Breach, now_ms: TimeMs) -> int:
        log, segments = self._log, self._log.local.segments.all
        count = deletable_count(self._retained(segments), high_watermark=log.high_watermark, breach=breach)
        if count == 0:
            return 0
        gone = segments[:count]
        if count == len(segments):
            self._flushing.roll(now_ms=now_ms)  # A log is never without an active segment.
        assert log.local.segments.active not in gone, gone
        next_segment = log.local.segments.higher(gone[-1].base_offset)
        assert next_segment is not None
        log.increment_log_start_offset(next_segment.base_offset)
        log.local.remove_and_delete(gone, now_ms=now_ms)
        delete_producer_snapshots(log.local, log.producers, gone, now_ms=now_ms)
        return count

    def _retained(self, segments: Sequence[Segment]) -> Iterator[RetainedSegment]:
        """Yield what retention asks of each segment, as far as it asks."""
        for index, segment in enumerate(segments):
            is_active = index + 1 == len(segments)
            yield RetainedSegment(
                size_bytes=segment.size_bytes,
                end_offset=self._log.log_end_offset if is_active else segments[index + 1].base_offset,
                largest_timestamp_ms=segment.largest_timestamp_ms,
                is_active=is_active,
            )
