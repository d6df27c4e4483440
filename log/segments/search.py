"""Find a batch or record by offset or by time in a sequence of batches.

Source: org.apache.kafka.common.record.FileRecords.{searchForOffsetWithSize,searchForTimestamp,largestTimestampAfter},
4.3.1.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Final

import attrs

from broker.ids import LeaderEpoch, Offset
from broker.units import SizeBytes, TimeMs
from broker.values import value
from log.batches.batch import RecordBatch
from log.batches.in_buffer import OFFSET_AND_SIZE
from log.record import NO_TIMESTAMP, TimestampOffset, int64

_BEGINNING: Final = struct.Struct(">qi4xb6xi")
"""Of a batch of magic 2: base offset, size, magic, last offset delta."""


@value
class BatchPlace:
    """Hold a found batch: its last offset, the position of its first byte, its size in bytes."""

    last_offset: Offset
    position: int
    size_bytes: SizeBytes


@value
class SegmentRead:
    """Hold a view of the bytes read, their position, and whether the size limit cut the first batch."""

    position: int
    data: memoryview
    first_batch_incomplete: bool


@attrs.frozen
class FoundOffset:
    """Answer a ListOffsets query: a timestamp (-1 if not asked for), its offset and leader epoch."""

    timestamp_ms: TimeMs
    offset: Offset
    leader_epoch: LeaderEpoch | None


def first_ending_at_or_after(
    data: memoryview, position: int, offset: Offset, batches_from: Callable[[int], Iterable[RecordBatch]]
) -> BatchPlace | None:
    """Return the first batch at or after `position` whose last offset is at least `offset`.

    A small read passes a dozen batches, so no objects are made of those of magic 2. `batches_from` reads the others,
    and raises for damage.
    """
    end = len(data)
    while end - position >= _BEGINNING.size:
        base_offset, size, magic, last_offset_delta = _BEGINNING.unpack_from(data, position)
        size_bytes = OFFSET_AND_SIZE.size + size
        if magic < 2 or not _BEGINNING.size <= size_bytes <= end - position:
            break  # An old message, the end, or damage: the reader of batches knows.
        last_offset = Offset(int64(base_offset + last_offset_delta))
        if last_offset >= offset:
            return BatchPlace(last_offset, position, SizeBytes(size_bytes))
        position += size_bytes
    for batch in batches_from(position):
        if batch.last_offset >= offset:
            return BatchPlace(batch.last_offset, batch.position, batch.size_bytes)
    return None


def first_holding(
    data: memoryview, position: int, offset: Offset, batches_from: Callable[[int], Iterable[RecordBatch]]
) -> BatchPlace | None:
    """Return the batch at or after `position` that holds `offset`, else the next one; as Kafka since 4.1.

    A batch that begins at `offset` wins over one before it that reaches beyond `offset`: they overlap then.
    """
    found = first_ending_at_or_after(data, position, offset, batches_from)
    if found is None:
        return None
    following = found.position + found.size_bytes
    if len(data) - following < _BEGINNING.size:
        return found
    base_offset, size, magic, _ = _BEGINNING.unpack_from(data, following)
    if base_offset > offset or magic < 2 or OFFSET_AND_SIZE.size + size > len(data) - following:
        return found  # Nearly always: the next batch begins later.
    return _by_base_offset(batches_from(position), offset)


def _by_base_offset(batches: Iterable[RecordBatch], offset: Offset) -> BatchPlace | None:
    """Return the place of the batch that a walk by base offsets ends at."""
    previous: RecordBatch | None = None
    for batch in batches:
        if batch.base_offset == offset:
            return BatchPlace(batch.last_offset, batch.position, batch.size_bytes)
        if batch.base_offset > offset:
            held = previous if previous is not None and previous.last_offset >= offset else batch
            return BatchPlace(held.last_offset, held.position, held.size_bytes)
        previous = batch
    if previous is None or previous.last_offset < offset:
        return None
    return BatchPlace(previous.last_offset, previous.position, previous.size_bytes)


def first_record_since(
    batches: Iterable[RecordBatch], timestamp_ms: int, starting_offset: Offset
) -> FoundOffset | None:
    """Return the first record at or after `timestamp_ms` whose offset is at least `starting_offset`."""
    for batch in batches:
        if batch.max_timestamp < timestamp_ms:
            continue
        for record in batch.each_record():
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
