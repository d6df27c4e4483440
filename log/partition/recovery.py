"""Load a log from its directory: finish or undo interrupted work, load segments, recover what was not closed.

What it decides: what a directory full of files means, whatever moment the broker stopped at.

Goals, most important first:
1. The log that results is a prefix of what was written, cut between two batches, with all that was flushed.
2. A compaction or split is either done or not done, never half.
3. After a clean shutdown nothing is read but the ends of the segments.

How: in this order:
1. `.deleted` files go, and all `.cleaned` ones: their contents are not complete. So do `.swap` files at or above the
   smallest `.cleaned` base: their pass had not renamed all of its output yet, and what they replace is still there.
2. The other `.swap` files are complete. What lies within the offsets that they cover goes, and they get plain names.
3. Index files without a log file go; the segments are loaded in order. One without an `.index`, or with a
   `.txnindex` that cannot be right, is recovered. A missing `.timeindex` is made empty and stays so.
4. Unclean: each segment from the one with the recovery point on is recovered; after the first that had to be cut, the
   later ones are deleted. Indexes before the recovery point are taken as they are.
5. A log that ends before its start is emptied and begins anew at the start.
6. Leader epochs are cut to what is left, the state of producers is rebuilt.

A segment whose offsets do not fit its indexes is split, and the step begins again.

Example: segments 0, 100, 200, recovery point 120, a flipped bit in 100: 100 is cut before the bad batch, 200 deleted.

Left out: remote storage; the background threads that Kafka uses for many logs.

Source: org.apache.kafka.storage.internals.log.LogLoader, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import attrs

from broker.ids import Offset
from broker.units import TimeMs
from log.errors import CorruptBatchError, CorruptIndexError, InvalidOffsetError, SegmentOffsetOverflowError
from log.partition.epoch_cache import LeaderEpochCache
from log.partition.local_log import LocalLog
from log.partition.producer_rebuild import RebuildRequest, rebuild_producer_state
from log.partition.schedule import Task
from log.partition.segment_recovery import recover_segment
from log.partition.splitting import split_segment
from log.producers.state import ProducerState
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
from log.storage.protocol import Storage

Result = TypeVar("Result")

DELETED_DIRECTORY_SUFFIX: Final = "-delete"
SPLIT_COUNT_MAX: Final = 100_000
"""How often a step may begin again for a split; each makes one segment more, so only a bug comes here."""


@attrs.frozen(kw_only=True)
class LastShutdown:
    """What the checkpoints say of a log, and whether its broker was shut down cleanly."""

    clean: bool = True
    recovery_point: Offset = attrs.field(default=Offset(0))
    log_start_offset: Offset = attrs.field(default=Offset(0))


@attrs.frozen(kw_only=True)
class LoadedOffsets:
    """Where a log that was loaded starts and ends, and up to where it is known to be on disk."""

    log_start_offset: Offset
    end_offset: Offset
    recovery_point: Offset


class _OverflowError(Exception):
    """A segment that must be split before the step can be done."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        super().__init__(repr(segment))


def load_log(
    local: LocalLog, producers: ProducerState, epochs: LeaderEpochCache | None, last: LastShutdown, *, now_ms: TimeMs
) -> LoadedOffsets:
    """Load the segments of `local` from its directory, which is there, and bring the rest up to them."""
    loader = _Loader(local, producers, epochs, last, now_ms)
    loader.clean_up()
    loader.with_splits(loader.load_segments)
    if local.directory.endswith(DELETED_DIRECTORY_SUFFIX):
        if not local.segments:
            local.segments.add(local.open_segment(Offset(0), now_ms=now_ms))
        end_offset = recovery_point = Offset(0)
    else:
        end_offset, recovery_point = loader.with_splits(loader.recover)
        local.segments.active.grow_indexes()
    if epochs is not None:
        epochs.truncate_from_end(end_offset)
        epochs.truncate_from_start(last.log_start_offset)
    log_start_offset = Offset(max(last.log_start_offset, local.segments.first.base_offset))
    producers.remove_stray_snapshots([segment.base_offset for segment in local.segments])
    loader.rebuild(producers, log_start_offset, end_offset, had_clean_shutdown=last.clean)
    return LoadedOffsets(log_start_offset=log_start_offset, end_offset=end_offset, recovery_point=recovery_point)


