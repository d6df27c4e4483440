"""Find the batches for many offsets or times in one segment.

What it decides: for many offsets or times at once, which batch holds an offset (`Segment.translate_offset` answers for
one offset), or which batch may hold the first record at or after a time.

Goals, most important first: the same answers as one by one, at less than a microsecond each.

Constraints: answers have the order of the targets; -1 stands where there is none. Records are not looked at, so a batch
found by time may hold earlier ones too, and `Segment.find_offset_by_timestamp` must be asked for the record.

How: the index answers all targets in one search, then a compiled loop walks from there.

Example: find_offsets(segment, [0, 7, 10**9]).positions gives where the batches of 0 and 7 begin, and -1.

Left out: several segments; sort the targets by `Segments.floor` first.

Source: org.apache.kafka.storage.internals.log.LogSegment.{translateOffset,findOffsetByTimestamp}, trunk
1eb7644 (2024-10).
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from broker.cluster import Int64Array
from broker.errors import UsageError, shorten
from broker.ids import INT64_MAX, Offset
from log.errors import CorruptBatchError
from log.segments.file_names import LOG
from log.segments.lookups_kernel import LAST_OFFSET, NO_DAMAGE, POSITION, SIZE_BYTES, find_batches
from log.segments.segment import Segment

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
