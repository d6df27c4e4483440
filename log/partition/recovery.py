"""Load a log after a shutdown or crash: finish or undo interrupted work, load segments, recover the unflushed.

The loaded log is a prefix of the written one, cut between two batches, and contains everything that was flushed. A
compaction or split is either complete or undone. In Kafka's order:
1. Delete `.deleted` files, and all `.cleaned` files, which are incomplete. Delete `.swap` files at or above the
   smallest `.cleaned` base too: their pass had not renamed all of its output yet, and the old segments are still there.
2. The other `.swap` files are complete. Delete the segments in their range of offsets, and drop the suffix `.swap`.
3. Delete index files without a log file; load the segments in order. Recover a segment without `.index` or with an
   unsound `.txnindex`. Create a missing `.timeindex` and leave it empty.
4. After an unclean shutdown recover each segment from the recovery point on (`log.partition.segment_recovery`); delete
   all segments after the first that had to be cut. Indexes before the recovery point are taken as they are.
5. Delete all segments of a log that ends before its log start offset, and begin anew at that offset.
6. Truncate the leader epochs to the loaded range, and rebuild the state of producers.

A segment with an offset that its indexes cannot store is split, and the step begins again.

Source: org.apache.kafka.storage.internals.log.LogLoader, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

import attrs

from broker.ids import Offset
from broker.units import MINUTE_MS, TimeMs
from log.errors import (
    CorruptBatchError,
    CorruptIndexError,
    InconsistentTopicIdError,
    InvalidOffsetError,
    SegmentOffsetOverflowError,
)
from log.partition.epoch_cache import LeaderEpochCache
from log.partition.local_log import LocalLog, Task
from log.partition.log_offsets import LogOffsets
from log.partition.producer_state import ProducerState
from log.partition.segment_recovery import RebuildRequest, rebuild_producer_state, recover_segment, split_segment
from log.segments.file_names import (
    CLEANED,
    DELETED,
    INDEX_FILES,
    LOG,
    OFFSET_INDEX,
    SWAP,
    TIME_INDEX,
    base_offset_of,
    kind_of,
)
from log.segments.segment import Segment
from log.storage.checkpoints import LEADER_EPOCH_FILE
from log.storage.metadata_files import (
    PARTITION_METADATA_FILE,
    PartitionMetadata,
    read_partition_metadata,
    write_partition_metadata,
)
from log.storage.protocol import Storage, parent_of

Log = TypeVar("Log", bound=LogOffsets)

PRODUCER_CHECK_INTERVAL_MS: Final = 10 * MINUTE_MS
"""How often expired producers are removed: producer.id.expiration.check.interval.ms."""


def open_log(
    kind: type[Log], local: LocalLog, last_shutdown: LastShutdown, *, now_ms: TimeMs, topic_id: str | None
) -> Log:
    """Load the segments of `local` and return the log, with its offsets, producers and leader epochs.

    Raises CorruptDataError for what even recovery cannot read, InconsistentTopicIdError, StorageError.
    """
    storage, directory = local.storage, local.directory
    if not storage.exists(directory):
        storage.make_directory(directory)
        # Kafka leaves this to the file system: what is flushed into a directory without a name would be lost.
        storage.sync_directory(parent_of(directory))
    producers = ProducerState.open(storage, directory, name=directory)
    log = kind(local, producers, LeaderEpochCache.open(storage, f"{directory}/{LEADER_EPOCH_FILE}"))
    loaded = load_log(local, producers, log.epochs, last_shutdown, now_ms=now_ms)
    local.end_offset = loaded.end_offset
    local.recovery_point = max(loaded.recovery_point, loaded.log_start_offset)
    log.log_start_offset = log.high_watermark = loaded.log_start_offset
    log.update_first_unstable_offset()
    log.topic_id = _kept_topic_id(storage, directory, topic_id)
    local.schedule.add(TimeMs(now_ms + PRODUCER_CHECK_INTERVAL_MS), partial(_remove_expired_producers, log))
    return log


def _kept_topic_id(storage: Storage, directory: str, topic_id: str | None) -> str | None:
    """Return the topic id in partition.metadata; write `topic_id` there if there is none yet."""
    path = f"{directory}/{PARTITION_METADATA_FILE}"
    known = read_partition_metadata(storage, path)
    if known is None:
        if topic_id is not None:
            write_partition_metadata(storage, path, PartitionMetadata(topic_id))
        return topic_id
    if topic_id is not None and known.topic_id != topic_id:
        raise InconsistentTopicIdError(
            f"{directory} belongs to the topic of id {known.topic_id}, not to that of {topic_id}"
        )
    return known.topic_id


def _remove_expired_producers(log: LogOffsets, now_ms: TimeMs) -> None:
    log.producers.remove_expired(now_ms)
    log.local.schedule.add(TimeMs(now_ms + PRODUCER_CHECK_INTERVAL_MS), partial(_remove_expired_producers, log))


Result = TypeVar("Result")

DELETED_DIRECTORY_SUFFIX: Final = "-delete"
SPLIT_COUNT_MAX: Final = 100_000
"""Limit on the restarts of a step after a split; each split adds a segment, so only a bug reaches the limit."""


@attrs.frozen(kw_only=True)
class LastShutdown:
    """Hold the checkpointed offsets of a log, and whether its broker was shut down cleanly."""

    clean: bool = True
    recovery_point: Offset = attrs.field(default=Offset(0))
    log_start_offset: Offset = attrs.field(default=Offset(0))


CLEAN_SHUTDOWN: Final = LastShutdown()


@attrs.frozen(kw_only=True)
class LoadedOffsets:
    """Hold log start, log end and recovery point of a loaded log."""

    log_start_offset: Offset
    end_offset: Offset
    recovery_point: Offset


class _OverflowError(Exception):
    """A segment must be split before the step can succeed."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment


