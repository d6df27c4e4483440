"""Keep a log in shape: open it, roll it, flush it, cut it, let it forget, close it.

Decides nothing by itself; it is the shell over the rules that say what may go, what must stay and what is written when.
What clients do with a log stands in `log.partition.partition_log`, which builds on this.

Goals, most important first
1. Whatever is deleted or cut takes along what was known of it: producers, their snapshots, leader epochs.
2. No threads: what is for later is done by `run_scheduled`, which the owner of the log calls.

Constraints: those of `log.partition.log_invariants`.

How: `log.partition.log_offsets` has the log's parts and keeps its offsets in agreement, `log.partition.local_log`
keeps the files, `log.partition.recovery` opens them, `log.partition.retention` says what goes,
`log.partition.producer_rebuild` brings the producers up to a cut.

Example: segments 0, 100, 200; increment_log_start_offset(150), and delete_old_segments deletes the first.

Left out: remote storage, metrics.

Source: kafka.log.UnifiedLog, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Self

from broker.entropy import RandomSource
from broker.ids import Offset
from broker.units import MINUTE_MS, TimeMs
from log.errors import IllegalArgumentError, InconsistentTopicIdError
from log.files.checkpoints import LEADER_EPOCH_FILE
from log.files.metadata_files import (
    PARTITION_METADATA_FILE,
    PartitionMetadata,
    read_partition_metadata,
    write_partition_metadata,
)
from log.log_config import LogConfig
from log.partition.epoch_cache import LeaderEpochCache
from log.partition.local_log import LocalLog
from log.partition.log_offsets import LogOffsets
from log.partition.producer_rebuild import RebuildRequest, rebuild_producer_state
from log.partition.recovery import LastShutdown, delete_snapshot_later, load_log
from log.partition.retention import Breach, RetainedSegment, before_start, beyond_size, deletable_count, too_old
from log.producers.state import ProducerState
from log.segments.segment import Segment
from log.storage.protocol import Storage, parent_of

AT_LOG_END: Final = Offset(0)  # Whatever lies below the log's end means the end.
CLEAN_SHUTDOWN: Final = LastShutdown()
PRODUCER_CHECK_INTERVAL_MS: Final = 10 * MINUTE_MS
"""How often producers are forgotten of which nothing came for a day: producer.id.expiration.check.interval.ms."""


class LogUpkeep(LogOffsets):
    """A log without its clients."""

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
        """Open the log in `directory`, made if it is missing, and recover what was not closed properly.

        `topic_id` is written beside the log; `entropy` draws segment.jitter.ms. Raises CorruptDataError for what even
        recovery cannot read, InconsistentTopicIdError, StorageError.
        """
        if not storage.exists(directory):
            storage.make_directory(directory)
            # Kafka leaves this to the file system: what is flushed into a directory without a name would be lost.
            storage.sync_directory(parent_of(directory))
        local = LocalLog(storage, directory, config, now_ms=now_ms, entropy=entropy)
        producers = ProducerState.open(storage, directory, name=directory)
        log = cls(local, producers, _open_epochs(storage, directory, config))
        offsets = load_log(local, producers, log.epochs, last_shutdown, now_ms=now_ms)
        local.end_offset = offsets.end_offset
        local.recovery_point = max(offsets.recovery_point, offsets.log_start_offset)
        log.log_start_offset = log.high_watermark = offsets.log_start_offset
        log._update_first_unstable_offset()
        log._keep_topic_id(topic_id)
        local.schedule.add(TimeMs(now_ms + PRODUCER_CHECK_INTERVAL_MS), log._forget_expired_producers)
        return log

    @property
    def config(self) -> LogConfig:
        """The settings in force."""
        return self.local.config

    @config.setter
    def config(self, config: LogConfig) -> None:
        if (config.magic >= 2) != (self.config.magic >= 2):
            self.epochs = _open_epochs(self.storage, self.directory, config)
        self.local.config = config

    def delete_old_segments(self, *, now_ms: TimeMs) -> int:
        """Delete what lies before the log start, beyond retention.bytes and retention.ms; return how many segments."""
        config = self.config
        count = self._delete_breaching(before_start(self.log_start_offset), now_ms)
        if config.deletes and config.retention_bytes >= 0:
            count += self._delete_breaching(beyond_size(self.size_bytes, config.retention_bytes), now_ms)
        if config.deletes and config.retention_ms >= 0:
            count += self._delete_breaching(too_old(now_ms, config.retention_ms), now_ms)
        return count

    def _delete_breaching(self, breach: Breach, now_ms: TimeMs) -> int:
        segments = self.segments
        count = deletable_count(self._retained(segments), high_watermark=self.high_watermark, breach=breach)
        if count == 0:
            return 0
        gone = segments[:count]
        if count == len(segments):
            self.roll(now_ms=now_ms)
        assert self.active_segment not in gone, gone
        next_segment = self.local.segments.higher(gone[-1].base_offset)
        assert next_segment is not None
        self.increment_log_start_offset(next_segment.base_offset)
        self.local.remove_and_delete(gone, now_ms=now_ms)
        self.delete_producer_snapshots(gone, now_ms=now_ms)
        return count

    def _retained(self, segments: Sequence[Segment]) -> Iterator[RetainedSegment]:
        """Yield what retention asks of each segment, as far as it asks."""
        for index, segment in enumerate(segments):
            is_active = index + 1 == len(segments)
            yield RetainedSegment(
                size_bytes=segment.size_bytes,
                end_offset=self.log_end_offset if is_active else segments[index + 1].base_offset,
                largest_timestamp_ms=segment.largest_timestamp_ms,
                is_active=is_active,
            )

    # Segments.

    def roll(self, *, now_ms: TimeMs, expected_next_offset: Offset = AT_LOG_END) -> Segment:
        """Begin a new active segment and return it; the one before is flushed by the next `run_scheduled`."""
        segment = self.local.roll(expected_next_offset, now_ms=now_ms)
        self.producers.update_map_end_offset(segment.base_offset)
        snapshot = self.producers.take_snapshot(sync=False)

        def flush_rolled(task_ms: TimeMs) -> None:
            if snapshot is not None and self.storage.exists(snapshot):
                self.storage.open(snapshot).sync()
            self._flush_to(segment.base_offset, end_offset=segment.base_offset, now_ms=task_ms)

        self.local.schedule.add(now_ms, flush_rolled)
        return segment

    def flush(self, *, now_ms: TimeMs, include_active_end: bool = False) -> None:
        """Make the log durable; the recovery point becomes its end.

        An active segment that is still empty is flushed only with `include_active_end`, as at a shutdown.
        """
        end_offset = Offset(self.log_end_offset + include_active_end)
        self._flush_to(self.log_end_offset, end_offset=end_offset, now_ms=now_ms)

    def _flush_to(self, recovery_point: Offset, *, end_offset: Offset, now_ms: TimeMs) -> None:
        if end_offset > self.local.recovery_point:
            self.local.flush(end_offset)
            self.local.mark_flushed(recovery_point, now_ms=now_ms)

    def truncate_to(self, offset: Offset, *, now_ms: TimeMs) -> bool:
        """Cut the log to end at `offset` and tell whether it ended above; raise IllegalArgumentError below 0.

        A batch that `offset` lies in goes whole; the next append is at `offset` all the same.
        """
        if offset < 0:
            raise IllegalArgumentError(f"{self.directory}: a log cannot be cut to the negative offset {offset}")
        if offset >= self.log_end_offset:
            if self.epochs is not None:
                self.epochs.truncate_from_end(self.log_end_offset)
            return False
        if self.local.segments.first.base_offset > offset:
            self.truncate_fully_and_start_at(offset, now_ms=now_ms)
            return True
        gone = self.local.truncate_to(offset, now_ms=now_ms)
        self.delete_producer_snapshots(gone, now_ms=now_ms)
        if self.epochs is not None:
            self.epochs.truncate_from_end(offset)
        self.log_start_offset = min(offset, self.log_start_offset)
        self._rebuild_producers(offset, now_ms)
        if self.high_watermark >= self.log_end_offset:
            self.update_high_watermark(self.log_end_offset)
        return True

    def truncate_fully_and_start_at(
        self, offset: Offset, *, now_ms: TimeMs, log_start_offset: Offset | None = None
    ) -> None:
        """Delete everything and begin anew at `offset`; the log start is there, or where it is said to be."""
        self.local.truncate_fully_and_start_at(offset, now_ms=now_ms)
        if self.epochs is not None:
            self.epochs.clear()
        self.producers.truncate_fully_and_start_at(offset)
        self.log_start_offset = offset if log_start_offset is None else log_start_offset
        self._rebuild_producers(offset, now_ms)
        self.update_high_watermark(self.log_end_offset)

    def new_cleaned_segment(self, base_offset: Offset, *, now_ms: TimeMs) -> Segment:
        """Make an empty `.cleaned` segment for a compaction to write into."""
        return self.local.new_cleaned_segment(base_offset, now_ms=now_ms)

    def replace_segments(self, new: Sequence[Segment], old: Sequence[Segment], *, now_ms: TimeMs) -> None:
        """Put `.cleaned` segments in the place of old ones, whose files go after file.delete.delay.ms."""
        self.delete_producer_snapshots(self.local.replace_segments(new, old, now_ms=now_ms), now_ms=now_ms)

    def delete_producer_snapshots(self, segments: Sequence[Segment], *, now_ms: TimeMs) -> None:
        """Delete the snapshots at the bases of segments that are gone, after file.delete.delay.ms."""
        for segment in segments:
            delete_snapshot_later(self.local, self.producers, segment.base_offset, now_ms=now_ms)

    # Producers.

    def take_producer_snapshot(self) -> None:
        """Write a snapshot of the producers at the log's end, if there is none yet."""
        self.producers.take_snapshot()

    def _rebuild_producers(self, last_offset: Offset, now_ms: TimeMs) -> None:
        request = RebuildRequest(
            log_start_offset=self.log_start_offset,
            last_offset=last_offset,
            magic=self.config.magic,
            had_clean_shutdown=False,
            now_ms=now_ms,
        )
        rebuild_producer_state(self.producers, self.local.segments, request)

    def _forget_expired_producers(self, now_ms: TimeMs) -> None:
        self.producers.remove_expired(now_ms)
        self.local.schedule.add(TimeMs(now_ms + PRODUCER_CHECK_INTERVAL_MS), self._forget_expired_producers)

    # The directory.

    def run_scheduled(self, now_ms: TimeMs) -> None:
        """Do what is due: remove deleted files, flush rolled segments, and all if flush.ms has gone by."""
        self.local.schedule.run(now_ms)
        if self.epochs is not None:
            self.epochs.flush()
        if now_ms - self.local.flushed_ms >= self.config.flush_ms:
            self.flush(now_ms=now_ms)

    def rename_directory(self, directory: str) -> None:
        """Give the log's directory another name, as for a log that is to be deleted."""
        self.local.rename_directory(directory)
        self.producers.rename_directory(directory)
        if self.epochs is not None:
            self.epochs.path = f"{directory}/{LEADER_EPOCH_FILE}"

    def close(self, *, now_ms: TimeMs) -> None:
        """Do what is due, write a snapshot of the producers, trim and close all files.

        Deleted files whose delay is not over stay; the next `open` removes them.
        """
        self.local.schedule.run(now_ms)
        self.producers.take_snapshot()
        if self.epochs is not None:
            self.epochs.flush()
        for segment in self.segments:
            segment.close()

    def delete(self, *, now_ms: TimeMs) -> None:
        """Do what is due, close all files and remove the whole directory, at once."""
        self.local.schedule.run(now_ms)
        for segment in self.segments:
            segment.close()
        self.storage.remove_directory(self.directory)

    def _keep_topic_id(self, topic_id: str | None) -> None:
        """Read the topic's id from beside the log, or write it there."""
        path = f"{self.directory}/{PARTITION_METADATA_FILE}"
        known = read_partition_metadata(self.storage, path)
        if known is None and topic_id is not None:
            write_partition_metadata(self.storage, path, PartitionMetadata(topic_id))
        if known is not None and topic_id is not None and known.topic_id != topic_id:
            raise InconsistentTopicIdError(
                f"{self.directory} belongs to the topic of id {known.topic_id}, not to that of {topic_id}"
            )
        self.topic_id = topic_id if known is None else known.topic_id


def _open_epochs(storage: Storage, directory: str, config: LogConfig) -> LeaderEpochCache | None:
    """Return the leader epochs of a log; one that writes magic 0 or 1 has none, and none on disk."""
    path = f"{directory}/{LEADER_EPOCH_FILE}"
    if config.magic >= 2:
        return LeaderEpochCache.open(storage, path)
    if storage.exists(path):
        storage.remove(path)
    return None
