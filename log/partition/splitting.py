"""Split a segment that contains an offset more than 2^31 - 1 above its base, which an index cannot store.

What it decides: where the segment is cut and what the new ones are called: each begins with the first batch that does
not fit the one before, and is named by that batch's first offset.

Constraints: all bytes stay, in their order; the new segments take the place of the old one as in compaction. Batches
are appended in chunks of up to 1 MiB, and a chunk is one append: that is where index entries fall.

Example: base 0, batches at 0 and at 3000000000: two segments, 0 and 3000000000.

Left out: a batch below its segment's base, after which all fits again, cannot be split; the log does not open.

Source: org.apache.kafka.storage.internals.log.{LocalLog.splitOverflowedSegment,LogSegment.appendFromFile}, trunk
1eb7644 (2024-10).
"""

from __future__ import annotations

from typing import Final

from broker.ids import Offset
from broker.units import MIB, TimeMs
from log.batches.batch import RecordBatch
from log.errors import IllegalArgumentError, IllegalStateError
from log.partition.local_log import LocalLog
from log.segments.rolling import fits_relative
from log.segments.search import largest_timestamp
from log.segments.segment import Segment

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