def load_log(
    local: LocalLog, producers: ProducerState, epochs: LeaderEpochCache, last: LastShutdown, *, now_ms: TimeMs
) -> LoadedOffsets:
    """Load the segments of `local` from its existing directory, and make leader epochs and producers match."""
    loader = _Loader(local, producers, epochs, last, now_ms)
    loader.clean_up()
    loader.with_splits(loader.load_segments)
    if local.directory.endswith(DELETED_DIRECTORY_SUFFIX):
        # The log is about to be deleted: as in Kafka nothing is recovered and nobody asks for its end.
        if not local.segments:
            local.segments.add(local.open_segment(Offset(0), now_ms=now_ms))
        end_offset = recovery_point = Offset(0)
    else:
        end_offset, recovery_point = loader.with_splits(loader.recover)
        local.segments.active.grow_indexes()
    # The checkpoint is written when an epoch begins, before its batches: it can name offsets that recovery has cut.
    epochs.truncate_from_end(end_offset)
    epochs.truncate_from_start(last.log_start_offset)
    # The checkpoint lags behind deleted segments, or leads them: DeleteRecords moves it into the first segment.
    log_start_offset = Offset(max(last.log_start_offset, local.segments.first.base_offset))
    producers.remove_stray_snapshots([segment.base_offset for segment in local.segments])
    loader.rebuild(producers, log_start_offset, end_offset, had_clean_shutdown=last.clean)
    return LoadedOffsets(log_start_offset=log_start_offset, end_offset=end_offset, recovery_point=recovery_point)


