"""Find the index entries that an append of many batches adds, in one compiled walk.

What it decides: the entries that `Segment.append` (its twin) writes for the same batches, one by one.

Constraints: the arrays of entries have room for one a batch. Before its entry, a batch counts for the largest
timestamp, but not for the bytes since the last entry.

Source: org.apache.kafka.storage.internals.log.LogSegment.append, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from typing import Final

from broker.cluster import Int64Array
from broker.compiled import compiled_with

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
