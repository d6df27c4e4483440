"""Decide when a log rolls its active segment, and the base offset of the next one.

Every offset of a segment can be stored in its indexes: at most 2^31 - 1 above the base. No segment grows beyond
segment.bytes; one that is exactly full is not rolled before the next append. Age is counted in the records' own time
where they have one, so that an idle topic is not rolled for its age; neither is an empty segment.

Source: org.apache.kafka.storage.internals.log.{LogSegment.shouldRoll,RollParams} and kafka.log.UnifiedLog.maybeRoll,
4.3.1.
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from broker.cluster import Int64Array
from broker.compiled import compiled_with
from broker.ids import INT32_MAX, Offset
from broker.units import DurationMs, SizeBytes, TimeMs
from broker.values import value
from log.batches.record_columns import BatchRun
from log.log_config import LogConfig

# What `state` holds.
BYTES_SINCE_ENTRY: Final = 0
LARGEST_TIMESTAMP: Final = 1
OFFSET_OF_LARGEST: Final = 2
LAST_INDEXED_TIMESTAMP: Final = 3


@compiled_with(allocates=False)
def find_entries(
    ends: Int64Array,
    headers: tuple[Int64Array, Int64Array],
    interval_bytes: int,
    state: Int64Array,
    entries: Int64Array,
) -> tuple[int, int]:
    """Return the numbers of offset and time index entries that B batches add, and update `state`.

    `ends` int64[B] says where each batch ends, the first one beginning at 0; `headers` are last offsets and largest
    timestamps, int64[B] each. Rows of `entries` int64[4, B] are filled: offsets, positions; timestamps, offsets.
    """
    last_offsets, max_timestamps = headers
    offset_count = time_count = 0
    position = 0
    for batch in range(len(ends)):
        if max_timestamps[batch] > state[LARGEST_TIMESTAMP]:
            state[LARGEST_TIMESTAMP], state[OFFSET_OF_LARGEST] = max_timestamps[batch], last_offsets[batch]
        if state[BYTES_SINCE_ENTRY] > interval_bytes:
            state[BYTES_SINCE_ENTRY] = 0
            entries[0, offset_count], entries[1, offset_count] = last_offsets[batch], position
            offset_count += 1
            if state[LARGEST_TIMESTAMP] > state[LAST_INDEXED_TIMESTAMP]:
                state[LAST_INDEXED_TIMESTAMP] = state[LARGEST_TIMESTAMP]
                entries[2, time_count], entries[3, time_count] = state[LARGEST_TIMESTAMP], state[OFFSET_OF_LARGEST]
                time_count += 1
        state[BYTES_SINCE_ENTRY] += ends[batch] - position
        position = ends[batch]
    return offset_count, time_count


RELATIVE_OFFSET_MAX: Final = INT32_MAX
"""The greatest distance from the base offset that an index entry can hold."""


class ActiveSegment(Protocol):
    """Define the properties of the active segment that rolling reads."""

    @property
    def base_offset(self) -> Offset:
        """Return the first offset that the segment may hold."""
        ...

    @property
    def size_bytes(self) -> SizeBytes:
        """Return the size of the log file in bytes."""
        ...

    @property
    def is_index_full(self) -> bool:
        """Return whether the offset or time index is full."""
        ...

    @property
    def entry_room(self) -> int:
        """Return the number of entries that both indexes can still take."""
        ...

    @property
    def first_timestamp_ms(self) -> TimeMs:
        """Return the largest timestamp of the first append, in milliseconds; -1 if there is none."""
        ...

    @property
    def created_ms(self) -> TimeMs:
        """Return when the segment was made or opened, in milliseconds."""
        ...

    @property
    def jitter_ms(self) -> DurationMs:
        """Return the milliseconds by which segment.ms is shortened for this segment."""
        ...


@value
class PendingAppend:
    """Describe an append that is about to happen; `max_timestamp_ms` is -1 without timestamps."""

    size_bytes: SizeBytes
    max_timestamp_ms: TimeMs
    last_offset: Offset
    now_ms: TimeMs


def should_roll(segment: ActiveSegment, append: PendingAppend, config: LogConfig) -> bool:
    """Return whether the log must roll to a new segment before `append`."""
    size_bytes = segment.size_bytes
    if size_bytes > config.segment_size_bytes - append.size_bytes:
        return True
    if size_bytes > 0 and waited_ms(segment, append) > config.segment_ms_max - segment.jitter_ms:
        return True
    return segment.is_index_full or not fits_relative(segment.base_offset, append.last_offset)


def count_before_roll(segment: ActiveSegment, run: BatchRun, config: LogConfig, now_ms: TimeMs) -> int:
    """Return the number of leading batches of `run` that certainly fit into the active segment.

    Where the answer is less than all, the next one may need a new segment: ask `should_roll`.
    """
    size_bytes = segment.size_bytes
    first_ms = segment.first_timestamp_ms if size_bytes > 0 else TimeMs(int(run.max_timestamps[0]))
    waits_ms = run.max_timestamps - first_ms if first_ms >= 0 else np.full(len(run), now_ms - segment.created_ms)
    may_roll = (
        (run.ends > config.segment_size_bytes - size_bytes)
        | (waits_ms > config.segment_ms_max - segment.jitter_ms)
        | (run.last_offsets < segment.base_offset)
        | (run.last_offsets > segment.base_offset + RELATIVE_OFFSET_MAX)
    )
    count = int(may_roll.argmax()) if may_roll.any() else len(run)
    return max(0, min(count, segment.entry_room))  # As if each batch got an index entry.


def waited_ms(segment: ActiveSegment, append: PendingAppend) -> DurationMs:
    """Return the segment's age in milliseconds: by record timestamps, else since its creation."""
    first_ms = segment.first_timestamp_ms
    return DurationMs(append.max_timestamp_ms - first_ms if first_ms >= 0 else append.now_ms - segment.created_ms)


def fits_relative(base_offset: Offset, offset: Offset) -> bool:
    """Return whether `offset` minus `base_offset` fits into 31 bits."""
    return 0 <= offset - base_offset <= RELATIVE_OFFSET_MAX


def new_base_offset(first_offset: Offset | None, last_offset: Offset) -> Offset:
    """Return the base offset of the next segment; before magic 2 the append's first offset may be unknown.

    If unknown, the result is the least base offset from which `last_offset` can be indexed.
    """
    return Offset(last_offset - RELATIVE_OFFSET_MAX) if first_offset is None else first_offset
