"""Small compacted logs in memory, written record by record, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import attrs

from broker.clock import ManualClock
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.releases import NEWEST, Release
from broker.units import DurationMs, TimeMs
from log.batches.build import BatchSpec, build_batch, build_marker
from log.codecs.compression import Codec
from log.compaction import Cleaned, CleanerOptions, clean, log_to_clean
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.partition.producer_append import AppendOrigin
from log.partition.recovery import LastShutdown
from log.record import ControlType, EndTransactionMarker, Record
from log.storage import MemoryStorage
from log.storage.protocol import Storage

START_MS: Final = TimeMs(1_700_000_000_000)
RETENTION_MS: Final = DurationMs(10_000)
DIRECTORY: Final = "topic-0"
EPOCH: Final = LeaderEpoch(3)

Pair: TypeAlias = tuple[bytes | None, bytes | None]


def config_of(**settings: Any) -> LogConfig:
    """Return the config of a compacted log; names with underscores for dots."""
    given = {"cleanup.policy": "compact", "delete.retention.ms": RETENTION_MS, "segment.bytes": 10_000}
    given |= {"min.cleanable.dirty.ratio": 0.0, "index.interval.bytes": 100, "segment.index.bytes": 1_200}
    return LogConfig.parse(given | {name.replace("_", "."): value for name, value in settings.items()})


@attrs.define
class Written:
    """A log, its clock, and every record of a producer that was appended to it, in order."""

    log: PartitionLog
    clock: ManualClock
    records: list[Record] = attrs.field(factory=list)
    aborted: set[int] = attrs.field(factory=set)
    """Offsets of records whose transaction was aborted."""
    _sequences: dict[int, int] = attrs.field(factory=dict)
    _open: dict[int, list[int]] = attrs.field(factory=dict)

    @classmethod
    def empty(cls, storage: Storage | None = None, *, release: Release = NEWEST, **settings: Any) -> Written:
        clock = ManualClock(START_MS)
        config = attrs.evolve(config_of(**settings), release=release)
        log = PartitionLog.open(storage or MemoryStorage(clock), DIRECTORY, config, now_ms=START_MS)
        return cls(log, clock)

    @property
    def now_ms(self) -> TimeMs:
        return self.clock.now_ms()

    def append(
        self, *pairs: Pair, producer: int = -1, transactional: bool = False, codec: Codec = Codec.NONE, magic: int = 2
    ) -> None:
        """Append one batch as the leader, replicated at once; with magic below 2, or a null key, as a follower."""
        start = self.log.log_end_offset
        records = [Record(Offset(start + n), self.now_ms, key, value) for n, (key, value) in enumerate(pairs)]
        sequence = self._sequences.get(producer, 0)
        spec = BatchSpec(
            base_offset=start,
            magic=magic,
            codec=codec,
            producer_id=ProducerId(producer),
            producer_epoch=ProducerEpoch(0 if producer >= 0 else -1),
            base_sequence=sequence if producer >= 0 else -1,
            is_transactional=transactional,
            partition_leader_epoch=EPOCH,
        )
        self.log.append_as_follower(build_batch(spec, records), now_ms=self.now_ms)
        self.replicate()
        self._sequences[producer] = sequence + len(pairs)
        self.records.extend(records)
        if transactional:
            self._open.setdefault(producer, []).extend(record.offset for record in records)

    def end_transaction(self, producer: int, kind: ControlType) -> None:
        """Append the marker that ends the transaction of a producer."""
        spec = BatchSpec(producer_id=ProducerId(producer), producer_epoch=ProducerEpoch(0), is_transactional=True)
        marker = build_marker(spec, EndTransactionMarker(kind, 0), self.now_ms)
        self.log.append_as_leader(
            marker, leader_epoch=EPOCH, now_ms=self.now_ms, origin=AppendOrigin.COORDINATOR, transaction_version=0
        )
        self.replicate()
        ended = self._open.pop(producer, [])
        if kind is ControlType.ABORT:
            self.aborted.update(ended)

    def replicate(self) -> None:
        self.log.update_high_watermark(self.log.log_end_offset)

    def roll(self) -> None:
        self.log.roll(now_ms=self.now_ms)

    def sleep(self, duration_ms: int) -> None:
        self.clock.advance(DurationMs(duration_ms))
        self.log.run_scheduled(self.now_ms)

    def clean(self, checkpoint: int | None = None, **options: Any) -> Cleaned:
        """Clean once, from the checkpoint on."""
        given = {"map_slot_count": 1_000, **options}
        target = log_to_clean(self.log, None if checkpoint is None else Offset(checkpoint), now_ms=self.now_ms)
        return clean(target, now_ms=self.now_ms, options=CleanerOptions(**given))

    def reopen(self, *, clean: bool = True) -> None:
        """Close the log and open it anew."""
        log = self.log
        log.close(now_ms=self.now_ms)
        shutdown = LastShutdown(clean=clean, recovery_point=log.recovery_point, log_start_offset=log.log_start_offset)
        self.log = PartitionLog.open(log.storage, DIRECTORY, log.config, shutdown, now_ms=self.now_ms)
        self.replicate()


def data_of(log: PartitionLog) -> list[Record]:
    """Return the records of producers that a log holds, without their sequences, in order."""
    return [
        attrs.evolve(record, sequence=-1)
        for segment in log.segments
        for batch in segment.batches()
        if not batch.is_control
        for record in batch.records()
    ]


def pairs_of(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return (offset, key, value) of the records of producers that a log holds."""
    return [(record.offset, record.key, record.value) for record in data_of(log)]


def bytes_of(log: PartitionLog, segments: Iterable[Any] | None = None) -> list[tuple[int, bytes]]:
    """Return (base offset, bytes) of the log files."""
    return [(segment.base_offset, bytes(segment.records.view())) for segment in segments or log.segments]
