"""How fast segments are read to columns, every checksum and every record, and in how much memory.

Kafka's own classes and aiokafka, checksums on, read the same file, all of it; kafka-python the first 4 MiB of it, as it
would take minutes. Peak memory is that of a process that scans the file and nothing else, less
what importing and compiling took and less the mapped file itself.

Left out: the disk. Files are mapped, or read by the peers, out of the page cache.
"""

from __future__ import annotations

import importlib
import mmap
import multiprocessing
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from broker.units import MIB
from log.batches.scan import scan
from log.codecs.compression import Codec
from log.codecs.crc import BytesLike
from tests.benchmarks import java_log
from tests.benchmarks.log_files import Case, CaseFile, batches
from tests.benchmarks.rounds import Line, Took, in_turn, measured, say
from tests.kafka.jvm import KafkaJvm

KAFKA_PYTHON_BYTES: Final = 4 * MIB
BOUNDS: Final = {
    Codec.NONE: "two fifths the checksums, two fifths the numbers of records, one varint after the other",
    Codec.LZ4: "two thirds lz4's own decompression, called batch by batch",
    Codec.ZSTD: "three quarters zstd's own decompression, called batch by batch",
}


def scan_lines(file: CaseFile, kafka: KafkaJvm | None, rounds: int) -> list[Line]:
    """Return the line of one file."""
    what = f"scan, {file.case.name}"
    with file.path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        whole = mapped[:]
        start = whole[:KAFKA_PYTHON_BYTES]  # Half a batch at the end is passed over by every reader.
        contestants: dict[str, Callable[[], Took]] = {
            "ours": lambda: measured(lambda: scan_ours(memoryview(mapped))),
            "aiokafka": lambda: measured(lambda: scan_aiokafka(whole)),
            "kafka-python": lambda: measured(lambda: scan_kafka_python(start)),
        }
        if kafka is not None:
            contestants["Java"] = lambda: java_log.scan(kafka, file.path)
        found = in_turn(contestants, rounds, what)
    say(f"{what}: peak memory")
    return [
        Line(
            what="scan",
            case=file.case.name,
            unit="M records/s",
            found=found,
            peak_mib=round(peak_mib(file.path), 1),
            bound=BOUNDS[file.case.codec],
        )
    ]


def scan_ours(data: BytesLike) -> int:
    """Read every record to columns; return how many."""
    return sum(len(chunk) for chunk in scan(data))


def scan_aiokafka(data: bytes) -> int:
    """Iterate over every record with aiokafka's compiled reader."""
    return _iterate(importlib.import_module("aiokafka.record.memory_records").MemoryRecords(data))


def scan_kafka_python(data: bytes) -> int:
    """Iterate over every record with kafka-python's reader."""
    return _iterate(importlib.import_module("kafka.record.memory_records").MemoryRecords(data))


def _iterate(records: Any) -> int:
    count = 0
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        for _ in batch:
            count += 1
    return count


def peak_mib(path: Path) -> float:
    """Return how much memory a scan takes beyond the mapped file, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return float(pool.apply(_peak_of_scan, (str(path),)))


def _peak_of_scan(path: str) -> float:
    scan_ours(bytes(batches(Case(100, Codec.NONE), 0)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        scan_ours(memoryview(data))
        size_kib = len(data) >> 10
    return max(0.0, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before - size_kib) / 1024)