def unfinished_files(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return which of the files in a directory go before anything is loaded, and which `.swap` files are complete."""
    ours = [name for name in names if base_offset_of(name) is not None]
    cleaned = [name for name in ours if name.endswith(CLEANED)]
    lowest = min((base_offset_of(name) or 0 for name in cleaned), default=None)
    swaps = [name for name in ours if name.endswith(SWAP)]
    complete = [name for name in swaps if lowest is None or (base_offset_of(name) or 0) < lowest]
    deleted = [name for name in names if name.endswith(DELETED)]
    return deleted + [name for name in swaps if name not in complete] + cleaned, complete


@attrs.frozen
class _Loader:
    """The steps of loading one log."""

    local: LocalLog
    producers: ProducerState
    epochs: LeaderEpochCache | None
    last: LastShutdown
    now_ms: TimeMs

    def with_splits(self, step: Callable[[], Result]) -> Result:
        """Return what `step` returns, splitting segments as long as it comes to one that needs it."""
        for _ in range(SPLIT_COUNT_MAX):
            try:
                return step()
            except _OverflowError as overflow:
                for segment in split_segment(self.local, overflow.segment, now_ms=self.now_ms):
                    self._delete_snapshot(segment)
        raise AssertionError("splitting does not come to an end")

    def clean_up(self) -> None:
        """Remove what is not complete, and finish the swap that is."""
        directory, storage = self.local.directory, self.local.storage
        removed, swaps = unfinished_files(storage.list(directory))
        for name in removed:
            storage.remove(f"{directory}/{name}")
        for start_offset, end_offset in self._swapped_range(swaps):
            for name in storage.list(directory):
                base_offset = base_offset_of(name)
                is_covered = base_offset is not None and start_offset <= base_offset < end_offset
                if is_covered and not name.endswith(SWAP):
                    storage.remove(f"{directory}/{name}")
        for name in storage.list(directory):  # Anew: an index that was missing may have been made beside its log.
            if name.endswith(SWAP) and base_offset_of(name) is not None:
                storage.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP)}")

    def _swapped_range(self, swaps: Sequence[str]) -> list[tuple[Offset, Offset]]:
        """Return the range of offsets that complete segments cover, from the first base to the last next offset."""
        bases = [base_offset_of(name) or Offset(0) for name in swaps if kind_of(name) == LOG + SWAP]
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
            if kind in INDEX_FILES and local.place(base_offset).name(LOG) not in names:
                local.storage.remove(f"{local.directory}/{name}")
            elif kind == LOG:
                self._load_segment(base_offset, names)

    def _load_segment(self, base_offset: Offset, names: Sequence[str]) -> None:
        place = self.local.place(base_offset)
        has_index, has_time_index = place.name(OFFSET_INDEX) in names, place.name(TIME_INDEX) in names
        segment = self.local.open_segment(base_offset, now_ms=self.now_ms)
        try:
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
        """Recover a segment without usable indexes before those in front of it are known to be whole."""
        try:
            self._recover_segment(segment)
        except CorruptBatchError:
            # Power loss may have taken the index of one segment and damaged the one in front, which is read for its
            # producers here. Kafka does not start then; but both are yet to be recovered, in order, so go on.
            if self.last.clean or segment.base_offset < self.last.recovery_point:
                raise

    def recover(self) -> tuple[Offset, Offset]:
        """Recover what was not closed properly; return the log's end and its recovery point."""
        local, last = self.local, self.last
        if not last.clean:
            self._recover_unflushed()
        end_offset = local.segments.active.read_next_offset() if local.segments else None
        if end_offset is not None and end_offset < last.log_start_offset:
            # Their snapshots go at once, with the state of the producers.
            local.remove_and_delete(local.segments.all, now_ms=self.now_ms)
            if self.epochs is not None:
                self.epochs.clear()
            self.producers.truncate_fully_and_start_at(last.log_start_offset)
            end_offset = None
        if not local.segments:
            local.segments.add(local.open_segment(last.log_start_offset, now_ms=self.now_ms))
        if last.clean and end_offset is not None:
            return end_offset, end_offset
        if end_offset is None:
            end_offset = local.segments.active.read_next_offset()
        return end_offset, min(last.recovery_point, end_offset)

    def _recover_unflushed(self) -> None:
        """Recover the segments from the recovery point on, up to and with the first that has to be cut."""
        unflushed = self.local.segments.between(self.last.recovery_point)
        for index, segment in enumerate(unflushed):
            try:
                cut_bytes = self._recover_segment(segment)
            except InvalidOffsetError:
                cut_bytes = segment.truncate_to(segment.base_offset, now_ms=self.now_ms)
            if cut_bytes > 0:
                self._delete_segments(unflushed[index + 1 :])
                return

    def _recover_segment(self, segment: Segment) -> int:
        """Recover one segment with the state of producers at its base; return how many bytes were cut."""
        local = self.local
        producers = ProducerState.open(local.storage, local.directory, name=local.directory)
        self.rebuild(producers, self.last.log_start_offset, segment.base_offset, had_clean_shutdown=False)
        try:
            cut_bytes = recover_segment(segment, producers, self.epochs)
        except SegmentOffsetOverflowError:
            raise _OverflowError(segment) from None
        producers.take_snapshot()
        return cut_bytes

    def rebuild(
        self, producers: ProducerState, log_start_offset: Offset, last_offset: Offset, *, had_clean_shutdown: bool
    ) -> None:
        """Bring `producers` up to `last_offset`."""
        request = RebuildRequest(
            log_start_offset=log_start_offset,
            last_offset=last_offset,
            magic=self.local.config.magic,
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
    """Rename the producer snapshots at the bases of `segments` to `.deleted`, removed after file.delete.delay.ms."""
    for segment in segments:
        path = producers.mark_snapshot_for_deletion(segment.base_offset)
        if path is not None:
            local.schedule.add(TimeMs(now_ms + local.config.file_delete_delay_ms), _remover(local.storage, path))


def _remover(storage: Storage, path: str) -> Task:
    def remove(_now_ms: TimeMs) -> None:
        if storage.exists(path):
            storage.remove(path)

    return remove
