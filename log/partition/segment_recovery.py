"""Recover one segment: read every batch, keep what is whole, and write its indexes anew.

What it decides: where a segment that was not closed properly ends, and what its indexes hold.

Goals, most important first:
1. What is kept is whole: each batch has the right checksum and an offset that belongs into the segment.
2. The state of producers and the leader epochs are those of the batches kept.
3. As fast as checksums can be computed.

Constraints: reading stops at the first batch that is damaged or incomplete; all behind it is cut off. A batch is only
as good as its checksum, which does not cover the base offset and the leader epoch. Index entries are made per batch
here, not per append, so an index may come out longer than the one it replaces; look-ups answer alike.

How: small files batch by batch. Of large ones the headers are scanned into columns first, if all are of magic 2 and
their offsets grow as they should; then only checksums, index entries and the batches of producers are left to do one by
one. Both ways end alike.

Example: batches of 100 bytes with an interval of 256: the entries point to positions 300, 600, ...

Left out: offsets that do not fit the segment raise SegmentOffsetOverflowError; `log.partition.recovery` then splits
it. Offsets that do not grow raise InvalidOffsetError, when an index entry falls due at them.

Source: org.apache.kafka.storage.internals.log.LogSegment.recover, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from broker.ids import LeaderEpoch, Offset
from broker.units import MIB
from log.batches.batch import RecordBatch
from log.batches.batch_run import BatchRun
from log.batches.header_scan import scan_headers
from log.batches.in_buffer import batch_at
from log.batches.record_columns import HeaderColumns
from log.codecs.crc import crc32c
from log.errors import CorruptBatchError, InvalidRecordError, SegmentOffsetOverflowError
from log.partition.epoch_cache import LeaderEpochCache
from log.partition.producer_rebuild import settle
from log.producers.append import AppendOrigin
from log.producers.state import ProducerState
from log.record import TimestampOffset
from log.segments.rolling import RELATIVE_OFFSET_MAX, fits_relative
from log.segments.segment import Segment

COLUMNS_FROM_BYTES: Final = MIB
"""From this size on headers are scanned into columns; below, loading the compiled scan costs more than it saves."""
_REPLICATION: Final = AppendOrigin.REPLICATION  # Named once, as in `log.batches.in_buffer`.
CHECKED_FROM: Final = 21  # The checksum of magic 2 covers a batch from its attributes on.


def recover_segment(segment: Segment, producers: ProducerState, epochs: LeaderEpochCache | None) -> int:
    """Rebuild the indexes of `segment` and cut it at the first bad batch; return how many bytes were cut.

    `producers` must be the state at the segment's base offset. Raises SegmentOffsetOverflowError, InvalidOffsetError.
    """
    segment.reset_indexes()
    headers = _regular_headers(segment) if segment.size_bytes >= COLUMNS_FROM_BYTES else None
    if headers is None:
        valid_bytes = _recover_batches(segment, producers, epochs)
    else:
        valid_bytes = _recover_columns(segment, headers, producers, epochs)
    cut_bytes = segment.size_bytes - valid_bytes
    if cut_bytes > 0:
        segment.records.truncate(valid_bytes)
    segment.offset_index.trim()
    segment.close_time_index()
    segment.time_index.trim()
    return cut_bytes


def _recover_batches(segment: Segment, producers: ProducerState, epochs: LeaderEpochCache | None) -> int:
    """Recover batch by batch; return how many bytes are whole."""
    valid_bytes = indexed_bytes = 0
    try:
        for batch in segment.batches():
            batch.ensure_valid()
            last_offset = batch.last_offset
            if not fits_relative(segment.base_offset, last_offset):
                raise SegmentOffsetOverflowError(segment.base_offset, last_offset)
            if batch.max_timestamp > segment.max_timestamp.timestamp:
                segment.max_timestamp = TimestampOffset(batch.max_timestamp, last_offset)
            # As in Kafka, the entry points to the first batch that begins more than the interval after the last one.
            if valid_bytes - indexed_bytes > segment.index_interval_bytes:
                segment.add_index_entry(last_offset, valid_bytes)
                indexed_bytes = valid_bytes
            valid_bytes += batch.size_bytes
            if batch.magic >= 2:
                assign_newer(epochs, batch.partition_leader_epoch, batch.base_offset)
                _update_producers(segment, producers, batch)
                producers.update_map_end_offset(batch.next_offset)
    except (CorruptBatchError, InvalidRecordError):
        pass  # The batch is damaged: the segment ends before it.
    return valid_bytes


def _update_producers(segment: Segment, producers: ProducerState, batch: RecordBatch) -> None:
    if batch.has_producer_id:
        settle(segment, producers, producers.analyze((batch,), _REPLICATION))


def assign_newer(epochs: LeaderEpochCache | None, epoch: LeaderEpoch, start_offset: Offset) -> None:
    """Assign a leader epoch to the cache if it is newer than the latest one there."""
    if epochs is not None and epoch >= 0 and (epochs.latest_epoch is None or epoch > epochs.latest_epoch):
        epochs.assign(epoch, start_offset)


def _regular_headers(segment: Segment) -> HeaderColumns | None:
    """Return the headers of a segment, None unless all are of magic 2 with offsets that grow and fit."""
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
    segment: Segment, headers: HeaderColumns, producers: ProducerState, epochs: LeaderEpochCache | None
) -> int:
    """Recover from scanned headers, with the same outcome as `_recover_batches`; return how many bytes are whole."""
    view = segment.records.view()
    count = _sound_count(view, headers)
    # A damaged marker is damaged data too: the segment ends before it, as at a wrong checksum.
    for row in np.flatnonzero(headers.producer_id[:count] >= 0).tolist():
        batch = batch_at(view, int(headers.position[row]))
        assert batch is not None, row
        try:
            _update_producers(segment, producers, batch)
        except (CorruptBatchError, InvalidRecordError):
            count = row + 1
            break
    if count == 0:
        return 0
    _write_entries(segment, headers, count)
    newer = np.flatnonzero(np.diff(headers.partition_leader_epoch[:count], prepend=-1))
    # One look at each change of epoch does what asking at every batch does: equal epochs in a row change nothing.
    for row in newer.tolist():
        epoch = LeaderEpoch(int(headers.partition_leader_epoch[row]))
        assign_newer(epochs, epoch, Offset(int(headers.base_offset[row])))
    producers.update_map_end_offset(int(headers.last_offset[count - 1]) + 1)
    return int(headers.position[count - 1]) + int(headers.size_bytes[count - 1])


def _sound_count(view: memoryview, headers: HeaderColumns) -> int:
    """Return how many batches come before the first with a wrong checksum."""
    starts, crcs = (headers.position + CHECKED_FROM).tolist(), headers.crc.tolist()
    ends = (headers.position + headers.size_bytes).tolist()
    for row, (start, end, crc) in enumerate(zip(starts, ends, crcs, strict=True)):
        if crc32c(view[start:end]) != crc:
            return row
    return len(crcs)


def _write_entries(segment: Segment, headers: HeaderColumns, count: int) -> None:
    """Write the index entries of the first `count` batches, and note their largest timestamp."""
    ends = headers.position[:count] + headers.size_bytes[:count]
    data = segment.records.view()[: int(ends[-1])]
    segment.index_run(BatchRun(data, ends, headers.last_offset[:count], headers.max_timestamp[:count]), 0, 0)
