"""Provide one partition's log to leaders, followers, consumers and the broker.

A log is its offsets (`LogOffsets`) and the parts that change them; each call goes to the part that does it. Time is
`now_ms`, chance is `entropy`, the disk is a `Storage`; work for later is done by `run_scheduled`, never by a thread.

Source: kafka.log.UnifiedLog, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Self

from broker.entropy import RandomSource
from broker.errors import RefusedError
from broker.ids import LeaderEpoch, Offset
from broker.units import SizeBytes, TimeMs
from log.batches.build import BatchSpec
from log.batches.build_columns import PlainColumns
from log.log_config import LogConfig
from log.partition.appending import AppendInfo, Appending
from log.partition.epoch_cache import EpochEndOffset, LeaderEpochCache
from log.partition.local_log import LocalLog
from log.partition.log_offsets import (
    AT_LOG_END,
    Flushing,
    LogDescription,
    LogOffsets,
    check_epochs,
    check_offsets,
    check_segments,
    describe,
)
from log.partition.producer_append import AppendOrigin
from log.partition.producer_state import ProducerState
from log.partition.reading import FetchData, Isolation, OffsetPlace, Reading, ReadRequest
from log.partition.recovery import CLEAN_SHUTDOWN, LastShutdown, delete_producer_snapshots, open_log
from log.partition.retention import Retention, Truncation
from log.segments.search import FoundOffset
from log.segments.segment import CLOSES_UNTRIMMED_SINCE, Segment
from log.storage.checkpoints import LEADER_EPOCH_FILE
from log.storage.protocol import Buffer, Storage

_COMMITTED: Final = Isolation.COMMITTED  # Named once, as in `log.batches.in_buffer`.


class PartitionLog(LogOffsets):
    """Append to, read and maintain one partition's log; create it with `open`."""

    def __init__(self, local: LocalLog, producers: ProducerState, epochs: LeaderEpochCache) -> None:
        super().__init__(local, producers, epochs)
        self._flushing = Flushing(self)
        self._appending = Appending(self, self._flushing)
        self._reading = Reading(self)
        self._truncation = Truncation(self)
        self._retention = Retention(self, self._flushing)

    @classmethod
    def open(
        cls,
        storage: Storage,
        directory: str,
        config: LogConfig,
        last_shutdown: LastShutdown = CLEAN_SHUTDOWN,
        *,
        now_ms: TimeMs,
        topic_id: str | None = None,
        entropy: RandomSource | None = None,
    ) -> Self:
        """Open the log in `directory`, created if missing; recover it after an unclean shutdown.

        `topic_id` is written beside the log; `entropy` draws segment.jitter.ms. Raises CorruptDataError for what even
        recovery cannot read, InconsistentTopicIdError, StorageError.
        """
        local = LocalLog(storage, directory, config, now_ms=now_ms, entropy=entropy)
        return open_log(cls, local, last_shutdown, now_ms=now_ms, topic_id=topic_id)

    # What the log is.

    @property
    def config(self) -> LogConfig:
        """Return the effective settings."""
        return self.local.config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self.local.config = config

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Return every segment, by base offset; the last segment is active."""
        return self.local.segments.all

    @property
    def active_segment(self) -> Segment:
        """Return the segment to which batches are appended."""
        return self.local.segments.active

    @property
    def size_bytes(self) -> SizeBytes:
        """Return the size of all .log files in bytes."""
        return self.local.segments.size_bytes

    def state(self) -> LogDescription:
        """Return the log's offsets, segments, leader epochs and producers as one value."""
        return describe(self)

    def check_invariants(self) -> None:
        """Assert the invariants of `log.partition.log_offsets`."""
        check_offsets(self.state())
        check_segments(self.segments, self.log_start_offset, self.log_end_offset)
        check_epochs(self.epochs, self.log_end_offset)

    # Its offsets.

    @property
    def recovery_point(self) -> Offset:
        """Return the offset below which all records are flushed to disk."""
        return self.local.recovery_point

    def end_offset_for_epoch(self, leader_epoch: LeaderEpoch) -> EpochEndOffset | None:
        """Return the largest epoch at or below `leader_epoch` and its end offset; None where Kafka answers (-1, -1)."""
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    # Appending.

    def append_as_leader(
        self,
        records: Buffer,
        *,
        leader_epoch: LeaderEpoch,
        now_ms: TimeMs,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction_version: int | None = None,
    ) -> AppendInfo:
        """Append a record set and assign its offsets and leader epoch; do not write a producer's retry again.

        A transaction marker needs the `transaction_version` of its coordinator (0, 1 or 2) since release 4.2.

        Raises RefusedError, CorruptBatchError, as `log.partition.record_set`, `log.partition.leader_append`,
        `log.partition.producer_state` do.
        """
        return self._appending.as_leader(
            records,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            origin=origin,
            transaction_version=transaction_version,
        )

    def append_as_follower(self, records: Buffer, *, now_ms: TimeMs) -> AppendInfo:
        """Append batches as the leader wrote them. Raises OffsetsOutOfOrderError, UnexpectedAppendOffsetError, ..."""
        return self._appending.as_follower(records, now_ms=now_ms)

    def append_columns(
        self, spec: BatchSpec, records: PlainColumns, records_per_batch: int, *, now_ms: TimeMs
    ) -> AppendInfo:
        """Append records as a follower would append the batches of `build_batches` one by one.

        Many batches are written at once, where the outcome is the same. Raises what `build_batches` raises, and then
        nothing is written; or what `append_as_follower` raises, and then the batches before the refused one are in the
        log. Where the storage refuses, what is in the log is known after it is opened again.
        """
        return self._appending.columns(spec, records, records_per_batch, now_ms=now_ms)

    def take_producer_snapshot(self) -> None:
        """Write a snapshot of the producers at the log's end, unless there is one already."""
        self.producers.take_snapshot()

    # Reading.

    def read(
        self,
        start_offset: Offset,
        max_bytes: int,
        *,
        isolation: Isolation = Isolation.LOG_END,
        min_one_message: bool = True,
    ) -> FetchData:
        """Return a view of up to `max_bytes` bytes, from the batch that contains `start_offset` on.

        Raises OffsetOutOfRangeError below the log start and above the log end.
        """
        request = ReadRequest(start_offset, max_bytes, min_one_message, isolation is _COMMITTED)
        return self._reading.read(request, isolation)

    @property
    def end_place(self) -> OffsetPlace:
        """Return the log's end offset, with the base of the active segment and its size."""
        return self._reading.end_place

    def fetch_offset_by_timestamp(self, timestamp_ms: int) -> FoundOffset | None:
        """Return the first record at or after a time; -1: log end, -2 and -4: log start, -3: the latest record."""
        return self._reading.offset_by_timestamp(timestamp_ms)

    # Segments: rolled, flushed, truncated, deleted, compacted.

    def roll(self, *, now_ms: TimeMs, expected_next_offset: Offset = AT_LOG_END) -> Segment:
        """Begin a new active segment and return it; the next `run_scheduled` flushes the rolled one."""
        return self._flushing.roll(now_ms=now_ms, expected_next_offset=expected_next_offset)

    def flush(self, *, now_ms: TimeMs, include_active_end: bool = False) -> None:
        """Flush the log to disk; the recovery point becomes the log's end.

        An active segment that is still empty is flushed only with `include_active_end`, as at a shutdown.
        """
        self._flushing.flush(now_ms=now_ms, include_active_end=include_active_end)

    def truncate_to(self, offset: Offset, *, now_ms: TimeMs) -> bool:
        """Truncate the log to end at `offset`; return False if its end is already at or below `offset`.

        A batch that `offset` lies in goes whole; the next append is at `offset` all the same. Raises
        IllegalArgumentError below 0.
        """
        return self._truncation.to(offset, now_ms=now_ms)

    def truncate_fully_and_start_at(
        self, offset: Offset, *, now_ms: TimeMs, log_start_offset: Offset | None = None
    ) -> None:
        """Delete every segment and begin anew at `offset`, which is also the log start unless one is given."""
        self._truncation.fully_and_start_at(offset, now_ms=now_ms, log_start_offset=log_start_offset)

    def delete_old_segments(self, *, now_ms: TimeMs) -> int:
        """Delete segments before the log start or beyond retention.bytes or retention.ms; return their count."""
        return self._retention.delete_old_segments(now_ms=now_ms)

    def new_cleaned_segment(self, base_offset: Offset, *, now_ms: TimeMs) -> Segment:
        """Create an empty `.cleaned` segment for the cleaner's output."""
        return self.local.new_cleaned_segment(base_offset, now_ms=now_ms)

    def replace_segments(self, new: Sequence[Segment], old: Sequence[Segment], *, now_ms: TimeMs) -> None:
        """Replace old segments by `.cleaned` ones, and delete the old files after file.delete.delay.ms."""
        self.delete_producer_snapshots(self.local.replace_segments(new, old, now_ms=now_ms), now_ms=now_ms)

    def delete_producer_snapshots(self, segments: Sequence[Segment], *, now_ms: TimeMs) -> None:
        """Delete the producer snapshots at the bases of deleted segments, after file.delete.delay.ms."""
        delete_producer_snapshots(self.local, self.producers, segments, now_ms=now_ms)

    # The directory.

    def run_scheduled(self, now_ms: TimeMs) -> None:
        """Run the due tasks: delete `.deleted` files, flush rolled segments, flush all after flush.ms."""
        self.local.schedule.run(now_ms)
        self.epochs.flush()
        self._flushing.flush_if_due(now_ms)

    def rename_directory(self, directory: str) -> None:
        """Rename the log's directory, for example before the log is deleted."""
        self.local.rename_directory(directory)
        self.producers.rename_directory(directory)
        self.epochs.path = f"{directory}/{LEADER_EPOCH_FILE}"

    def close(self, *, now_ms: TimeMs) -> None:
        """Run the due tasks, write a snapshot of the producers, trim the active indexes and close all files.

        Deleted files whose delay is not over stay; the next `open` removes them.
        """
        self.local.schedule.run(now_ms)
        if self.config.release >= CLOSES_UNTRIMMED_SINCE:
            with suppress(RefusedError):  # An index entry that is refused is dropped.
                self.local.segments.active.become_inactive()
        self.producers.take_snapshot()
        self.epochs.flush()
        for segment in self.segments:
            segment.close()

    def delete(self, *, now_ms: TimeMs) -> None:
        """Run the due tasks, close all files and remove the whole directory at once."""
        self.local.schedule.run(now_ms)
        for segment in self.segments:
            segment.close()
        self.storage.remove_directory(self.directory)
