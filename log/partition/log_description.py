"""Describe a log's offsets, segments, leader epochs and producers as one value.

Source: what LogManager, DescribeLogDirs and DescribeProducers show of a log.
"""

from __future__ import annotations

from itertools import pairwise

import attrs

from broker.ids import Offset, ProducerEpoch, ProducerId
from broker.units import SizeBytes, TimeMs
from log.partition.epoch_cache import LeaderEpochCache
from log.partition.log_offsets import LogOffsets
from log.partition.producer_entry import ProducerEntry
from log.record import TimestampOffset
from log.segments.rolling import fits_relative
from log.segments.segment import Segment
from log.storage.checkpoints import EpochEntry


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


@attrs.frozen
class SegmentState:
    """Describe one segment: sizes, entries, largest timestamp and that record's offset, or (-1, base offset)."""

    base_offset: Offset
    size_bytes: SizeBytes
    offset_entry_count: int
    time_entry_count: int
    max_timestamp: TimestampOffset


@attrs.frozen
class ProducerView:
    """Describe the state of one producer in a log; unknown numbers are -1, no open transaction is None."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    last_sequence: int
    last_data_offset: Offset
    last_offset_delta: int
    last_timestamp: TimeMs
    coordinator_epoch: int
    current_txn_first_offset: Offset | None

    @classmethod
    def of(cls, entry: ProducerEntry) -> ProducerView:
        """Return the current state of `entry`."""
        return cls(*(getattr(entry, field.name) for field in attrs.fields(cls)))


@attrs.frozen(kw_only=True)
class LogDescription:
    """Describe a log at one moment; `log_end_offset` is the offset of the next record.

    `leader_epochs` is None where none are kept: in a log that writes magic 0 or 1.
    """

    log_start_offset: Offset
    log_end_offset: Offset
    high_watermark: Offset
    last_stable_offset: Offset
    recovery_point: Offset
    segments: tuple[SegmentState, ...]
    leader_epochs: tuple[EpochEntry, ...] | None
    producers: tuple[ProducerView, ...]


def describe(log: LogOffsets) -> LogDescription:
    """Return the current description of `log`."""
    return LogDescription(
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        recovery_point=log.local.recovery_point,
        segments=tuple(
            SegmentState(
                segment.base_offset,
                segment.size_bytes,
                segment.offset_index.entry_count,
                segment.time_index.entry_count,
                segment.max_timestamp,
            )
            for segment in log.local.segments
        ),
        leader_epochs=None if log.epochs is None else log.epochs.entries,
        producers=tuple(map(ProducerView.of, log.producers.producers)),
    )
