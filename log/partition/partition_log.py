"""A partition's log: what leaders, followers and consumers do with it.

Decides what is appended, what can be read, what a log may forget, and what it owes to producers.

Goals, most important first
1. The bytes on disk and every answer are Kafka's, for the same calls at the same times.
2. A refused call changes nothing that can be read.
3. No hidden inputs: time is `now_ms`, chance is `entropy`, the disk is a `Storage`; work for later is done by
   `run_scheduled`, never by a thread.

Constraints (checked by `log.partition.log_invariants`)
- log start <= high watermark <= log end, last stable offset <= high watermark, recovery point <= log end.
- What is acknowledged is in the page cache; what lies below the recovery point is on disk. Power loss may take what is
  between, but leaves whole batches from the start on (`log.partition.recovery`). flush.messages, flush.ms and each
  roll flush.

How: a thin shell over pure rules. `log.partition.record_set`, `log.partition.leader_rules` and
`log.partition.leader_append` say what an append becomes, `log.segments.rolling` when a segment is full,
`log.partition.retention` what goes, `log.partition.reading` what is read, `log.producers.state` who may append,
`log.partition.epoch_cache` which leader wrote what; `log.partition.local_log` keeps the files.

Example: log = PartitionLog.open(storage, "topic-0", LogConfig(), now_ms=0); log.append_as_leader(batch,
leader_epoch=0, now_ms=0) gives its first record offset 0; log.update_high_watermark(1) shows it to consumers.

Left out: remote storage, verification of transactions (KIP-890), metrics.

Source: kafka.log.UnifiedLog, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from broker.config import LONG_MAX
from broker.ids import LeaderEpoch, Offset
from broker.units import SizeBytes, TimeMs
from log.batches.batch_run import BatchRun
from log.batches.build_columns import PlainColumns, each_run
from log.batches.build_spec import BatchSpec
from log.errors import (
    OffsetOutOfRangeError,
    RecordBatchTooLargeError,
    UnexpectedAppendOffsetError,
    UnsupportedForMessageFormatError,
)
from log.indexes.time_index import TimestampOffset
from log.partition.epoch_cache import EpochEndOffset
from log.partition.leader_append import assigned
from log.partition.leader_rules import LeaderAppend
from log.partition.log_state import AppendInfo
from log.partition.log_upkeep import LogUpkeep
from log.partition.producer_rebuild import settle
from log.partition.reading import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    FetchData,
    Isolation,
    OffsetPlace,
    ReadRequest,
    first_offset_since,
    offset_of_max_timestamp,
    place_of,
    read_log,
)
from log.partition.record_set import AppendLimits, RecordSet, read_record_set, too_large
from log.producers.append import AppendOrigin
from log.record import NO_TIMESTAMP
from log.segments.rolling import PendingAppend, count_before_roll, new_base_offset, should_roll
from log.segments.search import FoundOffset
from log.segments.segment import Segment
from log.storage.protocol import Buffer

NOTHING_APPENDED: Final = Offset(-1)
NO_EPOCH: Final = LeaderEpoch(-1)
# Named once, as in `log.batches.in_buffer`.
_RAFT_LEADER: Final = AppendOrigin.RAFT_LEADER
_REPLICATION: Final = AppendOrigin.REPLICATION
_LOG_END: Final = Isolation.LOG_END
_COMMITTED: Final = Isolation.COMMITTED


class PartitionLog(LogUpkeep):
    """One partition's log; `open` opens it. What keeps it in shape is inherited."""

    def append_as_leader(
        self, records: Buffer, *, leader_epoch: LeaderEpoch, now_ms: TimeMs, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> AppendInfo:
        """Append a record set, giving it offsets, epoch and perhaps times; a client's retry is recognised, not written.

        Raises RefusedError, CorruptBatchError, as `log.partition.record_set`, `log.partition.leader_rules`,
        `log.producers.state` do.
        """
        raft = origin is _RAFT_LEADER
        record_set = self._read_records(records, origin, leader_epoch, self.config.message_size_bytes_max)
        if record_set is None:
            return self._append_info(None)
        if raft:
            return self._append(record_set, origin, now_ms)
        append = LeaderAppend(
            config=self.config,
            origin=origin,
            next_offset=self.log_end_offset,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            where=self.directory,
        )
        stamped = assigned(record_set, append)
        for batch in stamped.batches:
            if batch.size_bytes > self.config.message_size_bytes_max:
                raise too_large(batch.size_bytes, self.config.message_size_bytes_max, self.directory)
        return self._append(stamped, origin, now_ms)

    def append_as_follower(self, records: Buffer, *, now_ms: TimeMs) -> AppendInfo:
        """Append batches as the leader wrote them. Raises OffsetsOutOfOrderError, UnexpectedAppendOffsetError, ..."""
        record_set = self._read_records(records, _REPLICATION, NO_EPOCH, None)
        if record_set is None:
            return self._append_info(None)
        return self._append(record_set, _REPLICATION, now_ms)

    def _read_records(
        self, records: Buffer, origin: AppendOrigin, leader_epoch: LeaderEpoch, size_bytes_max: SizeBytes | None
    ) -> RecordSet | None:
        limits = AppendLimits(
            origin=origin, batch_size_bytes_max=size_bytes_max, leader_epoch=leader_epoch, where=self.directory
        )
        return read_record_set(records, limits)

    def _append(self, records: RecordSet, origin: AppendOrigin, now_ms: TimeMs) -> AppendInfo:
        """Append a set that has its offsets."""
        local = self.local
        if records.first_known_offset < local.end_offset:
            raise UnexpectedAppendOffsetError(
                f"{self.directory}: an append begins at offset {records.first_known_offset}, below the next one "
                f"{local.end_offset}"
            )
        self._assign_epochs(records)
        if records.size_bytes > local.config.segment_size_bytes:
            raise RecordBatchTooLargeError(
                f"{self.directory}: a record set of {records.size_bytes} bytes is larger than segment.bytes, "
                f"{local.config.segment_size_bytes}"
            )
        segment = self._segment_for(records, now_ms)
        analysis = self.producers.analyze(records.batches, origin)
        if analysis.duplicate is not None:
            duplicate = analysis.duplicate
            return AppendInfo(
                first_offset=duplicate.first_offset,
                last_offset=duplicate.last_offset,
                max_timestamp=records.max_timestamp,
                log_append_time_ms=duplicate.timestamp,
                log_start_offset=self.log_start_offset,
                is_duplicate=True,
            )
        segment.append(records.data, last_offset=records.last_offset, max_timestamp=records.max_timestamp)
        settle(segment, self.producers, analysis)
        self._ends_at(Offset(records.last_offset + 1), now_ms)
        return self._append_info(records, now_ms)

    def _ends_at(self, end_offset: Offset, now_ms: TimeMs) -> None:
        """Note that all up to `end_offset` is written, and flush if that is due."""
        local = self.local
        local.end_offset = end_offset
        self.producers.update_map_end_offset(end_offset)
        self._update_first_unstable_offset()
        if end_offset - local.recovery_point >= local.config.flush_messages:
            self.flush(now_ms=now_ms)

    def append_columns(
        self, spec: BatchSpec, records: PlainColumns, records_per_batch: int, *, now_ms: TimeMs
    ) -> AppendInfo:
        """Append records as a follower appends one by one the batches that `build_batches` makes of them.

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
            log_append_time_ms=now_ms if self.config.stamps_log_append_time else NO_TIMESTAMP,
            log_start_offset=self.log_start_offset,
        )

    def _append_run(self, run: BatchRun, spec: BatchSpec, next_offset: Offset, now_ms: TimeMs) -> None:
        """Append batches of `spec` from `next_offset` on."""
        while len(run):  # Each turn takes one batch at least.
            count = 0 if spec.producer_id >= 0 else self._count_at_once(run, next_offset, now_ms)
            if count == 0:  # The first one is a producer's, rolls the segment, or is refused.
                count = 1
                self.append_as_follower(run.rows(0, count).data, now_ms=now_ms)
            else:
                if self.epochs is not None:
                    self.epochs.assign(spec.partition_leader_epoch, next_offset)
                self.local.segments.active.append_run(run.rows(0, count))
                self._ends_at(Offset(int(run.last_offsets[count - 1]) + 1), now_ms)
            next_offset = Offset(int(run.last_offsets[count - 1]) + 1)
            run = run.rows(count, len(run))

    def _count_at_once(self, run: BatchRun, next_offset: Offset, now_ms: TimeMs) -> int:
        """Return how many batches may be appended by one write: up to a roll, up to a flush, none if refused."""
        local = self.local
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
            log_append_time_ms=now_ms if self.config.stamps_log_append_time else NO_TIMESTAMP,
            log_start_offset=self.log_start_offset,
        )

    def _assign_epochs(self, records: RecordSet) -> None:
        epochs = self.epochs
        if epochs is None:
            return
        for batch in records.batches:
            if batch.magic >= 2:
                epochs.assign(batch.partition_leader_epoch, batch.base_offset)
            elif epochs.latest_epoch is not None:
                epochs.clear()  # Messages without epochs: what is known does not hold for them.

    def _segment_for(self, records: RecordSet, now_ms: TimeMs) -> Segment:
        """Return the segment that `records` goes into, a new one if need be."""
        active = self.local.segments.active
        pending = PendingAppend(
            records.size_bytes, TimeMs(records.max_timestamp.timestamp), records.last_offset, now_ms
        )
        if not should_roll(active, pending, self.local.config):
            return active
        return self.roll(now_ms=now_ms, expected_next_offset=new_base_offset(records.first_offset, records.last_offset))

    def read(
        self,
        start_offset: Offset,
        max_bytes: int,
        *,
        isolation: Isolation = Isolation.LOG_END,
        min_one_message: bool = True,
    ) -> FetchData:
        """Return a view of up to `max_bytes` from the batch that holds `start_offset` on.

        Raises OffsetOutOfRangeError below the log start and above the log end.
        """
        if start_offset < self.log_start_offset:
            raise OffsetOutOfRangeError(
                f"{self.directory}: offset {start_offset} is below the log start {self.log_start_offset}"
            )
        end = self.end_place
        is_committed = isolation is _COMMITTED
        limit = end
        if isolation is not _LOG_END:
            limit = place_of(self.local.segments, self.last_stable_offset if is_committed else self.high_watermark, end)
        request = ReadRequest(start_offset, max_bytes, min_one_message, is_committed)
        return read_log(self.local.segments, request, limit, end)

    @property
    def end_place(self) -> OffsetPlace:
        """The log's end, with the active segment and its size."""
        active = self.local.segments.active
        return OffsetPlace(self.log_end_offset, active.base_offset, active.size_bytes)

    def fetch_offset_by_timestamp(self, timestamp_ms: int) -> FoundOffset | None:
        """Return the first record at or after a time; -1 the log's end, -2 and -4 its start, -3 the latest record.

        Raises UnsupportedForMessageFormatError for a time in a log of magic 0.
        """
        epochs = self.epochs
        if timestamp_ms in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            earliest = None if epochs is None else epochs.earliest_entry
            covers = earliest is not None and earliest.start_offset <= self.log_start_offset
            return FoundOffset(NO_TIMESTAMP, self.log_start_offset, earliest.epoch if earliest and covers else None)
        if timestamp_ms == LATEST_TIMESTAMP:
            return FoundOffset(NO_TIMESTAMP, self.log_end_offset, None if epochs is None else epochs.latest_epoch)
        if self.config.magic == 0:
            raise UnsupportedForMessageFormatError(f"{self.directory}: messages of magic 0 have no time to search for")
        if timestamp_ms == MAX_TIMESTAMP:
            return offset_of_max_timestamp(self.local.segments)
        return first_offset_since(self.local.segments, timestamp_ms, self.log_start_offset)

    def end_offset_for_epoch(self, leader_epoch: LeaderEpoch) -> EpochEndOffset | None:
        """Return the largest epoch at or below `leader_epoch` and where it ends, None if that cannot be said."""
        return None if self.epochs is None else self.epochs.end_offset_for(leader_epoch, self.log_end_offset)
