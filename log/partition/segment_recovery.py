"""Recover one segment: check every batch, cut at the first bad one, and rebuild the indexes.

Reading stops at the first batch that is damaged or incomplete; the segment is cut there. The checksum does not cover
the base offset and the leader epoch. Index entries are added per batch, not per append, so an index may get more
entries than the one it replaces; look-ups return the same.

Small files are read batch by batch. The headers of large files are scanned into columns first, if all are of magic 2
with ascending offsets; then only checksums, index entries and batches with a producer id are handled one by one. Both
ways have the same result.

Offsets that do not fit the segment raise SegmentOffsetOverflowError; `log.partition.recovery` then splits it. Offsets
that do not grow raise InvalidOffsetError, when an index entry falls due at them.

Source: org.apache.kafka.storage.internals.log.LogSegment.recover, 4.3.1.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from broker.ids import LeaderEpoch, Offset
from broker.units import MIB, TimeMs
from log.batches.batch import RecordBatch
from log.batches.in_buffer import batch_at
from log.batches.record_columns import BatchRun, HeaderColumns
from log.batches.scan import scan_headers
from log.codecs.crc import crc32c
from log.errors import (
    CorruptBatchError,
    IllegalArgumentError,
    IllegalStateError,
    InvalidRecordError,
    SegmentOffsetOverflowError,
)
from log.partition.epoch_cache import LeaderEpochCache
from log.partition.local_log import LocalLog
from log.partition.producer_append import AppendOrigin
from log.partition.producer_state import AppendAnalysis, ProducerState
from log.record import TimestampOffset
from log.segments.log_segments import Segments
from log.segments.rolling import RELATIVE_OFFSET_MAX, fits_relative
from log.segments.search import largest_timestamp
from log.segments.segment import Segment
from log.segments.txn_index import AbortedTransaction


@attrs.frozen(kw_only=True)
class RebuildRequest:
    """Hold the log's bounds and last shutdown, which decide what a rebuild reads."""

    log_start_offset: Offset
    last_offset: Offset
    had_clean_shutdown: bool
    now_ms: TimeMs


def rebuild_producer_state(producers: ProducerState, segments: Segments, request: RebuildRequest) -> None:
    """Rebuild `producers` to the state at `request.last_offset`, and write snapshots."""
    last_offset = request.last_offset
    snapshot_offsets = tuple(segment.base_offset for segment in segments.all[-2:])
    if producers.latest_snapshot_offset is None and request.had_clean_shutdown:
        for offset in (*snapshot_offsets, last_offset):
            producers.update_map_end_offset(offset)
            producers.take_snapshot()
        return
    was_empty_at_end = producers.is_empty and producers.map_end_offset >= last_offset
    producers.truncate_and_reload(request.log_start_offset, last_offset, request.now_ms)
    if last_offset > producers.map_end_offset and not was_empty_at_end:
        _replay(producers, segments, request, snapshot_offsets)
    producers.update_map_end_offset(last_offset)
    producers.take_snapshot()


def settle(segment: Segment, producers: ProducerState, analysis: AppendAnalysis, *, is_appended: bool = False) -> None:
    """Update `producers` with batches, and add their aborted transactions to the segment's index.

    `is_appended` separates a new append from batches that recovery reads again.
    """
    for append in analysis.appends:
        producers.update(append, is_placed=is_appended)
    for completed in analysis.completed:
        if completed.is_aborted:
            segment.txn_index.append(
                AbortedTransaction(
                    completed.producer_id,
                    completed.first_offset,
                    completed.last_offset,
                    producers.last_stable_offset_after(completed),
                )
            )
        producers.complete(completed)


def _replay(
    producers: ProducerState, segments: Segments, request: RebuildRequest, snapshot_offsets: tuple[Offset, ...]
) -> None:
    """Read the batches from where `producers` ends, with a snapshot at each of `snapshot_offsets` come to."""
    last_segment = segments.floor(request.last_offset)
    for segment in segments.between(Offset(producers.map_end_offset), request.last_offset):
        start_offset = Offset(max(segment.base_offset, producers.map_end_offset, request.log_start_offset))
        producers.update_map_end_offset(start_offset)
        if segment.base_offset in snapshot_offsets:
            producers.take_snapshot()
        end_position = _end_position(segment, request.last_offset if segment is last_segment else None)
        found = segment.translate_offset(start_offset)
        if found is not None:
            producers.replay(segment.batches(found.position, end_position))


