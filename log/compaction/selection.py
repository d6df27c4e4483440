"""Choose the range of a log that can be cleaned now, and the log to clean next.

- Nothing at or above the last stable offset, nothing of the active segment, and nothing of or behind the first dirty
  segment that holds a message younger than min.compaction.lag.ms is touched; the bound is rounded down to the base of
  a segment, so an open transaction in the middle of a segment keeps that whole segment as it is.
- A log is cleaned when its dirty share is strictly above min.cleanable.dirty.ratio, or when there is something to
  clean and a dirty segment began longer ago than max.compaction.lag.ms.
- A checkpoint below the start of the log or above its end is of no use: the log is dirty from its start, and the
  checkpoint is to be corrected, whether the log is cleaned or not.
- Among several logs the largest share goes first, also before one whose lag is over; of equals the first one given.

Source: kafka.log.LogCleanerManager (cleanableOffsets, calculateCleanableBytes,
maxCompactionDelay, grabFilthiestCompactedLog) and LogToClean, 4.3.1; KIP-354 for the maximum lag.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from broker.ids import Offset
from broker.units import DurationMs, SizeBytes, TimeMs
from log.partition.partition_log import PartitionLog
from log.segments.segment import Segment

BEFORE_LOG: Final = Offset(-1)


@attrs.frozen(kw_only=True)
class LogToClean:
    """Hold the dirty range of `log`, and the bytes of its clean and its cleanable dirty segments."""

    log: PartitionLog
    first_dirty_offset: Offset
    first_uncleanable_offset: Offset
    """The lowest of the bounds, never below `first_dirty_offset`."""
    end_offset: Offset
    """That bound rounded down to the base of a segment: where a pass ends if its map holds all keys."""
    clean_bytes: SizeBytes
    cleanable_bytes: SizeBytes
    is_overdue: bool
    """Whether a dirty segment began longer ago than max.compaction.lag.ms."""
    resets_checkpoint: bool
    """Whether the checkpoint lies outside the log, so that `first_dirty_offset` is to replace it."""

    @property
    def cleanable_ratio(self) -> float:
        """Return dirty bytes over all cleanable bytes, 0.0 to 1.0; NaN for a log without bytes, as in Java."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else math.nan

    @property
    def is_due(self) -> bool:
        """Return whether the log is due for cleaning; False for a log without bytes."""
        overdue = self.is_overdue and self.cleanable_bytes > 0
        return overdue or self.cleanable_ratio > self.log.config.min_cleanable_dirty_ratio


def log_to_clean(log: PartitionLog, checkpoint: Offset | None, *, now_ms: TimeMs) -> LogToClean:
    """Return the cleanable range of `log` now; `checkpoint` is the end of the last pass, None if there was none."""
    first_dirty = log.log_start_offset if checkpoint is None else checkpoint
    resets = not log.log_start_offset <= first_dirty <= log.log_end_offset
    if resets:
        first_dirty = log.log_start_offset
    dirty = _rolled_from(log, first_dirty)
    bound = max(first_dirty, _first_uncleanable_offset(log, dirty, now_ms))
    # Cleaning ends between two segments: the one that the bound lies in stays whole.
    end_offset = next((segment.base_offset for segment in _rolled_from(log, bound)), log.active_segment.base_offset)
    return LogToClean(
        log=log,
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=bound,
        end_offset=end_offset,
        clean_bytes=_size_bytes(log.local.segments.between(BEFORE_LOG, first_dirty)),
        cleanable_bytes=_size_bytes(log.local.segments.between(min(first_dirty, end_offset), end_offset)),
        is_overdue=_overdue_ms(dirty, log.config.max_compaction_lag_ms, now_ms) > 0,
        resets_checkpoint=resets,
    )


def filthiest(candidates: Iterable[LogToClean]) -> LogToClean | None:
    """Return the due log with the largest dirty share, the first of equals; None if no log is due."""
    due = [candidate for candidate in candidates if candidate.is_due]
    return max(due, key=lambda candidate: candidate.cleanable_ratio, default=None)


def _first_uncleanable_offset(log: PartitionLog, dirty: Sequence[Segment], now_ms: TimeMs) -> Offset:
    """Return the lowest of the three bounds; `dirty` are the rolled segments with dirty offsets."""
    bounds = [log.last_stable_offset, log.active_segment.base_offset]
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        young = (segment.base_offset for segment in dirty if segment.largest_timestamp_ms > now_ms - lag_ms)
        bounds.extend(base_offset for base_offset in [next(young, None)] if base_offset is not None)
    return min(bounds)


def _overdue_ms(dirty: Sequence[Segment], lag_ms_max: DurationMs, now_ms: TimeMs) -> int:
    """Return for how long the oldest of the `dirty` segments should have been cleaned, 0 if it need not be yet."""
    dated = [segment.first_timestamp_ms for segment in dirty if segment.first_timestamp_ms > 0]
    return max(0, now_ms - max(lag_ms_max, 0) - min(dated)) if dated else 0


def _rolled_from(log: PartitionLog, start_offset: Offset) -> tuple[Segment, ...]:
    """Return the segments from `start_offset` on, without the active one."""
    active_base_offset = log.active_segment.base_offset
    if start_offset > active_base_offset:
        return ()
    return log.local.segments.between(start_offset, active_base_offset)


def _size_bytes(segments: Iterable[Segment]) -> SizeBytes:
    return SizeBytes(sum(segment.size_bytes for segment in segments))
