"""Append to a log: as its leader, as a follower, or many batches at once.

Source: kafka.log.UnifiedLog.append, 4.3.1.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from broker.config import LONG_MAX
from broker.ids import LeaderEpoch, Offset
from broker.units import SizeBytes, TimeMs
from broker.values import value
from log.batches.build import BatchSpec
from log.batches.build_columns import PlainColumns, each_run
from log.batches.record_columns import BatchRun
from log.errors import RecordBatchTooLargeError, UnexpectedAppendOffsetError
from log.partition.leader_append import LeaderAppend, assigned
from log.partition.log_offsets import Flushing, LogOffsets
from log.partition.producer_append import REPLICATED_MARKER, AppendOrigin, MarkerRule
from log.partition.record_set import AppendLimits, RecordSet, read_record_set, too_large
from log.partition.segment_recovery import settle
from log.record import NO_TIMESTAMP, TimestampOffset
from log.segments.rolling import PendingAppend, count_before_roll, new_base_offset, should_roll
from log.segments.segment import Segment
from log.storage.protocol import Buffer

NOTHING_APPENDED: Final = Offset(-1)
NO_EPOCH: Final = LeaderEpoch(-1)
# Named once, as in `log.batches.in_buffer`.
_RAFT_LEADER: Final = AppendOrigin.RAFT_LEADER
_REPLICATION: Final = AppendOrigin.REPLICATION


@value(kw_only=True)
class AppendInfo:
    """Hold the outcome of an append; a duplicate is not written again and keeps the offsets in the log.

    `max_timestamp` is that of the set appended; `log_append_time_ms` is -1 unless this log's leader stamps its clock.
    """

    first_offset: Offset
    last_offset: Offset
    max_timestamp: TimestampOffset
    log_append_time_ms: TimeMs
    log_start_offset: Offset
    is_duplicate: bool = False


class Appending:
    """Append to one log."""

    __slots__ = ("_flushing", "_local", "_log")

    def __init__(self, log: LogOffsets, flushing: Flushing) -> None:
        self._log, self._local = log, log.local
        self._flushing = flushing

    def as_leader(
        self,
        records: Buffer,
        *,
        leader_epoch: LeaderEpoch,
        now_ms: TimeMs,
        origin: AppendOrigin,
        transaction_version: int | None,
    ) -> AppendInfo:
        """Append a record set and assign its offsets and leader epoch; do not write a producer's retry again.

        Raises RefusedError, CorruptBatchError, as `log.partition.record_set`, `log.partition.leader_append`,
        `log.partition.producer_state` do.
        """
        raft = origin is _RAFT_LEADER
        markers = MarkerRule(transaction_version, self._local.config.release)
        record_set = self._read_records(records, origin, leader_epoch, self._local.config.message_size_bytes_max)
        if record_set is None:
            return self._append_info(None)
        if raft:
            return self._append(record_set, origin, now_ms, markers)
        append = LeaderAppend(
            config=self._local.config,
            origin=origin,
            next_offset=self._local.end_offset,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            where=self._local.directory,
        )
        stamped = assigned(record_set, append)
        for batch in stamped.batches:
            if batch.size_bytes > self._local.config.message_size_bytes_max:
                raise too_large(batch.size_bytes, self._local.config.message_size_bytes_max, self._local.directory)
        return self._append(stamped, origin, now_ms, markers)

    def as_follower(self, records: Buffer, *, now_ms: TimeMs) -> AppendInfo:
        """Append batches as the leader wrote them. Raises OffsetsOutOfOrderError, UnexpectedAppendOffsetError, ..."""
        record_set = self._read_records(records, _REPLICATION, NO_EPOCH, None)
        if record_set is None:
            return self._append_info(None)
        return self._append(record_set, _REPLICATION, now_ms)

    def _read_records(
        self, records: Buffer, origin: AppendOrigin, leader_epoch: LeaderEpoch, size_bytes_max: SizeBytes | None
    ) -> RecordSet | None:
        limits = AppendLimits(
            origin=origin,
            batch_size_bytes_max=size_bytes_max,
            leader_epoch=leader_epoch,
            where=self._local.directory,
        )
        return read_record_set(records, limits)

    def _append(
        self, records: RecordSet, origin: AppendOrigin, now_ms: TimeMs, markers: MarkerRule = REPLICATED_MARKER
    ) -> AppendInfo:
        """Append a set that has its offsets."""
        local = self._local
        if records.first_known_offset < local.end_offset:
            raise UnexpectedAppendOffsetError(
                f"{self._local.directory}: an append begins at offset {records.first_known_offset}, below the next one "
                f"{local.end_offset}"
            )
        self._assign_epochs(records)
        if records.size_bytes > local.config.segment_size_bytes:
            raise RecordBatchTooLargeError(
                f"{self._local.directory}: a record set of {records.size_bytes} bytes is larger than segment.bytes, "
                f"{local.config.segment_size_bytes}"
            )
        segment = self._segment_for(records, now_ms)
        analysis = self._log.producers.analyze(records.batches, origin, markers)
        if analysis.duplicate is not None:
            duplicate = analysis.duplicate
            return AppendInfo(
                first_offset=duplicate.first_offset,
                last_offset=duplicate.last_offset,
                max_timestamp=records.max_timestamp,
                log_append_time_ms=duplicate.timestamp,
                log_start_offset=self._log.log_start_offset,
                is_duplicate=True,
            )
        segment.append(
            records.data,
            last_offset=records.last_offset,
            max_timestamp=records.max_timestamp,
            batches=records.batches,
        )
        settle(segment, self._log.producers, analysis, is_appended=True)
        self._ends_at(Offset(records.last_offset + 1), now_ms)
        # Only a leader that gives offsets stamps; what a follower takes has the times of its leader's clock already.
        stamped_ms = NO_TIMESTAMP if origin in (_REPLICATION, _RAFT_LEADER) else now_ms
        return self._append_info(records, stamped_ms)

    def _ends_at(self, end_offset: Offset, now_ms: TimeMs) -> None:
        """Note that all up to `end_offset` is written, and flush if that is due."""
        local = self._local
        local.end_offset = end_offset
        self._log.producers.update_map_end_offset(end_offset)
        self._log.update_first_unstable_offset()
        if end_offset - local.recovery_point >= local.config.flush_messages:
            self._flushing.flush(now_ms=now_ms)

    def columns(self, spec: BatchSpec, records: PlainColumns, records_per_batch: int, *, now_ms: TimeMs) -> AppendInfo:
        """Append records as a follower would append the batches of `build_batches` one by one.

        Many batches are written at once, where the outcome is the same. Raises what `build_batches` raises, and then
        nothing is written; or what `append_as_follower` raises, and then the batches before the refused one are in the
        log. Where the storage refuses, what is in the log is known after it is opened again.
        """
        next_offset, largest = spec.base_offset, TimestampOffset(NO_TIMESTAMP, -1)
        for run in each_run(spec, records, records_per_batch):
            self._append_run(run, spec, next_offset, now_ms)
            next_offset = Offset(int(run.last_offsets[-1]) + 1)
            if run.largest_timestamp.timestamp > largest.timestamp:
                largest = run.largest_timestamp
        if not len(records):
            return self._append_info(None)
        return AppendInfo(
            first_offset=spec.base_offset,
            last_offset=Offset(next_offset - 1),
            max_timestamp=largest,
            log_append_time_ms=NO_TIMESTAMP,
            log_start_offset=self._log.log_start_offset,
        )

    def _append_run(self, run: BatchRun, spec: BatchSpec, next_offset: Offset, now_ms: TimeMs) -> None:
        """Append batches of `spec` from `next_offset` on."""
        while len(run):  # Each turn takes one batch at least.
            count = 0 if spec.producer_id >= 0 else self._count_at_once(run, next_offset, now_ms)
            if count == 0:  # The first one is a producer's, rolls the segment, or is refused.
                count = 1
                self.as_follower(run.rows(0, count).data, now_ms=now_ms)
            else:
                self._log.epochs.assign(spec.partition_leader_epoch, next_offset)
                self._local.segments.active.append_run(run.rows(0, count))
                self._ends_at(Offset(int(run.last_offsets[count - 1]) + 1), now_ms)
            next_offset = self._local.end_offset
            run = run.rows(count, len(run))

    def _count_at_once(self, run: BatchRun, next_offset: Offset, now_ms: TimeMs) -> int:
        """Return how many batches may be appended by one write: up to a roll, up to a flush, none if refused."""
        local = self._local
        if next_offset < local.end_offset:
            return 0
        last_unflushed = min(LONG_MAX, local.recovery_point + local.config.flush_messages - 1)
        up_to_flush = int(np.searchsorted(run.last_offsets, last_unflushed)) + 1
        return min(up_to_flush, count_before_roll(local.segments.active, run, local.config, now_ms))

    def _append_info(self, records: RecordSet | None, now_ms: TimeMs = NO_TIMESTAMP) -> AppendInfo:
        first_offset = NOTHING_APPENDED if records is None or records.first_offset is None else records.first_offset
        return AppendInfo(
            first_offset=first_offset,
            last_offset=NOTHING_APPENDED if records is None else records.last_offset,
            max_timestamp=TimestampOffset(NO_TIMESTAMP, -1) if records is None else records.max_timestamp,
            log_append_time_ms=now_ms if self._local.config.stamps_log_append_time else NO_TIMESTAMP,
            log_start_offset=self._log.log_start_offset,
        )

    def _assign_epochs(self, records: RecordSet) -> None:
        epochs = self._log.epochs
        for batch in records.batches:
            if batch.magic >= 2:
                epochs.assign(batch.partition_leader_epoch, batch.base_offset)
            elif epochs.latest_epoch is not None:
                epochs.clear()  # Messages without epochs: what is known does not hold for them.

    def _segment_for(self, records: RecordSet, now_ms: TimeMs) -> Segment:
        """Return the segment that `records` goes into, a new one if need be."""
        active = self._local.segments.active
        pending = PendingAppend(
            records.size_bytes, TimeMs(records.max_timestamp.timestamp), records.last_offset, now_ms
        )
        if not should_roll(active, pending, self._local.config):
            return active
        return self._flushing.roll(
            now_ms=now_ms, expected_next_offset=new_base_offset(records.first_offset, records.last_offset)
        )
