"""Times of Kafka's own log classes, for benchmarks that print ratios of one run.

Each function lets java/LogTimings.java run the Java side on files that are there already: wall time, and CPU time of
the Java thread (garbage collection runs on other threads and is not counted, in Kafka's favour). The first runs are the
compiler's.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.rounds import Took
from tests.kafka.jvm import KafkaJvm

START_MS: Final = 1_700_000_000_000
MAP_BYTES: Final = 128 << 20


def took(kafka: KafkaJvm, what: str, *, repeats: int = 1, **asked: Any) -> Took:
    """Return the median run of a timing, its records as what was done."""
    answer = kafka.call("timing", what=what, repeats=repeats, **asked)
    wall_ns, cpu_ns = statistics.median(answer["wallNs"]), statistics.median(answer["cpuNs"])
    return Took(answer.get("records", 0), wall_ns / 1e9, cpu_ns / 1e9)


def scan(kafka: KafkaJvm, segment: Path) -> Took:
    """FileRecords.batches over a `.log`: CRC of every batch, then every record, decompressed."""
    return took(kafka, "scan", file=str(segment))


def encode_and_append(
    kafka: KafkaJvm,
    segment: Path,
    *,
    scratch: Path,
    compression: str,
    batch_records: int,
    batches_at_once: int,
    repeats: int,
) -> Took:
    """MemoryRecordsBuilder and LogSegment.append: the records of a `.log` (in memory before) encoded in new batches.

    `batches_at_once` go into the segment by one call; together they must have less than 4 MiB.
    Segments are written below `scratch` and removed. Memory for all records is needed: take 64 MiB or so.
    """
    sizes = {"compression": compression, "batchRecords": batch_records, "batchesAtOnce": batches_at_once}
    return took(kafka, "append", file=str(segment), scratch=str(scratch), repeats=repeats, **sizes)


def recover(kafka: KafkaJvm, directory: Path, *, scratch: Path) -> Took:
    """LogSegment.recover of the segment of base offset 0, which is copied below `scratch` before."""
    return took(kafka, "recover", directory=str(directory), scratch=str(scratch), baseOffset=0)


def clean(kafka: KafkaJvm, directory: Path, config: dict[str, Any], *, scratch: Path) -> Took:
    """Cleaner.clean of a whole closed log up to its active segment, which is copied below `scratch` before.

    `config` are Kafka's settings.
    """
    where: dict[str, Any] = {"directory": str(directory), "scratch": str(scratch), "config": config}
    return took(kafka, "clean", **where, nowMs=START_MS, mapBytes=MAP_BYTES)
