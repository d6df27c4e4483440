"""Find the batches for many offsets or times in one segment.

Source: org.apache.kafka.storage.internals.log.LogSegment.{translateOffset,findOffsetByTimestamp}, 4.3.1.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from broker.cluster import Int64Array
from broker.compiled import compiled_with
from broker.errors import UsageError, shorten
from broker.ids import INT64_MAX, Offset
from log.batches.header_table import (
    BYTES_UP_TO_MAGIC,
    ENTRY_BYTES,
    SIZE_MIN,
    signed32,
    signed64,
    unsigned16,
    unsigned32,
)
from log.batches.record_columns import ByteArray
from log.errors import CorruptBatchError
from log.segments.file_names import LOG
from log.segments.segment import Segment

NOT_FOUND: Final = -1
NO_DAMAGE: Final = -1

HEADER_BYTES: Final = 61
MESSAGE_BYTES: Final = 26

# Rows of `found`.
LAST_OFFSET: Final = 0
POSITION: Final = 1
SIZE_BYTES: Final = 2


def batch_size(data: ByteArray, position: int) -> np.int64:
    """Return the size of the whole batch at `position` in bytes; 0 if none is left, -1 if the size is impossible."""
    left = len(data) - position
    if left <= BYTES_UP_TO_MAGIC:
        return np.int64(0)
    size = signed32(data, position + 8)
    if size < SIZE_MIN:
        return np.int64(-1)
    if left < ENTRY_BYTES + size:
        return np.int64(0)
    is_modern = 2 <= data[position + 16] < 128
    return ENTRY_BYTES + size if ENTRY_BYTES + size >= (HEADER_BYTES if is_modern else MESSAGE_BYTES) else np.int64(-1)


def last_offset_at(data: ByteArray, position: int) -> np.int64:
    """Return the last offset of the batch at `position`."""
    offset = signed64(data, position)
    return np.int64(offset + signed32(data, position + 23)) if 2 <= data[position + 16] < 128 else offset


def max_timestamp_at(data: ByteArray, position: int) -> np.int64:
    """Return the largest timestamp of the batch at `position`, -1 for magic 0."""
    magic = data[position + 16]
    if magic == 0:
        return np.int64(-1)
    return signed64(data, position + (35 if 2 <= magic < 128 else 18))


@compiled_with(
    unsigned16, unsigned32, signed32, signed64, batch_size, last_offset_at, max_timestamp_at, allocates=False
)
def find_batches(
    data: ByteArray, positions: Int64Array, offsets: Int64Array, timestamps: Int64Array, found: Int64Array
) -> int:
    """Find for each target the first batch, from its position on, with last offset and timestamp not below it.

    All arrays are int64[N], `found` int64[3, N]. Returns the position of a size that no batch can have, or -1.
    """
    for index in range(len(positions)):
        position = positions[index]
        found[LAST_OFFSET, index] = found[POSITION, index] = found[SIZE_BYTES, index] = NOT_FOUND
        while True:
            size = batch_size(data, position)
            if size < 0:
                return int(position)
            if size == 0:
                break
            last_offset = last_offset_at(data, position)
            if last_offset >= offsets[index] and max_timestamp_at(data, position) >= timestamps[index]:
                found[LAST_OFFSET, index] = last_offset
                found[POSITION, index] = position
                found[SIZE_BYTES, index] = size
                break
            position += size
    return NO_DAMAGE


_ANY: Final = np.iinfo(np.int64).min


@attrs.frozen(eq=False)
class BatchPlaces:
    """Hold the batch found for each of N targets: int64[N] columns, -1 if there is none."""

    last_offsets: Int64Array
    positions: Int64Array
    sizes_bytes: Int64Array


def find_offsets(segment: Segment, offsets: npt.ArrayLike) -> BatchPlaces:
    """Return for each offset the first batch whose last offset is at or above it; raise CorruptBatchError.

    Raises UsageError if `offsets` are no list of whole numbers of 64 bits.
    """
    targets = _targets("offsets", offsets)
    positions = segment.offset_index.lookup_many(targets).positions
    return _walk(segment, positions, targets, np.full(len(targets), _ANY))


def find_timestamps(segment: Segment, timestamps: npt.ArrayLike, starting_offset: Offset) -> BatchPlaces:
    """Return per time the first batch from `starting_offset` on that reaches it; raise CorruptBatchError.

    Raises UsageError if `timestamps` are no list of whole numbers of 64 bits, or `starting_offset` is none.
    """
    targets = _targets("timestamps", timestamps)
    _targets("starting_offset", [starting_offset])
    indexed = np.maximum(segment.time_index.lookup_many(targets).offsets, starting_offset)
    positions = segment.offset_index.lookup_many(indexed).positions
    return _walk(segment, positions, np.full(len(targets), starting_offset, dtype=np.int64), targets)


def _targets(name: str, given: npt.ArrayLike) -> Int64Array:
    """Return what is looked for as int64[N]; raise UsageError for another shape or kind."""
    try:
        numbers = np.asarray(given)
    except ValueError:  # Rows of different lengths.
        numbers = np.empty((0, 0))
    is_list = numbers.ndim == 1 and (numbers.dtype.kind in "iu" or not len(numbers))
    if not is_list or (numbers.dtype.kind == "u" and len(numbers) and int(numbers.max()) > INT64_MAX):
        raise UsageError(f"{name}: {shorten(repr(given))} is no list of whole numbers of 64 bits")
    return numbers.astype(np.int64)


def _walk(segment: Segment, positions: Int64Array, offsets: Int64Array, timestamps: Int64Array) -> BatchPlaces:
    found = np.empty((3, len(positions)), dtype=np.int64)
    data = np.frombuffer(segment.records.view(), dtype=np.uint8)
    damage = find_batches(data, positions, offsets, timestamps, found)
    if damage != NO_DAMAGE:
        raise CorruptBatchError(
            "the size is less than a batch can have", source=segment.place.path(LOG), position=damage
        )
    return BatchPlaces(found[LAST_OFFSET], found[POSITION], found[SIZE_BYTES])
