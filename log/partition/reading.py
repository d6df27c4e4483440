"""Read a log by offset and by time.

Source: kafka.log.LocalLog.read and kafka.log.UnifiedLog.{fetchOffsetByTimestamp,searchOffsetInLocalLog}, 4.3.1
(2024-10).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import attrs

from broker.ids import LeaderEpoch, Offset
from broker.releases import Release
from broker.values import value
from log.errors import OffsetOutOfRangeError
from log.partition.log_offsets import LogOffsets
from log.record import NO_TIMESTAMP
from log.segments.log_segments import Segments
from log.segments.offset_index import OffsetPosition
from log.segments.search import FoundOffset, SegmentRead, known_epoch
from log.segments.segment import Segment
from log.segments.txn_index import AbortedTransaction

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP: Final = -6
_PENDING_UPLOAD_SINCE: Final = Release("4.2")
_NOT_REMOTE: Final = FoundOffset(NO_TIMESTAMP, Offset(-1), LeaderEpoch(-1))

UNKNOWN_POSITION: Final = -1
_EMPTY: Final = memoryview(b"")


class Isolation(Enum):
    """List how far a reader may read: to the log end, the high watermark, or the last stable offset."""

    LOG_END = "LOG_END"
    """All that is written: a follower."""
    HIGH_WATERMARK = "HIGH_WATERMARK"
    """What is replicated: a consumer."""
    COMMITTED = "TXN_COMMITTED"
    """What is replicated and decided: a consumer that reads committed transactions only."""


_LOG_END: Final = Isolation.LOG_END  # Named once, as in `log.batches.in_buffer`.


@value
class OffsetPlace:
    """Hold an offset, the base offset of its segment and the position of its batch; -1 if these are unknown."""

    offset: Offset
    segment_base_offset: Offset = attrs.field(default=Offset(UNKNOWN_POSITION))
    position: int = UNKNOWN_POSITION

    @property
    def is_known(self) -> bool:
        """Return whether segment and position are known."""
        return self.position != UNKNOWN_POSITION


@value
class ReadRequest:
    """Describe a read: start offset, byte limit, whether a first batch may exceed it, whether to list aborts."""

    start_offset: Offset
    max_bytes: int
    min_one_message: bool
    with_aborted: bool


@value
class FetchData:
    """Hold the bytes read, their position, whether the limit cut the first batch, and the aborted transactions.

    `aborted_transactions` is None unless committed transactions were asked for.
    """

    start: OffsetPlace
    records: memoryview
    first_batch_incomplete: bool = False
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None


def read_log(segments: Segments, request: ReadRequest, limit: OffsetPlace, end: OffsetPlace) -> FetchData:
    """Return the bytes for `request` below `limit` in a log that ends at `end`; raise OffsetOutOfRangeError."""
    start_offset = request.start_offset
    segment = segments.floor(start_offset)
    if start_offset > end.offset:
        raise OffsetOutOfRangeError(
            f"offset {start_offset} is not in the log, which has {segments.first.base_offset} to {end.offset}"
        )
    if start_offset >= limit.offset:
        place = place_of(segments, start_offset, end)
        return FetchData(place, _EMPTY, aborted_transactions=() if request.with_aborted else None)
    while segment is not None:
        fetched = _read_segment(segments, segment, request, limit, end)
        if fetched is not None:
            return fetched
        segment = segments.higher(segment.base_offset)
    # Compaction took the end of the last segment.
    return FetchData(end, _EMPTY)


def place_of(segments: Segments, offset: Offset, end: OffsetPlace) -> OffsetPlace:
    """Return the segment and the position in bytes at which an offset of the log is read; the log ends at `end`."""
    segment = segments.floor(offset)
    while segment is not None and offset < end.offset:
        found = segment.translate_offset(offset)
        if found is not None:
            return OffsetPlace(offset, segment.base_offset, found.position)
        segment = segments.higher(segment.base_offset)
    return end


def _read_segment(
    segments: Segments, segment: Segment, request: ReadRequest, limit: OffsetPlace, end: OffsetPlace
) -> FetchData | None:
    """Return what `request` gets from one segment, None if nothing at or after its start is in it."""
    if segment.base_offset < limit.segment_base_offset:
        end_position = int(segment.size_bytes)
    else:
        is_limit_here = segment.base_offset == limit.segment_base_offset and limit.is_known
        end_position = limit.position if is_limit_here else 0
    read = segment.read(
        request.start_offset, request.max_bytes, end_position=end_position, min_one_message=request.min_one_message
    )
    if read is None:
        return None
    aborted = None
    if request.with_aborted:
        aborted = _aborted_transactions(segments, segment, request.start_offset, read, end)
    place = OffsetPlace(request.start_offset, segment.base_offset, read.position)
    return FetchData(place, read.data, read.first_batch_incomplete, aborted)


def _aborted_transactions(
    segments: Segments, segment: Segment, start_offset: Offset, read: SegmentRead, end: OffsetPlace
) -> tuple[AbortedTransaction, ...]:
    """Return the aborted transactions that have records in what was read, or in a little more.

    The end of what was read is only estimated, by the offset index; too many transactions do no harm.
    """
    bound = segment.offset_index.upper_bound(OffsetPosition(start_offset, read.position), len(read.data))
    higher = segments.higher(segment.base_offset)
    upper_offset = end.offset if higher is None else higher.base_offset
    if bound is not None:
        upper_offset = Offset(bound.offset)
    found: list[AbortedTransaction] = []
    current: Segment | None = segment
    while current is not None:
        collected = current.txn_index.collect(start_offset, upper_offset)
        found.extend(collected.transactions)
        current = None if collected.is_complete else segments.higher(current.base_offset)
    return tuple(found)


def offset_of_max_timestamp(segments: Segments) -> FoundOffset | None:
    """Return the first record with the largest timestamp in the log; None if no record has a timestamp."""
    newest = max(segments, key=lambda segment: segment.max_timestamp.timestamp)
    largest = newest.max_timestamp
    position = newest.offset_index.lookup(largest.offset).position
    for batch in newest.batches(position):
        if batch.max_timestamp == largest.timestamp:
            for record in batch.records() if batch.magic > 0 else ():
                if record.timestamp == largest.timestamp:
                    return FoundOffset(batch.max_timestamp, record.offset, known_epoch(batch))
            return None
    return None


def first_offset_since(segments: Segments, timestamp_ms: int, log_start_offset: Offset) -> FoundOffset | None:
    """Return the first record at or after `timestamp_ms`, in the first segment that has such a record."""
    for segment in segments:
        if segment.largest_timestamp_ms >= timestamp_ms:
            return segment.find_offset_by_timestamp(timestamp_ms, log_start_offset)
    return None


def _asks_for_remote(timestamp_ms: int, release: Release) -> bool:
    if timestamp_ms == EARLIEST_PENDING_UPLOAD_TIMESTAMP:
        return release >= _PENDING_UPLOAD_SINCE
    return timestamp_ms == LATEST_TIERED_TIMESTAMP


class Reading:
    """Read one log."""

    __slots__ = ("_log",)

    def __init__(self, log: LogOffsets) -> None:
        self._log = log

    @property
    def end_place(self) -> OffsetPlace:
        """Return the log's end offset, with the base of the active segment and its size."""
        local = self._log.local
        active = local.segments.active
        return OffsetPlace(local.end_offset, active.base_offset, active.size_bytes)

    def read(self, request: ReadRequest, isolation: Isolation) -> FetchData:
        """Return a view of the bytes for `request`, bounded by `isolation`.

        Raises OffsetOutOfRangeError below the log start and above the log end.
        """
        log, end = self._log, self.end_place
        if request.start_offset < log.log_start_offset:
            raise OffsetOutOfRangeError(
                f"{log.directory}: offset {request.start_offset} is below the log start {log.log_start_offset}"
            )
        segments, limit = log.local.segments, end
        if isolation is not _LOG_END:
            high_watermark = log.placed_high_watermark()
            limit = place_of(segments, log.last_stable_offset if request.with_aborted else high_watermark, end)
        return read_log(segments, request, limit, end)

    def offset_by_timestamp(self, timestamp_ms: int) -> FoundOffset | None:
        """Return the first record at or after a time; -1: log end, -2 and -4: log start, -3: the latest record.

        Without remote storage, -5 and since 4.2 -6 ask for what is not there: timestamp, offset and epoch are -1.
        """
        log, epochs = self._log, self._log.epochs
        if timestamp_ms in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            earliest = epochs.earliest_entry
            if earliest is not None and earliest.start_offset > log.log_start_offset:
                earliest = None  # Of what stands before its start nobody knows the epoch.
            return FoundOffset(NO_TIMESTAMP, log.log_start_offset, None if earliest is None else earliest.epoch)
        if timestamp_ms == LATEST_TIMESTAMP:
            return FoundOffset(NO_TIMESTAMP, log.log_end_offset, epochs.latest_epoch)
        if _asks_for_remote(timestamp_ms, log.local.config.release):
            return _NOT_REMOTE
        if timestamp_ms == MAX_TIMESTAMP:
            return offset_of_max_timestamp(log.local.segments)
        return first_offset_since(log.local.segments, timestamp_ms, log.log_start_offset)
