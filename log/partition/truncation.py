"""Truncate a log: to an offset within it, or fully.

What it decides: what a truncation takes along: segments, producer snapshots, leader epochs, and the log start and the
high watermark where they would lie outside.

Constraints: a batch that the offset lies in goes whole; the next append is at the offset all the same.

Example: a log from 0 to 50, batches of 10; to(45) leaves the batches up to 40, and the log ends at 45.

Source: kafka.log.UnifiedLog.{truncateTo,truncateFullyAndStartAt}, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from broker.ids import Offset
from broker.units import TimeMs
from log.errors import IllegalArgumentError
from log.partition.log_offsets import LogOffsets
from log.partition.producer_rebuild import RebuildRequest, rebuild_producer_state
from log.partition.recovery import delete_producer_snapshots


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
            if log.epochs is not None:
                log.epochs.truncate_from_end(log.log_end_offset)
            return False
        if log.local.segments.first.base_offset > offset:
            self.fully_and_start_at(offset, now_ms=now_ms)
            return True
        gone = log.local.truncate_to(offset, now_ms=now_ms)
        delete_producer_snapshots(log.local, log.producers, gone, now_ms=now_ms)
        if log.epochs is not None:
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
        if log.epochs is not None:
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
            magic=log.local.config.magic,
            had_clean_shutdown=False,
            now_ms=now_ms,
        )
        rebuild_producer_state(log.producers, log.local.segments, request)