def unfinished_files(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names of the files to delete before loading, and of the complete `.swap` files."""
    bases = {name: base for name in names if (base := base_offset_of(name)) is not None}
    cleaned = [name for name in bases if name.endswith(CLEANED)]
    # A pass renames its outputs from the last to the first, so a `.cleaned` file below a `.swap` one means that the
    # pass had not finished renaming; below all `.cleaned` files a `.swap` belongs to an earlier, complete replacement.
    lowest = min((bases[name] for name in cleaned), default=None)
    swaps = [name for name in bases if name.endswith(SWAP)]
    complete = [name for name in swaps if lowest is None or bases[name] < lowest]
    deleted = [name for name in names if name.endswith(DELETED)]
    return deleted + [name for name in swaps if name not in complete] + cleaned, complete


@attrs.frozen
class _Loader:
    """The steps of loading one log."""

    local: LocalLog
    producers: ProducerState
    epochs: LeaderEpochCache
    last: LastShutdown
    now_ms: TimeMs

    def with_splits(self, step: Callable[[], Result]) -> Result:
        """Run `step` until it succeeds, splitting each segment that has an offset overflow; return its result.

        Kafka's LogLoader.retryOnOffsetOverflow.
        """
        for _ in range(SPLIT_COUNT_MAX):
            try:
                return step()
            except _OverflowError as overflow:
                for segment in split_segment(self.local, overflow.segment, now_ms=self.now_ms):
                    self._delete_snapshot(segment)
        raise AssertionError("splitting does not come to an end")

    def clean_up(self) -> None:
        """Delete incomplete files, and finish the replacement whose `.swap` files are complete."""
        directory, storage = self.local.directory, self.local.storage
        removed, swaps = unfinished_files(storage.list(directory))
        for name in removed:
            storage.remove(f"{directory}/{name}")
        # Old segments in the range of the `.swap` files go first, then the suffix: a crash in between finds the `.swap`
        # files again and repeats both.
        for start_offset, end_offset in self._swapped_range(swaps):
            for name in storage.list(directory):
                base_offset = base_offset_of(name)
                is_covered = base_offset is not None and start_offset <= base_offset < end_offset
                if is_covered and not name.endswith(SWAP):
                    storage.remove(f"{directory}/{name}")
        for name in storage.list(directory):  # Listed again: opening a segment may have created a missing index.
            if name.endswith(SWAP) and base_offset_of(name) is not None:
                storage.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP)}")

    def _swapped_range(self, swaps: Sequence[str]) -> list[tuple[Offset, Offset]]:
        """Return the range of offsets that complete segments cover, from the first base to the last next offset."""
        logs = [name for name in swaps if kind_of(name) == LOG + SWAP]
        bases = [base for name in logs if (base := base_offset_of(name)) is not None]
        if not bases:
            return []
        segments = [self.local.open_segment(base, now_ms=self.now_ms, suffix=SWAP) for base in bases]
        next_offsets = [segment.read_next_offset() for segment in segments]
        for segment in segments:
            segment.close()
        return [(min(bases), max(next_offsets))]

    def load_segments(self) -> None:
        """Load every segment of the directory, in order; recover those without a usable index."""
        local = self.local
        for segment in local.segments:
            segment.close()
        local.segments.clear()
        names = local.storage.list(local.directory)
        for name in names:
            base_offset, kind = base_offset_of(name), kind_of(name)
            if base_offset is None:
                continue
            # An orphaned index: its log file was deleted, but the broker stopped before the index was.
            if kind in INDEX_FILES and local.place(base_offset).name(LOG) not in names:
                local.storage.remove(f"{local.directory}/{name}")
            elif kind == LOG:
                self._load_segment(base_offset, names)

    def _load_segment(self, base_offset: Offset, names: Sequence[str]) -> None:
        place = self.local.place(base_offset)
        has_index, has_time_index = place.name(OFFSET_INDEX) in names, place.name(TIME_INDEX) in names
        segment = self.local.open_segment(base_offset, now_ms=self.now_ms)
        try:
            # As in Kafka, LogSegment.sanityCheck: only a missing .index causes recovery; a missing .timeindex stays
            # empty, and a look-up by time scans the segment.
            if not has_time_index:
                segment.time_index.resize(0)
            segment.txn_index.sanity_check()
            is_sound = has_index
        except CorruptIndexError:
            is_sound = False
        if not is_sound:
            self._recover_early(segment)
        self.local.segments.add(segment)

    def _recover_early(self, segment: Segment) -> None:
        """Recover a segment without usable indexes while the segments before it are still unchecked."""
        try:
            self._recover_segment(segment)
        except CorruptBatchError:
            # To rebuild its producers the segments before it are read, and power loss may have damaged one of them.
            # Kafka does not start then. Here loading goes on: both lie above the recovery point, so `recover` checks
            # them in order, cuts the damaged one and deletes this one.
            if self.last.clean or segment.base_offset < self.last.recovery_point:
                raise

    def recover(self) -> tuple[Offset, Offset]:
        """Recover the unflushed segments after an unclean shutdown; return the log's end and its recovery point."""
        local, last = self.local, self.last
        if not last.clean:
            self._recover_unflushed()
        end_offset = local.segments.active.read_next_offset() if local.segments else None
        if end_offset is not None and end_offset < last.log_start_offset:
            # The log start was checkpointed (DeleteRecords) but the records up to it were lost: Kafka deletes all
            # segments and begins at the log start. The producer snapshots are deleted at once, with their state.
            local.remove_and_delete(local.segments.all, now_ms=self.now_ms)
            self.epochs.clear()
            self.producers.truncate_fully_and_start_at(last.log_start_offset)
            end_offset = None
        if not local.segments:
            local.segments.add(local.open_segment(last.log_start_offset, now_ms=self.now_ms))
        # A clean shutdown flushes everything. After an unclean one the recovered batches may be in the page cache only,
        # so the recovery point must not move up: the next flush moves it.
        if last.clean and end_offset is not None:
            return end_offset, end_offset
        if end_offset is None:
            end_offset = local.segments.active.read_next_offset()
        return end_offset, min(last.recovery_point, end_offset)

    def _recover_unflushed(self) -> None:
        """Recover the segments from the recovery point on, up to and including the first that has to be cut."""
        unflushed = self.local.segments.between(self.last.recovery_point)
        for index, segment in enumerate(unflushed):
            try:
                cut_bytes = self._recover_segment(segment)
            except InvalidOffsetError:
                # Offsets that do not ascend: Kafka takes no batch of such a segment.
                cut_bytes = segment.truncate_to(segment.base_offset, now_ms=self.now_ms)
            if cut_bytes > 0:
                # Segments after a cut would leave a gap of offsets: the log must be a prefix of what was written.
                self._delete_segments(unflushed[index + 1 :])
                return

    def _recover_segment(self, segment: Segment) -> int:
        """Recover one segment with the state of producers at its base; return the count of bytes cut."""
        local = self.local
        # A state of its own: the log's is rebuilt once at the end. Producers of the segments before must be known:
        # the segment's markers and batches are checked against their epochs, and end their transactions.
        producers = ProducerState.open(local.storage, local.directory, name=local.directory)
        self.rebuild(producers, self.last.log_start_offset, segment.base_offset, had_clean_shutdown=False)
        try:
            cut_bytes = recover_segment(segment, producers, self.epochs)
        except SegmentOffsetOverflowError:
            raise _OverflowError(segment) from None
        producers.take_snapshot()  # At the segment's end: the next segment's rebuild starts from it.
        return cut_bytes

    def rebuild(
        self, producers: ProducerState, log_start_offset: Offset, last_offset: Offset, *, had_clean_shutdown: bool
    ) -> None:
        """Bring `producers` up to `last_offset`."""
        request = RebuildRequest(
            log_start_offset=log_start_offset,
            last_offset=last_offset,
            had_clean_shutdown=had_clean_shutdown,
            now_ms=self.now_ms,
        )
        rebuild_producer_state(producers, self.local.segments, request)

    def _delete_segments(self, segments: Sequence[Segment]) -> None:
        self.local.remove_and_delete(segments, now_ms=self.now_ms)
        for segment in segments:
            self._delete_snapshot(segment)

    def _delete_snapshot(self, segment: Segment) -> None:
        delete_producer_snapshots(self.local, self.producers, (segment,), now_ms=self.now_ms)


def delete_producer_snapshots(
    local: LocalLog, producers: ProducerState, segments: Sequence[Segment], *, now_ms: TimeMs
) -> None:
    """Rename the snapshots at the bases of `segments` to `.deleted`, and delete them after file.delete.delay.ms."""
    for segment in segments:
        path = producers.mark_snapshot_for_deletion(segment.base_offset)
        if path is not None:
            local.schedule.add(TimeMs(now_ms + local.config.file_delete_delay_ms), _remover(local.storage, path))


def _remover(storage: Storage, path: str) -> Task:
    def remove(_now_ms: TimeMs) -> None:
        if storage.exists(path):
            storage.remove(path)

    return remove
