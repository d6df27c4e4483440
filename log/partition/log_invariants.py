"""Assert the invariants of a log.

What it decides: nothing; asserts, as a broken invariant is our bug and nobody's input.

- Offsets: log start <= high watermark <= log end, last stable offset <= high watermark, recovery point <= log end. The
  last holds where the flush that follows a roll runs before the log is cut: run later, it moves the recovery point to
  the rolled segment's end, wherever the log ends by then (UnifiedLog.flush, 4.3.1).
- Segments: in order and without overlap, the last one active, all in use; none but the active one may be empty at the
  end of the log.
- Indexes are sound: entries ascend and lie in the segment, and reading from where an entry points finds its offset.
- Leader epochs ascend with their start offsets, and begin at or below the log's end.

The cost is linear in the index entries and in the batches between two of them. Tests and simulations call it after
each step.

Source: KAFKA-5634 and KIP-207 for the log start and the watermark, KIP-101 for the epochs; the rest follows from
`log.segments.segment` and `log.segments.rolling`.
"""

from __future__ import annotations

from itertools import pairwise

from broker.ids import Offset
from log.partition.epoch_cache import LeaderEpochCache
from log.partition.log_description import LogDescription
from log.segments.rolling import fits_relative
from log.segments.segment import Segment


def check_offsets(state: LogDescription) -> None:
    """Assert that a log's start, high watermark, last stable offset, recovery point and end are in order."""
    # The high watermark and the last stable offset may lie below a log start that is inside a batch: see LogOffsets.
    assert state.segments[0].base_offset <= state.high_watermark <= state.log_end_offset, state
    assert state.log_start_offset <= state.log_end_offset, state
    assert state.last_stable_offset <= state.high_watermark, state
    assert state.recovery_point <= state.log_end_offset, state
    assert state.segments, state
    assert state.segments[0].base_offset <= state.log_end_offset, state


def check_segments(segments: tuple[Segment, ...], start_offset: Offset, end_offset: Offset) -> None:
    """Assert that the segments of a log from `start_offset` to `end_offset` are in order, and each of them sound.

    Those below the start wait for deletion and may be damaged: recovery begins at the recovery point, which rises with
    the log start though nothing was flushed (UnifiedLog.updateLogStartOffset, 4.3.1).
    """
    for segment, following in pairwise(segments):
        assert segment.base_offset < following.base_offset, (segment, following)
    for index, segment in enumerate(segments):
        assert segment.suffix == "", segment
        is_active = index + 1 == len(segments)
        segment_end = end_offset if is_active else segments[index + 1].base_offset
        if is_active or segment_end > start_offset:
            check_segment(segment, segment_end)


def check_segment(segment: Segment, end_offset: Offset) -> None:
    """Assert that the batches of a segment lie between its base and `end_offset`, and that its indexes are sound."""
    positions: dict[int, int] = {}
    next_offset, position = int(segment.base_offset), 0
    for batch in segment.batches():
        assert batch.position == position, (segment, batch.position, position)
        assert batch.base_offset >= next_offset, (segment, batch.base_offset, next_offset)
        assert fits_relative(segment.base_offset, batch.last_offset), (segment, batch.last_offset)
        next_offset, position = batch.next_offset, batch.end_position
        positions[batch.position] = batch.last_offset
    assert position == segment.size_bytes, (segment, position)
    assert next_offset <= max(end_offset, segment.base_offset), (segment, next_offset, end_offset)
    check_indexes(segment, positions)


def check_indexes(segment: Segment, last_offset_by_position: dict[int, int]) -> None:
    """Assert that index entries ascend, and that each points to the batch of its offset or an earlier one."""
    entries = segment.offset_index.entries()
    previous = (segment.base_offset - 1, -1)
    for offset, position in zip(entries.offsets.tolist(), entries.positions.tolist(), strict=True):
        assert offset > previous[0], (segment, offset, position)
        assert position > previous[1], (segment, offset, position)
        assert position in last_offset_by_position, (segment, offset, position)
        assert last_offset_by_position[position] <= offset, (segment, offset, position)
        found = segment.translate_offset(Offset(offset))
        assert found is not None, (segment, offset)
        assert found.last_offset >= offset, (segment, offset, found)
        previous = (offset, position)
    times = segment.time_index.entries()
    last = (-1, -1)
    for timestamp, offset in zip(times.timestamps.tolist(), times.offsets.tolist(), strict=True):
        assert timestamp > last[0], (segment, timestamp, offset)
        assert offset >= last[1], (segment, timestamp, offset)
        last = (timestamp, offset)


def check_epochs(epochs: LeaderEpochCache | None, end_offset: Offset) -> None:
    """Assert that the leader epochs ascend, and that none begins above the log's end."""
    if epochs is not None:
        epochs.check_invariants()
        assert all(entry.start_offset <= end_offset for entry in epochs.entries), (epochs.entries, end_offset)
