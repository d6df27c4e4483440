"""Finding a place in a row of batches: by offset, by time.

Decides which batch or record answers a look-up, once an index has said from where to read.

Goals: a look-up reads headers only, and records of the one batch that can hold the answer.

Constraints: batches come in the order of the file. An offset that no record has any more (compaction took it) is
answered by the batch that covers it. A time is answered by the first record in the log's order that is as late, which
need not be the one nearest in time.

Example: batches of 0-4, 5-9, 20-29: offset 10 is found in the last one.

Left out: the indexes, which `log.offset_index` and `log.time_index` search.

Source: org.apache.kafka.common.record.FileRecords.{searchForOffsetWithSize,searchForTimestamp,largestTimestampAfter},
trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from broker.ids import LeaderEpoch, Offset
from broker.units import SizeBytes, TimeMs
from log.batch import RecordBatch
from log.record import NO_TIMESTAMP
from log.time_index import TimestampOffset


@attrs.frozen
class BatchPlace:
    """A batch that was found: its last offset, the position of its first byte, its size."""

    last_offset: Offset
    position: int
    size_bytes: SizeBytes


@attrs.frozen
class SegmentRead:
    """Bytes that were read: the position of the first, a view of them, and whether the limit cut the first batch."""

    position: int
    data: memoryview
    first_batch_incomplete: bool


@attrs.frozen
class FoundOffset:
    """An answer to a question for a time: the record's time (-1 if none was asked for), its offset and leader epoch."""

    timestamp_ms: TimeMs
    offset: Offset
    leader_epoch: LeaderEpoch | None


def first_ending_at_or_after(batches: Iterable[RecordBatch], offset: Offset) -> BatchPlace | None:
    """Return the first batch whose last offset is `offset` or more."""
    for batch in batches:
        if batch.last_offset >= offset:
            return BatchPlace(batch.last_offset, batch.position, batch.size_bytes)
    return None


def first_record_since(
    batches: Iterable[RecordBatch], timestamp_ms: int, starting_offset: Offset
) -> FoundOffset | None:
    """Return the first record at or after `timestamp_ms` whose offset is at least `starting_offset`."""
    for batch in batches:
        if batch.max_timestamp < timestamp_ms:
            continue
        for record in batch.records():
            if record.timestamp >= timestamp_ms and record.offset >= starting_offset:
                return FoundOffset(record.timestamp, record.offset, known_epoch(batch))
    return None


def largest_timestamp(batches: Iterable[RecordBatch]) -> TimestampOffset:
    """Return the largest timestamp and the last offset of the first batch that has it; (-1, -1) without one."""
    largest, offset = NO_TIMESTAMP, Offset(-1)
    for batch in batches:
        if batch.max_timestamp > largest:
            largest, offset = batch.max_timestamp, batch.last_offset
    return TimestampOffset(largest, offset)


def known_epoch(batch: RecordBatch) -> LeaderEpoch | None:
    """Return the leader epoch of a batch, None if it has none."""
    return batch.partition_leader_epoch if batch.partition_leader_epoch >= 0 else None
