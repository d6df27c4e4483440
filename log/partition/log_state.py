"""What can be seen of a log from outside: its offsets, segments, leader epochs and producers, as one value.

Two logs of equal state answer alike, up to the contents of their batches; tests and tools compare states.

Source: what LogManager, DescribeLogDirs and DescribeProducers show of a log.
"""

from __future__ import annotations

import attrs

from broker.ids import Offset, ProducerEpoch, ProducerId
from broker.units import SizeBytes, TimeMs
from broker.values import value
from log.files.checkpoints import EpochEntry
from log.indexes.time_index import TimestampOffset
from log.producers.entry import ProducerEntry


@attrs.frozen
class SegmentState:
    """One segment: sizes, entries, and the largest timestamp with the offset it is filed under; (-1, base) without."""

    base_offset: Offset
    size_bytes: SizeBytes
    offset_entry_count: int
    time_entry_count: int
    max_timestamp: TimestampOffset


@attrs.frozen
class ProducerView:
    """What a log knows of one producer; numbers that are not known are -1, no open transaction is None."""

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
        """Return what `entry` says now."""
        return cls(*(getattr(entry, field.name) for field in attrs.fields(cls)))


@attrs.frozen(kw_only=True)
class LogState:
    """A log at one moment; `log_end_offset` is the next offset to be written.

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


@value(kw_only=True)
class AppendInfo:
    """What became of an append. A duplicate was not written: its offsets are those that it has in the log already.

    `max_timestamp` is that of the set appended; `log_append_time_ms` is -1 unless the leader's clock stamps.
    """

    first_offset: Offset
    last_offset: Offset
    max_timestamp: TimestampOffset
    log_append_time_ms: TimeMs
    log_start_offset: Offset
    is_duplicate: bool = False
