"""How fast log files are read and written, beside aiokafka and kafka-python.

    python -m tests.benchmarks.log_scan [--mib 1024] [--rounds 3] [--peers-mib 16] [--folder DIR] [--json]

What it measures: a full scan (every checksum, every record to columns) and encoding (columns to batches of 100) of
records of 100 bytes and of 1 KiB, by codec, values of words (lz4 makes them about 1.7 times smaller). Files have
`--mib` mebibytes uncompressed, a quarter of that compressed; they are mapped and in the page cache. The peers iterate
over every record of the first `--peers-mib`, their checksums on. Rounds are taken in turn, medians are shown.

Beside wall time stands the thread's CPU time: on a shared machine only that can be compared. The last column is the
peak memory of a process that scans the file and nothing else, less what importing and compiling took and less the
mapped file itself.

`cases()` and `write_file()` are there for the same measurement of Kafka's own classes on the same files.

Left out: the disk.
"""

from __future__ import annotations

import argparse
import importlib
import mmap
import multiprocessing
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np

from broker.ids import Offset
from broker.units import MIB
from log.build_columns import PlainColumns, build_batches
from log.build_spec import BatchSpec
from log.compression import Codec
from log.crc import BytesLike
from log.scan import scan
from tests.benchmarks.report import describe_machine, show

RECORDS_PER_BATCH: Final = 100
RECORDS_AT_ONCE: Final = 20_000
TEXT_SIZE_BYTES: Final = 4 << 20
FIRST_TIMESTAMP: Final = 1_700_000_000_000
WORDS: Final = (
    b"alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike november oscar papa".split()
)


@attrs.frozen
class Case:
    """One file: how large its values are, and how it is compressed."""

    value_size_bytes: int
    codec: Codec

    @property
    def name(self) -> str:
        """Say so."""
        return f"{self.value_size_bytes} B {self.codec.label}"


def cases() -> tuple[Case, ...]:
    """Return what is measured."""
    return tuple(Case(size, codec) for size in (100, 1024) for codec in (Codec.NONE, Codec.LZ4, Codec.ZSTD))


def columns(case: Case, first: int) -> PlainColumns:
    """Return `RECORDS_AT_ONCE` records from the number `first` on: keys `key-N`, values cut out of a text of words."""
    generator = np.random.default_rng(first)
    keys = [b"key-%d" % number for number in range(first, first + RECORDS_AT_ONCE)]
    key_sizes = np.array([len(key) for key in keys], np.int64)
    text = text_of_words()
    data = np.frombuffer(text + b"".join(keys), np.uint8)
    return PlainColumns(
        data=data,
        timestamps=FIRST_TIMESTAMP + np.arange(first, first + RECORDS_AT_ONCE),
        key_positions=len(text) + np.cumsum(key_sizes) - key_sizes,
        key_sizes=key_sizes,
        value_positions=generator.integers(0, len(text) - case.value_size_bytes, RECORDS_AT_ONCE),
        value_sizes=np.full(RECORDS_AT_ONCE, case.value_size_bytes, np.int64),
    )


