"""Append to, read and truncate one segment: a log file and its three indexes.

Source: org.apache.kafka.storage.internals.log.LogSegment.append, 4.3.1; 3.8.1 for one entry an append.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from broker.errors import RefusedError
from broker.ids import Offset
from broker.releases import Release
from broker.units import DurationMs, TimeMs
from log.batches.batch import RecordBatch
from log.batches.in_buffer import BatchReader, batch_at, batches_in
from log.batches.record_columns import BatchRun
from log.errors import IllegalArgumentError, SegmentOffsetOverflowError
from log.log_config import LogConfig
from log.record import NO_TIMESTAMP, TimestampOffset
from log.segments.file_names import LOG
from log.segments.rolling import RELATIVE_OFFSET_MAX, find_entries, fits_relative
from log.segments.search import (
    BatchPlace,
    FoundOffset,
    SegmentRead,
    first_ending_at_or_after,
    first_holding,
    first_record_since,
    largest_timestamp,
)
from log.segments.segment_files import SEGMENT_SIZE_BYTES_MAX, SegmentFiles, SegmentPlace
from log.storage.protocol import Buffer

NO_JITTER: Final = DurationMs(0)
SEARCHES_BASE_OFFSETS_SINCE: Final = Release("4.1")
"""Since then FileRecords.searchForOffsetFromPosition compares base offsets before last offsets."""
CLOSES_UNTRIMMED_SINCE: Final = Release("4.4")
"""Since then LogSegment.close leaves the indexes as they are; LogManager.shutdown trims those of active segments."""


class Segment(SegmentFiles):
    """Append to and read one segment: a log file with its offset, time and transaction indexes.

    `created_ms` is when this object was made; `jitter_ms` is taken off segment.ms.
    """

    __slots__ = (
        "_bytes_since_index_entry",
        "_closes_untrimmed",
        "_first_timestamp_ms",
        "_indexes_each_batch",
        "_max_timestamp",
        "_searches_base_offsets",
        "created_ms",
        "index_interval_bytes",
        "jitter_ms",
    )

    def __init__(
        self, place: SegmentPlace, config: LogConfig, *, now_ms: TimeMs, jitter_ms: DurationMs = NO_JITTER
    ) -> None:
        """Open the segment's log file, or make it; raise StorageError."""
        super().__init__(place, config)
        self.created_ms = now_ms
        self.jitter_ms = jitter_ms
        self.index_interval_bytes = config.index_interval_bytes
        self._indexes_each_batch = not config.indexes_whole_appends
        self._searches_base_offsets = config.release >= SEARCHES_BASE_OFFSETS_SINCE
        self._closes_untrimmed = config.release >= CLOSES_UNTRIMMED_SINCE
        self._bytes_since_index_entry = 0
        self._max_timestamp: TimestampOffset | None = None  # Read from the time index when it is first asked for.
        self._first_timestamp_ms: TimeMs | None = None

    @property
    def max_timestamp(self) -> TimestampOffset:
        """Return the largest timestamp, with the last offset of its first batch; (-1, base offset) without one."""
        if self._max_timestamp is None:
            self._max_timestamp = self.time_index.last_entry
        return self._max_timestamp

    @max_timestamp.setter
    def max_timestamp(self, value: TimestampOffset) -> None:
        self._max_timestamp = value

    @property
    def largest_timestamp_ms(self) -> TimeMs:
        """Return the largest timestamp, else the file's modification time, in milliseconds, for retention."""
        timestamp_ms = self.max_timestamp.timestamp
        return TimeMs(timestamp_ms) if timestamp_ms >= 0 else self.modified_ms

    @property
    def first_timestamp_ms(self) -> TimeMs:
        """Return the largest timestamp of the first append (after reopening: first batch); -1 without one."""
        if self._first_timestamp_ms is None:
            first = batch_at(self.records.view(), 0, source=self.place.path(LOG))
            if first is None:
                return NO_TIMESTAMP
            self._first_timestamp_ms = first.max_timestamp
        return self._first_timestamp_ms

    def batches(self, start_position: int = 0, end_position: int | None = None) -> Iterator[RecordBatch]:
        """Yield the batches from a byte position on; raise CorruptBatchError for an impossible size."""
        return batches_in(
            self.records.view(),
            start_position=start_position,
            end_position=end_position,
            reader=BatchReader.FILE,
            source=self.place.path(LOG),
        )

    def batch_at(self, position: int) -> RecordBatch:
        """Return the batch at a position that `translate_offset` found."""
        return next(self.batches(position))

    def translate_offset(self, offset: Offset, start_position: int = 0) -> BatchPlace | None:
        """Return the first batch, from `start_position` on, that ends at or after `offset`; None past the end.

        Since Kafka 4.1 base offsets are compared first, which matters where batches overlap.
        """
        position = max(self.offset_index.lookup(offset).position, start_position)
        if self._searches_base_offsets:
            return first_holding(self.records.view(), position, offset, self.batches)
        return first_ending_at_or_after(self.records.view(), position, offset, self.batches)

    def read(
        self, start_offset: Offset, max_bytes: int, *, end_position: int | None = None, min_one_message: bool = False
    ) -> SegmentRead | None:
        """Return up to `max_bytes` bytes from the batch of `start_offset` to `end_position`; None past the end.

        With `min_one_message` at least that batch. The last batch may be cut off; the first may begin earlier.
        """
        if max_bytes < 0:
            raise IllegalArgumentError(f"cannot read {max_bytes} bytes")
        found = self.translate_offset(start_offset)
        if found is None:
            return None
        limit_bytes = max(max_bytes, found.size_bytes) if min_one_message else max_bytes
        end_position = self.size_bytes if end_position is None else end_position
        data = self.records.view()[found.position : min(found.position + limit_bytes, end_position)]
        return SegmentRead(found.position, data, limit_bytes < found.size_bytes)

    def find_offset_by_timestamp(self, timestamp_ms: int, starting_offset: Offset) -> FoundOffset | None:
        """Return the first record at or after both the timestamp and the offset; None without one."""
        indexed = max(self.time_index.lookup(timestamp_ms).offset, starting_offset)
        position = self.offset_index.lookup(Offset(indexed)).position
        return first_record_since(self.batches(position), timestamp_ms, starting_offset)

    def read_next_offset(self) -> Offset:
        """Return the offset after the last batch, found from the last index entry on; the base offset if empty."""
        found = self.read(Offset(self.offset_index.last_offset), self.size_bytes)
        next_offset = self.base_offset
        if found is not None:
            for batch in self.batches(found.position):
                next_offset = batch.next_offset
        return next_offset

    def has_overflow(self) -> bool:
        """Return whether the last offset does not fit into 31 bits relative to the base offset."""
        next_offset = self.read_next_offset()
        return next_offset > self.base_offset and not fits_relative(self.base_offset, Offset(next_offset - 1))

    def append(
        self,
        data: Buffer,
        *,
        last_offset: Offset,
        max_timestamp: TimestampOffset,
        batches: Sequence[RecordBatch] | None = None,
    ) -> None:
        """Append a set of batches with the given last offset and largest timestamp; `batches` None is one batch.

        Raises SegmentOffsetOverflowError, and then nothing is written.
        """
        size_bytes = len(data)
        if size_bytes == 0:
            return
        position = self._write(data, last_offset)
        if batches is not None and len(batches) > 1 and self._indexes_each_batch:
            for batch in batches:
                self._count_in(
                    position,
                    batch.size_bytes,
                    batch.last_offset,
                    TimestampOffset(batch.max_timestamp, batch.last_offset),
                )
                position += batch.size_bytes
        else:
            self._count_in(position, size_bytes, last_offset, max_timestamp)

    def append_set(self, run: BatchRun, *, last_offset: Offset) -> None:
        """Append many batches as one append, whose last offset `last_offset` must fit.

        Raises SegmentOffsetOverflowError, and then nothing is written.
        """
        if not self._indexes_each_batch:
            self.append(run.data, last_offset=last_offset, max_timestamp=run.largest_timestamp)
            return
        position = self._write(run.data, last_offset)
        if len(run) <= self.entry_room and bool((np.diff(run.last_offsets) > 0).all()):
            if position == 0:
                self._first_timestamp_ms = TimeMs(int(run.max_timestamps[0]))
            self._bytes_since_index_entry = self.index_run(run, position, self._bytes_since_index_entry)
            return
        # An index may refuse one of the batches: those before have their entries then.
        start = 0
        columns = (run.ends.tolist(), run.last_offsets.tolist(), run.max_timestamps.tolist())
        for end, batch_last, timestamp in zip(*columns, strict=True):
            self._count_in(position + start, end - start, Offset(batch_last), TimestampOffset(timestamp, batch_last))
            start = end

    def _write(self, data: Buffer, last_offset: Offset) -> int:
        """Write the bytes of an append and return their position; raise SegmentOffsetOverflowError before that."""
        if not 0 <= last_offset - self.base_offset <= RELATIVE_OFFSET_MAX:  # `fits_relative`, without the call.
            raise SegmentOffsetOverflowError(self.base_offset, last_offset)
        records = self.records
        if records.size_bytes > SEGMENT_SIZE_BYTES_MAX - len(data):
            raise IllegalArgumentError(f"{len(data)} bytes are too many for {self!r}")
        return records.append(data)

    def _count_in(self, position: int, size_bytes: int, last_offset: Offset, max_timestamp: TimestampOffset) -> None:
        """Keep the largest timestamp of what stands at `position`, and add its index entry if one falls due."""
        if position == 0:
            self._first_timestamp_ms = TimeMs(max_timestamp.timestamp)
        largest = self._max_timestamp
        if largest is None:
            largest = self.max_timestamp
        if max_timestamp.timestamp > largest.timestamp:
            self._max_timestamp = max_timestamp
        if self._bytes_since_index_entry > self.index_interval_bytes:
            self.add_index_entry(last_offset, position)
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += size_bytes

    def append_run(self, run: BatchRun) -> None:
        """Append many batches with one write, equal to many calls of `append`; they must fit.

        Raises SegmentOffsetOverflowError and IllegalArgumentError, and then nothing is written.
        """
        if not len(run):
            return
        for last_offset in (Offset(int(run.last_offsets[0])), Offset(int(run.last_offsets[-1]))):
            if not fits_relative(self.base_offset, last_offset):
                raise SegmentOffsetOverflowError(self.base_offset, last_offset)
        size_bytes = len(run.data)
        if self.size_bytes > SEGMENT_SIZE_BYTES_MAX - size_bytes or len(run) > self.entry_room:
            raise IllegalArgumentError(f"{len(run)} batches of {size_bytes} bytes are too many for {self!r}")
        position = self.records.append(run.data)
        if position == 0:
            self._first_timestamp_ms = TimeMs(int(run.max_timestamps[0]))
        self._bytes_since_index_entry = self.index_run(run, position, self._bytes_since_index_entry)

    def index_run(self, run: BatchRun, position: int, bytes_since_index_entry: int) -> int:
        """Add the index entries of the batches from `position` on, and keep their largest timestamp.

        Return how many bytes there are since the last entry.
        """
        largest = self.max_timestamp
        indexed = self.time_index.last_entry.timestamp
        state = np.array((bytes_since_index_entry, largest.timestamp, largest.offset, indexed), np.int64)
        found = np.empty((4, len(run)), np.int64)
        headers = run.last_offsets, run.max_timestamps
        counts = find_entries(run.ends, headers, self.index_interval_bytes, state, found)
        since, timestamp, offset, _ = state.tolist()
        if timestamp > largest.timestamp:
            self._max_timestamp = TimestampOffset(timestamp, offset)
        self.offset_index.extend(found[0, : counts[0]], position + found[1, : counts[0]])
        self.time_index.extend(found[2, : counts[1]], found[3, : counts[1]])
        return int(since)

    def add_index_entry(self, last_offset: Offset, position: int) -> None:
        """Add an offset index entry, and a time index entry if the largest timestamp has grown."""
        self.offset_index.append(last_offset, position)
        largest = self.max_timestamp
        self.time_index.maybe_append(largest.timestamp, largest.offset)

    def close_time_index(self) -> None:
        """Add the last entry of the time index, the largest timestamp, to its reserved place."""
        largest = self.max_timestamp
        self.time_index.maybe_append(largest.timestamp, largest.offset, skip_full_check=True)

    def become_inactive(self) -> None:
        """Trim the indexes, as no batch is appended to the segment any more."""
        self.close_time_index()
        self.offset_index.trim()
        self.time_index.trim()

    def truncate_to(self, offset: Offset, *, now_ms: TimeMs) -> int:
        """Cut the log file at the batch that holds `offset`; return the number of bytes removed.

        The indexes are cut at the offset itself, and are as large as an active segment's afterwards.
        """
        found = self.translate_offset(offset)
        for index in (self.offset_index, self.time_index, self.txn_index):
            index.truncate_to(offset)
        self.grow_indexes()
        cut_bytes = 0
        if found is not None:
            cut_bytes = self.size_bytes - found.position
            self.records.truncate(found.position)
        if self.records.size_bytes == 0:
            self.created_ms = now_ms
            self._first_timestamp_ms = None
        self._bytes_since_index_entry = 0
        if self.max_timestamp.timestamp >= 0:
            self._max_timestamp = self._read_max_timestamp()
        return cut_bytes

    def _read_max_timestamp(self) -> TimestampOffset:
        indexed = self.time_index.last_entry
        behind = largest_timestamp(self.batches(self.offset_index.lookup(indexed.offset).position))
        return behind if behind.timestamp > indexed.timestamp else indexed

    def reset_indexes(self) -> None:
        """Drop all index entries, so that they can be rebuilt from the batches."""
        self.offset_index.reset()
        self.time_index.reset()
        self.txn_index.reset()
        self._max_timestamp = None

    def close(self) -> None:
        """Sync and close all files; before release 4.4 first add the last time index entry and trim the used indexes.

        An index entry that is refused is dropped, as in Kafka, so that every open log can be closed.
        """
        if not self._closes_untrimmed:
            if self._max_timestamp is not None:
                with suppress(RefusedError):
                    self.close_time_index()
            for index in (self._offset_index, self._time_index):
                if index is not None:
                    index.trim()
        self.records.sync()
        self.abandon()