def _end_position(segment: Segment, last_offset: Offset | None) -> int:
    """Return the position where the batch of `last_offset` begins, the end of the file if it is not in the segment."""
    found = None if last_offset is None else segment.translate_offset(last_offset)
    return segment.size_bytes if found is None else found.position


CHUNK_SIZE_BYTES: Final = MIB


def split_segment(local: LocalLog, segment: Segment, *, now_ms: TimeMs) -> list[Segment]:
    """Replace `segment` by indexable segments; return `segment` if no new one has its base offset, else nothing.

    Raises IllegalArgumentError if its last offset is not what overflows.
    """
    if not segment.has_overflow():
        raise IllegalArgumentError(f"{segment!r} ends within reach of its base offset: it cannot be split")
    parts: list[Segment] = []
    position = 0
    while position < segment.size_bytes:
        first = next(segment.batches(position), None)
        if first is None:
            raise IllegalStateError(f"{segment!r} has no whole batch at position {position}")
        part = local.new_cleaned_segment(Offset(first.base_offset), now_ms=now_ms)
        parts.append(part)
        copied_bytes = append_from(part, segment, position)
        if copied_bytes == 0:
            raise IllegalStateError(f"nothing of {segment!r} from position {position} fits a segment of its own")
        position += copied_bytes
    modified_ms = segment.modified_ms
    for part in parts:
        part.become_inactive()
        part.flush()
        part.set_modified_ms(modified_ms)
    return local.replace_segments(parts, [segment], now_ms=now_ms)


def append_from(segment: Segment, source: Segment, position: int) -> int:
    """Append the batches of `source` from `position` on that fit, chunk by chunk; return their size in bytes."""
    start, capacity_bytes = position, CHUNK_SIZE_BYTES
    while size_bytes := _append_chunk(segment, source, position, capacity_bytes):
        # A batch larger than the buffer makes it grow, and it stays so.
        capacity_bytes = max(capacity_bytes, size_bytes)
        position += size_bytes
    return position - start


def _append_chunk(segment: Segment, source: Segment, position: int, capacity_bytes: int) -> int:
    """Append the batches that fit one chunk, at least one if its offset can be indexed; return their size."""
    chunk: list[RecordBatch] = []
    size_bytes = 0
    for batch in source.batches(position):
        fits_chunk = not chunk or size_bytes + batch.size_bytes < capacity_bytes
        if not fits_relative(segment.base_offset, batch.last_offset) or not fits_chunk:
            break
        chunk.append(batch)
        size_bytes += batch.size_bytes
    if chunk:
        data = source.records.view()[position : position + size_bytes]
        largest = largest_timestamp(chunk)
        segment.append(data, last_offset=chunk[-1].last_offset, max_timestamp=largest, batches=chunk)
    return size_bytes


COLUMNS_FROM_BYTES: Final = MIB
"""Size from which headers are scanned into columns; for smaller files loading the compiled scan costs more time."""
_REPLICATION: Final = AppendOrigin.REPLICATION  # Named once, as in `log.batches.in_buffer`.
CHECKED_FROM: Final = 21  # The checksum of magic 2 covers a batch from its attributes to its end.


def recover_segment(segment: Segment, producers: ProducerState, epochs: LeaderEpochCache) -> int:
    """Rebuild the indexes of `segment` and cut it at the first bad batch; return the count of bytes cut.

    `producers` must be the state at the segment's base offset. Raises SegmentOffsetOverflowError, InvalidOffsetError.
    """
    # Old index entries may point behind the cut or into a damaged batch; none of them is trusted.
    segment.reset_indexes()
    headers = _regular_headers(segment) if segment.size_bytes >= COLUMNS_FROM_BYTES else None
    if headers is None:
        valid_bytes = _recover_batches(segment, producers, epochs)
    else:
        valid_bytes = _recover_columns(segment, headers, producers, epochs)
    cut_bytes = segment.size_bytes - valid_bytes
    segment.records.truncate(valid_bytes)
    # The time index gets its last entry, of the largest timestamp, as when a segment is rolled. Kafka then trims both
    # files; here none has room for more entries than were written.
    segment.close_time_index()
    return cut_bytes