def text_of_words() -> bytes:
    """Return four mebibytes of words."""
    chosen = np.random.default_rng(7).integers(0, len(WORDS), TEXT_SIZE_BYTES // 6)
    return b" ".join(WORDS[index] for index in chosen)[:TEXT_SIZE_BYTES]


def pieces(case: Case) -> Iterator[BytesLike]:
    """Yield batches without end."""
    first = 0
    while True:
        yield build_batches(BatchSpec(Offset(first), codec=case.codec), columns(case, first), RECORDS_PER_BATCH)
        first += RECORDS_AT_ONCE


def write_file(case: Case, path: Path, size_bytes: int) -> int:
    """Write a file of about `size_bytes`; return how many records it holds."""
    written = count = 0
    with path.open("wb") as file:
        for piece in pieces(case):
            written += file.write(piece)
            count += RECORDS_AT_ONCE
            if written >= size_bytes:
                return count
    raise AssertionError("pieces have no end")


def scan_ours(data: BytesLike) -> int:
    """Read every record to columns; return how many."""
    return sum(len(chunk) for chunk in scan(data))


def scan_aiokafka(data: BytesLike) -> int:
    """Iterate over every record with aiokafka's compiled reader."""
    return _iterate(importlib.import_module("aiokafka.record.memory_records").MemoryRecords(bytes(data)))


def scan_kafka_python(data: BytesLike) -> int:
    """Iterate over every record with kafka-python."""
    return _iterate(importlib.import_module("kafka.record.memory_records").MemoryRecords(bytes(data)))


def _iterate(records: Any) -> int:
    count = 0
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        for _ in batch:
            count += 1
    return count


def encode(case: Case) -> Callable[[BytesLike], int]:
    """Return a measurement that encodes columns that are there already."""
    records = columns(case, 0)

    def run(_data: BytesLike) -> int:
        for _ in range(10):
            build_batches(BatchSpec(codec=case.codec), records, RECORDS_PER_BATCH)
        return 10 * RECORDS_AT_ONCE

    return run


def timed(run: Callable[[BytesLike], int], data: BytesLike) -> tuple[int, float, float]:
    """Return (records, wall seconds, CPU seconds of this thread) of one run."""
    wall, cpu = time.perf_counter(), time.thread_time()
    count = run(data)
    return count, time.perf_counter() - wall, time.thread_time() - cpu


def peak_mib(path: Path) -> float:
    """Return how much memory a scan takes beyond the mapped file, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return float(pool.apply(_peak_of_scan, (str(path),)))


def _peak_of_scan(path: str) -> float:
    scan_ours(bytes(build_batches(BatchSpec(), columns(Case(100, Codec.NONE), 0), RECORDS_PER_BATCH)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        scan_ours(memoryview(data))
        size_kib = len(data) >> 10
    return max(0.0, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before - size_kib) / 1024)


def measure(case: Case, options: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of the table for one file, a reader or writer each."""
    path = folder / "segment.log"
    size_bytes = options.mib * MIB if case.codec is Codec.NONE else options.mib * MIB // 4
    record_count = write_file(case, path, size_bytes)
    bytes_per_record = path.stat().st_size / record_count
    found: dict[str, list[tuple[float, float]]] = {}
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        memoryview(mapped) as whole,
    ):
        peers = prefix(mapped, options.peers_mib * MIB)
        runs: dict[str, tuple[Callable[[BytesLike], int], BytesLike]] = {
            "scan": (scan_ours, whole),
            "encode": (encode(case), b""),
            "aiokafka scan": (scan_aiokafka, peers),
            "kafka-python scan": (scan_kafka_python, prefix(mapped, len(peers) // 4)),
        }
        runs["scan"][0](peers)  # Compiled code is loaded here and by the first columns.
        for _ in range(options.rounds):
            for name, (run, data) in runs.items():
                count, wall, cpu = timed(run, data)
                found.setdefault(name, []).append((count / wall, count / cpu))
        runs.clear()
    peak = peak_mib(path)
    for name, rates in found.items():
        cpu_rate = statistics.median(cpu for _, cpu in rates)
        yield {
            "case": case.name,
            "what": name,
            "M records/s": statistics.median(wall for wall, _ in rates) / 1e6,
            "M records/CPU s": cpu_rate / 1e6,
            "file MB/CPU s": cpu_rate * bytes_per_record / 1e6,
            "x aiokafka": cpu_rate / statistics.median(cpu for _, cpu in found["aiokafka scan"]),
            "peak MiB": peak if name == "scan" else None,
        }


def prefix(data: mmap.mmap, size_bytes: int) -> bytes:
    """Return the first bytes; half a batch at the end is passed over by every reader."""
    return data[: min(size_bytes, len(data))]


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.log_scan", description=__doc__)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers-mib", type=int, default=16)
    parser.add_argument("--folder", type=Path, default=None, help="where the files are written; a temporary folder")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        rows = [row for case in cases() for row in measure(case, options, Path(name))]
    machine = describe_machine("numba", "crc32c", "cramjam", "zstandard", "aiokafka", "kafka-python")
    show("Log files, batches of 100 records", machine, rows, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
