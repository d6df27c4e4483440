"""Logs to read, check and measure: every codec, transactions, and what compaction leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import DurationMs, SizeBytes, TimeMs
from log.batches.build import BatchSpec, build_batch, build_marker
from log.codecs.compression import Codec
from log.compaction import clean, log_to_clean
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.partition.producer_append import AppendOrigin
from log.record import ControlType, EndTransactionMarker, Header, Record
from log.storage import FileStorage

START_MS: Final = TimeMs(1_700_000_000_000)
DIRECTORY: Final = "topic-0"
CONFIG: Final = LogConfig(
    segment_size_bytes=SizeBytes(1500),
    index_size_bytes=SizeBytes(4096),
    index_interval_bytes=SizeBytes(100),
    retention_ms=DurationMs(-1),
    file_delete_delay_ms=DurationMs(10),
    compacts=True,
    min_cleanable_dirty_ratio=0.0,
)
SETTINGS: Final = {
    "segment.bytes": 1500,
    "segment.index.bytes": 4096,
    "index.interval.bytes": 100,
    "retention.ms": -1,
    "cleanup.policy": "compact,delete",
}
"""The same for Kafka."""


def write_sample(name: str, root: Path) -> PartitionLog:
    """Write the sample called `name` to topic-0 below `root`; return the log, which is closed."""
    log = PartitionLog.open(FileStorage(root), DIRECTORY, CONFIG, now_ms=START_MS)
    SAMPLES[name](log)
    log.close(now_ms=START_MS)
    return log


def append(log: PartitionLog, spec: BatchSpec, number: int) -> None:
    """Append a batch of three records whose keys come again."""
    now_ms = TimeMs(START_MS + 7 * number)
    records = [
        Record(
            Offset(index),
            TimeMs(now_ms + index),
            f"key-{(number + index) % 5}".encode(),
            None if (number + index) % 7 == 0 else f"value {number} {'x' * (number % 40)}".encode(),
            (Header("number", str(number).encode()), Header("none", None)) if index == 0 else (),
        )
        for index in range(3)
    ]
    log.append_as_leader(build_batch(spec, records), leader_epoch=LeaderEpoch(number // 20), now_ms=now_ms)
    log.update_high_watermark(log.log_end_offset)
    log.run_scheduled(now_ms)


def _with_codec(codec: Codec) -> Callable[[PartitionLog], None]:
    def write(log: PartitionLog) -> None:
        for number in range(60):
            append(log, BatchSpec(codec=codec), number)

    return write


def _transactions(log: PartitionLog) -> None:
    for number in range(60):
        producer = ProducerId(100 + number % 3)
        spec = BatchSpec(
            producer_id=producer,
            producer_epoch=ProducerEpoch(0),
            base_sequence=3 * (number // 3),
            is_transactional=True,
        )
        append(log, spec, number)
        if number % 6 >= 3:
            kind = ControlType.ABORT if number % 5 == 0 else ControlType.COMMIT
            marker = build_marker(
                BatchSpec(producer_id=producer, producer_epoch=ProducerEpoch(0), is_transactional=True),
                EndTransactionMarker(kind, 1),
                START_MS,
            )
            log.append_as_leader(
                marker,
                leader_epoch=LeaderEpoch(number // 20),
                now_ms=START_MS,
                origin=AppendOrigin.COORDINATOR,
                transaction_version=0,
            )


def _compacted(write: Callable[[PartitionLog], None]) -> Callable[[PartitionLog], None]:
    def write_and_clean(log: PartitionLog) -> None:
        write(log)
        now_ms = TimeMs(START_MS + 100_000)
        log.update_high_watermark(log.log_end_offset)
        before = log.size_bytes
        clean(log_to_clean(log, None, now_ms=now_ms), now_ms=now_ms)
        log.run_scheduled(TimeMs(now_ms + 1000))
        assert log.size_bytes < before

    return write_and_clean


SAMPLES: Final[dict[str, Callable[[PartitionLog], None]]] = {
    **{codec.name.lower(): _with_codec(codec) for codec in Codec},
    "transactions": _transactions,
    "compacted": _compacted(_with_codec(Codec.NONE)),
    "compacted-zstd": _compacted(_with_codec(Codec.ZSTD)),
    "compacted-transactions": _compacted(_transactions),
}