def _recover_batches(segment: Segment, producers: ProducerState, epochs: LeaderEpochCache) -> int:
    """Recover batch by batch; return the size of the whole batches in bytes."""
    valid_bytes = indexed_bytes = 0
    try:
        for batch in segment.batches():
            batch.ensure_valid()
            last_offset = batch.last_offset
            if not fits_relative(segment.base_offset, last_offset):
                raise SegmentOffsetOverflowError(segment.base_offset, last_offset)
            if batch.max_timestamp > segment.max_timestamp.timestamp:
                segment.max_timestamp = TimestampOffset(batch.max_timestamp, last_offset)
            # As in Kafka, the entry points to the first batch that begins more than index.interval.bytes after the
            # batch of the last entry.
            if valid_bytes - indexed_bytes > segment.index_interval_bytes:
                segment.add_index_entry(last_offset, valid_bytes)
                indexed_bytes = valid_bytes
            valid_bytes += batch.size_bytes
            # Older batches have neither a leader epoch nor a producer. The epoch is taken as it stands, though no
            # checksum covers it; only a newer one counts, since later truncations cut older entries.
            if batch.magic >= 2:
                assign_newer(epochs, batch.partition_leader_epoch, batch.base_offset)
                _update_producers(segment, producers, batch)
                producers.update_map_end_offset(batch.next_offset)
    except (CorruptBatchError, InvalidRecordError):
        pass  # The batch is damaged or incomplete: the segment ends before it.
    return valid_bytes


def _update_producers(segment: Segment, producers: ProducerState, batch: RecordBatch) -> None:
    if batch.has_producer_id:
        settle(segment, producers, producers.analyze((batch,), _REPLICATION))


def assign_newer(epochs: LeaderEpochCache, epoch: LeaderEpoch, start_offset: Offset) -> None:
    """Assign a leader epoch to the cache if it is newer than the cache's latest epoch."""
    if epoch >= 0 and (epochs.latest_epoch is None or epoch > epochs.latest_epoch):
        epochs.assign(epoch, start_offset)


def _regular_headers(segment: Segment) -> HeaderColumns | None:
    """Return the headers of a segment; None unless all are of magic 2 with ascending offsets that the index can store.

    The columns cannot raise Kafka's errors at the right batch, so any other segment is left to `_recover_batches`.
    """
    headers = scan_headers(segment.records.view())
    relative = headers.last_offset - segment.base_offset
    is_regular = (
        len(headers) > 0
        and bool((headers.magic == 2).all())
        and int(relative[0]) >= 0
        and int(relative[-1]) <= RELATIVE_OFFSET_MAX
        and bool((np.diff(relative) > 0).all())
    )
    return headers if is_regular else None


def _recover_columns(
    segment: Segment, headers: HeaderColumns, producers: ProducerState, epochs: LeaderEpochCache
) -> int:
    """Recover from scanned headers with the result of `_recover_batches`; return the size of whole batches in bytes."""
    view = segment.records.view()
    count = known_count = _sound_count(view, headers)
    # A marker that cannot be read ends the segment too, but after its batch: Kafka adds the batch's size first. The
    # producers are known up to that batch only.
    for row in np.flatnonzero(headers.producer_id[:count] >= 0).tolist():
        batch = batch_at(view, int(headers.position[row]))
        assert batch is not None, row
        try:
            _update_producers(segment, producers, batch)
        except (CorruptBatchError, InvalidRecordError):
            count, known_count = row + 1, row
            break
    if count == 0:
        return 0
    _write_entries(segment, headers, count)
    newer = np.flatnonzero(np.diff(headers.partition_leader_epoch[:count], prepend=-1))
    # Equal epochs in a row change nothing, so only the first batch of each run is looked at.
    for row in newer.tolist():
        epoch = LeaderEpoch(int(headers.partition_leader_epoch[row]))
        assign_newer(epochs, epoch, Offset(int(headers.base_offset[row])))
    if known_count > 0:
        producers.update_map_end_offset(int(headers.last_offset[known_count - 1]) + 1)
    return int(headers.position[count - 1]) + int(headers.size_bytes[count - 1])


def _sound_count(view: memoryview, headers: HeaderColumns) -> int:
    """Return the count of batches before the first with a wrong checksum."""
    starts, crcs = (headers.position + CHECKED_FROM).tolist(), headers.crc.tolist()
    ends = (headers.position + headers.size_bytes).tolist()
    for row, (start, end, crc) in enumerate(zip(starts, ends, crcs, strict=True)):
        if crc32c(view[start:end]) != crc:
            return row
    return len(crcs)


def _write_entries(segment: Segment, headers: HeaderColumns, count: int) -> None:
    """Write the index entries of the first `count` batches, and set the segment's largest timestamp."""
    ends = headers.position[:count] + headers.size_bytes[:count]
    data = segment.records.view()[: int(ends[-1])]
    segment.index_run(BatchRun(data, ends, headers.last_offset[:count], headers.max_timestamp[:count]), 0, 0)
