"""Roll new segments, and flush written data to disk.

What it decides: what a roll and a flush write, and up to where the recovery point moves.

Goals, most important first:
1. What lies below the recovery point is on disk.
2. No threads: the flush that follows a roll waits in the log's schedule until its owner runs it.

Constraints: a roll writes a snapshot of the producers at the new segment's base, unsynced; the flush of the rolled
segment syncs it. An active segment that is empty is flushed only at a shutdown.

Example: end 40; roll() begins segment 40, and the next run of the schedule flushes what is below and moves the
recovery point to 40.

Source: kafka.log.UnifiedLog.{roll,flush}, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from contextlib import closing
from typing import Final

from broker.ids import Offset
from broker.units import TimeMs
from log.partition.log_offsets import LogOffsets
from log.segments.segment import Segment

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
