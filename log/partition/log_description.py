"""Describe a log's offsets, segments, leader epochs and producers as one value.

Two logs with equal descriptions answer alike, except for the contents of their batches; tests and tools compare them.

Source: what LogManager, DescribeLogDirs and DescribeProducers show of a log.
"""

from __future__ import annotations

import attrs

from broker.ids import Offset, ProducerEpoch, ProducerId
from broker.units import SizeBytes, TimeMs
from log.files.checkpoints import EpochEntry
from log.partition.log_offsets import LogOffsets
from log.producers.entry import ProducerEntry
from log.record import TimestampOffset


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
