"""Logs, segments and batches for tests, made in one line each."""

from __future__ import annotations

from typing import Any, Final

import attrs
import pytest

from broker.clock import ManualClock
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch, build_marker
from log.batches.in_buffer import batches_in
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.partition.producer_append import AppendOrigin
from log.partition.recovery import LastShutdown
from log.record import ControlType, EndTransactionMarker, Record
from log.segments.search import largest_timestamp
from log.segments.segment import Segment
from log.segments.segment_files import SegmentPlace
from log.storage import MemoryStorage, Storage

DIRECTORY: Final = "topic-0"
NOW: Final = TimeMs(1_700_000_000_000)
EPOCH: Final = LeaderEpoch(3)
SEQUENCED: Final = BatchSpec(producer_id=ProducerId(5), producer_epoch=ProducerEpoch(0))


def config(**settings: Any) -> LogConfig:
    """A config by Kafka's names, with "_" for "."; small segments and many index entries if nothing else is said."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return LogConfig.parse({"segment.bytes": 300, "index.interval.bytes": 0, "segment.index.bytes": 1000, **named})


def memory(now_ms: int = NOW) -> MemoryStorage:
    return MemoryStorage(ManualClock(TimeMs(now_ms)))


def opened(storage: Storage | None = None, settings: LogConfig | None = None, **options: Any) -> PartitionLog:
    last_shutdown = options.pop("last_shutdown", LastShutdown())
    return PartitionLog.open(storage or memory(), DIRECTORY, settings or config(), last_shutdown, now_ms=NOW, **options)


def batch(count: int = 1, *, base_offset: int = 0, timestamp: int = NOW, value: bytes = b"", **spec: Any) -> bytes:
    """A batch of records with keys k0, k1, ...; `timestamp` grows by one a record."""
    records = [
        Record(Offset(base_offset + index), TimeMs(timestamp + index), b"k%d" % index, value) for index in range(count)
    ]
    return build_batch(BatchSpec(base_offset=Offset(base_offset), **spec), records)


def sized(size_bytes: int, **given: Any) -> bytes:
    """A batch of exactly so many bytes."""
    for length in range(size_bytes):
        made = batch(value=b"v" * length, **given)
        if len(made) == size_bytes:
            return made
    raise AssertionError(size_bytes)


def appended(log: PartitionLog, *batches: bytes, now_ms: int = NOW) -> list[Offset]:
    """Append batches as the leader, raise the high watermark, and return their first offsets."""
    offsets = [log.append_as_leader(each, leader_epoch=EPOCH, now_ms=TimeMs(now_ms)).first_offset for each in batches]
    log.update_high_watermark(log.log_end_offset)
    return offsets


def refused(log: PartitionLog, records: bytes, error: type[Exception], *, now_ms: int = NOW) -> str:
    """Append what is refused, see that nothing changed, and return the message."""
    before = log.state()
    with pytest.raises(error) as caught:
        log.append_as_leader(records, leader_epoch=EPOCH, now_ms=TimeMs(now_ms))
    assert log.state() == before
    log.check_invariants()
    return str(caught.value)


def segment(settings: LogConfig | None = None, *, base_offset: int = 0, storage: Storage | None = None) -> Segment:
    storage = storage or memory()
    storage.make_directory(DIRECTORY)
    return Segment(SegmentPlace(storage, DIRECTORY, Offset(base_offset)), settings or config(), now_ms=NOW)


def put(target: Segment, *sets: bytes) -> None:
    """Append sets of batches that have their offsets."""
    for data in sets:
        batches = tuple(batches_in(data))
        largest = largest_timestamp(batches)
        target.append(data, last_offset=batches[-1].last_offset, max_timestamp=largest, batches=batches)


def values(log: PartitionLog) -> list[tuple[int, bytes | None]]:
    """Every record of a log: its offset and value."""
    return [
        (record.offset, record.value)
        for each in log.segments
        for found in each.batches()
        for record in found.records()
        if record.offset >= log.log_start_offset
    ]


def append_sequenced(
    log: PartitionLog, count: int, *, leader_epoch: LeaderEpoch = EPOCH, transactional: bool = False
) -> None:
    """Append a batch of one idempotent producer, whose three keys come again, and show it to consumers."""
    start, known = log.log_end_offset, log.producers.producers
    spec = attrs.evolve(
        SEQUENCED, base_sequence=known[0].last_sequence + 1 if known else 0, is_transactional=transactional
    )
    records = [
        Record(Offset(n), TimeMs(NOW + start + n), b"key-%d" % ((start + n) % 3), b"value-%d" % (start + n))
        for n in range(count)
    ]
    log.append_as_leader(build_batch(spec, records), leader_epoch=leader_epoch, now_ms=NOW)
    log.update_high_watermark(log.log_end_offset)


def abort_sequenced(log: PartitionLog, *, leader_epoch: LeaderEpoch = EPOCH) -> None:
    """Append the marker that aborts the transaction of that producer, and show it to consumers."""
    marker = build_marker(SEQUENCED, EndTransactionMarker(ControlType.ABORT, 1), NOW)
    origin = AppendOrigin.COORDINATOR
    log.append_as_leader(marker, leader_epoch=leader_epoch, now_ms=NOW, origin=origin, transaction_version=0)
    log.update_high_watermark(log.log_end_offset)
