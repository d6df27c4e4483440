"""How fast a log is, beside Kafka's own classes, aiokafka and kafka-python: everything in one table.

    python -m tests.benchmarks.log [--size 1GiB] [--rounds 3] [--only scan] [--folder DIR] [--json]

Parts: scan (every checksum, every record in columns; peak memory), append (encoding and appending), recovery (every
checksum, both indexes, leader epochs), compaction (1 million records, 100 thousand keys; log_cleaned.py). Records have
100 bytes or 1 KiB, in batches of 100. In each round everybody takes a turn; medians are shown. Appends are of 64 MiB of
records, which Kafka's MemoryRecordsBuilder takes as objects in memory and ours as columns. kafka-python scans the first
4 MiB of a file. Peak memory is that of a process that scans the file and nothing else, less imports, compilation and
the mapped file. Kafka recovers and cleans a copy each time; copying is not measured.

CPU is the time of the working thread alone, Java's without its collector's threads. Without Maven and Java its columns
stay empty. Files stay in the page cache; `--folder /dev/shm` keeps the machine's disk out altogether.
"""

from __future__ import annotations

import argparse
import importlib
import json
import mmap
import multiprocessing
import resource
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import attrs
from rich.console import Console
from rich.table import Table

from broker.ids import LeaderEpoch, Offset
from broker.units import MIB, TimeMs, format_size, parse_size
from log.batches.build import BatchSpec
from log.batches.build_columns import RUN_BYTES, PlainColumns, each_run
from log.batches.scan import scan
from log.codecs.compression import Codec
from log.codecs.crc import BytesLike
from log.log_config import LogConfig
from log.partition.epoch_cache import LeaderEpochCache
from log.partition.producer_state import ProducerState
from log.partition.segment_recovery import recover_segment
from log.segments.segment import Segment
from log.segments.segment_files import SegmentPlace
from log.storage import FileStorage
from tests.benchmarks import log_cleaned
from tests.benchmarks.log_files import (
    CASES,
    DIRECTORY,
    FIRST_TIMESTAMP,
    PLAIN,
    RECORDS_AT_ONCE,
    RECORDS_PER_BATCH,
    Case,
    CaseFile,
    batches,
    columns,
    write_segment_file,
)
from tests.benchmarks.report import describe_machine
from tests.benchmarks.rounds import Line, Took, in_turn, kafka_or_none, measured, say
from tests.kafka.jvm import KafkaJvm

PARTS: Final = ("scan", "append", "recovery", "compaction")
COMPACTION_CODECS: Final = (Codec.NONE, Codec.LZ4)
PACKAGES: Final = ("numpy", "numba", "crc32c", "cramjam", "zstandard", "aiokafka", "kafka-python")
SAMPLE_BYTES_MAX: Final = 64 * MIB
RUNS_A_TURN: Final = 3  # Runs of appends are short.
KAFKA_PYTHON_BYTES: Final = 4 * MIB


@attrs.frozen(kw_only=True)
class Work:
    """What is to be measured, where, how often, and beside which Kafka."""

    parts: Sequence[str]
    size_bytes: int
    rounds: int
    folder: Path
    kafka: KafkaJvm | None

    def line(
        self, what: str, case: str, ours: Callable[[], Took], java: Callable[[KafkaJvm], Took], **more: Any
    ) -> Line:
        """Let everybody take turns, and return the line; `more` are the unit, other contestants and peak memory."""
        kafka, others = self.kafka, more.pop("others", {})
        contestants = {"ours": ours} | others | ({} if kafka is None else {"Java": lambda: java(kafka)})
        found = in_turn(contestants, self.rounds, f"{what}, {case}")
        return Line(what=what, case=case, found=found, **({"unit": "M records/s"} | more))


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.log", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=parse_size, default="1GiB", help="of each file (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds (default: %(default)s)")
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; may be given again (default: all)")
    parser.add_argument("--folder", type=Path, help="where files are written (default: the system's)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder, prefix="log-"))
        kafka = kafka_or_none(stack)
        parts = options.only or PARTS
        work = Work(parts=parts, size_bytes=options.size, rounds=options.rounds, folder=Path(name), kafka=kafka)
        rows = [line.row() for line in measured_lines(work)]
    machine = describe_machine(*PACKAGES)
    title = f"The log: {format_size(options.size)} of records in batches of 100, medians of {options.rounds} rounds"
    if options.json:
        print(json.dumps({"title": title, "machine": machine, "rows": rows}, indent=2))
        return 0
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*map(cell, row.values()))
    Console(width=200).print(title, table, ", ".join(f"{name} {value}" for name, value in machine.items()), sep="\n")
    return 0


def cell(value: Any) -> str:
    """Return what a table shows of a value."""
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def measured_lines(work: Work) -> Iterator[Line]:
    """Yield the lines of all parts; a file is written once for the parts that read it."""
    for case in CASES:
        readers = [read for name, read, cases in READERS if name in work.parts and case in cases]
        if readers:
            folder = work.folder / case.codec.label
            file = write_segment_file(case, folder, work.size_bytes)
            for read in readers:
                yield read(file, work)
            shutil.rmtree(folder)
    for case in CASES if "append" in work.parts else ():
        yield append_line(case, work)
    for codec in COMPACTION_CODECS if "compaction" in work.parts else ():
        yield compaction_line(codec, work)


def java_took(kafka: KafkaJvm, what: str, count: float | None = None, **asked: Any) -> Took:
    """Let java/LogTimings.java run Kafka's side on files that are there; return the median run.

    `count` is what was done, by default the records.
    """
    answer = kafka.call("timing", what=what, **({"repeats": 1} | asked))
    wall_ns, cpu_ns = statistics.median(answer["wallNs"]), statistics.median(answer["cpuNs"])
    return Took(answer.get("records", 0) if count is None else count, wall_ns / 1e9, cpu_ns / 1e9)


# --- scan


def scan_line(file: CaseFile, work: Work) -> Line:
    """Read every record of a file to columns."""
    with file.path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        whole = mapped[:]
        start = whole[:KAFKA_PYTHON_BYTES]  # Half a batch at the end is passed over by every reader.
        others = {
            "aiokafka": lambda: measured(lambda: scan_records("aiokafka", whole)),
            "kafka-python": lambda: measured(lambda: scan_records("kafka", start)),
        }
        line = work.line(
            "scan",
            file.case.name,
            lambda: measured(lambda: scan_ours(memoryview(mapped))),
            lambda kafka: java_took(kafka, "scan", file=str(file.path)),
            others=others,
        )
    say("peak memory")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return attrs.evolve(line, peak_mib=round(float(pool.apply(_peak_of_scan, (str(file.path),))), 1))


def scan_ours(data: BytesLike) -> int:
    """Read every record to columns; return how many."""
    return sum(len(chunk) for chunk in scan(data))


def scan_records(package: str, data: bytes) -> int:
    """Iterate over every record with the reader of aiokafka, which is compiled, or of kafka-python."""
    records: Any = importlib.import_module(f"{package}.record.memory_records").MemoryRecords(data)
    count = 0
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        for _ in batch:
            count += 1
    return count


def _peak_of_scan(path: str) -> float:
    scan_ours(bytes(batches(Case(100, Codec.NONE), 0)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        scan_ours(memoryview(data))
        size_kib = len(data) >> 10
    return max(0.0, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before - size_kib) / 1024)


# --- append


def append_line(case: Case, work: Work) -> Line:
    """Encode and append the records of one case; files are written below the folder of the work."""
    with tempfile.TemporaryDirectory(prefix="append-", dir=work.folder) as name:
        folder, size_bytes = Path(name), min(work.size_bytes, SAMPLE_BYTES_MAX)
        sample = write_segment_file(Case(case.value_size_bytes, Codec.NONE), folder, size_bytes)
        chunks = [columns(case, first) for first in range(0, sample.record_count, RECORDS_AT_ONCE)]
        asked: dict[str, Any] = {
            "file": str(sample.path),
            "scratch": str(folder),
            "compression": case.codec.label,
            "batchRecords": RECORDS_PER_BATCH,
            "batchesAtOnce": max(1, RUN_BYTES // (sample.size_bytes * RECORDS_PER_BATCH // sample.record_count)),
            "repeats": RUNS_A_TURN,
        }
        return work.line(
            "encode and append",
            case.name,
            lambda: append_ours(case, chunks, folder / "ours"),
            lambda kafka: java_took(kafka, "append", **asked),
        )


def append_ours(case: Case, chunks: Sequence[PlainColumns], folder: Path) -> Took:
    """Return the median run of a turn, by the thread's own time: all records, a run of batches at a time."""
    runs = []
    for _ in range(RUNS_A_TURN):
        storage = FileStorage(folder)
        storage.make_directory(DIRECTORY)
        segment = Segment(SegmentPlace(storage, DIRECTORY, Offset(0)), LogConfig(), now_ms=TimeMs(FIRST_TIMESTAMP))

        def append(segment: Segment = segment) -> int:
            first = 0
            for records in chunks:
                spec = BatchSpec(Offset(first), codec=case.codec, partition_leader_epoch=LeaderEpoch(0))
                for run in each_run(spec, records, RECORDS_PER_BATCH):
                    segment.append_run(run)
                first += len(records)
            return first

        runs.append(measured(append))
        segment.close()
        shutil.rmtree(folder)
    return sorted(runs, key=lambda run: run.cpu_s)[RUNS_A_TURN // 2]


# --- recovery


def recovery_line(file: CaseFile, work: Work) -> Line:
    """Recover a segment, which is whole."""
    asked: dict[str, Any] = {"directory": str(file.directory), "scratch": str(file.directory.parent), "baseOffset": 0}
    return work.line(
        "recovery",
        file.case.name,
        lambda: recover_ours(file),
        lambda kafka: java_took(kafka, "recover", file.size_bytes, **asked),
        unit="GB/s",
    )


def recover_ours(file: CaseFile) -> Took:
    """Recover the segment, and leave its indexes behind."""
    storage = FileStorage(file.directory.parent)
    segment = Segment(SegmentPlace(storage, DIRECTORY, Offset(0)), LogConfig(), now_ms=TimeMs(FIRST_TIMESTAMP))
    producers = ProducerState.open(storage, DIRECTORY, name=DIRECTORY)
    epochs = LeaderEpochCache.open(storage, f"{DIRECTORY}/leader-epoch-checkpoint")

    def run() -> int:
        assert recover_segment(segment, producers, epochs) == 0
        return file.size_bytes

    took = measured(run)
    segment.close()
    return took


READERS: Final[tuple[tuple[str, Callable[[CaseFile, Work], Line], tuple[Case, ...]], ...]] = (
    ("scan", scan_line, CASES),
    ("recovery", recovery_line, PLAIN),
)
"""The parts that read a file, and of which cases."""


# --- compaction


def compaction_line(codec: Codec, work: Work) -> Line:
    """Let the cleaner pass over a whole log; rates go by the records of the log."""
    folder = work.folder / f"compaction-{codec.label}"
    folder.mkdir()
    say(f"compaction, {codec.label}: writing {log_cleaned.RECORD_COUNT:,} records")
    prepared = folder / "prepared"
    log_cleaned.write_log(prepared, codec)
    asked: dict[str, Any] = {
        "directory": str(prepared / log_cleaned.DIRECTORY),
        "scratch": str(folder),
        "config": {"cleanup.policy": "compact", "segment.bytes": log_cleaned.CONFIG.segment_size_bytes},
        "nowMs": log_cleaned.START_MS,
        "mapBytes": 128 * MIB,
    }
    line = work.line(
        "compaction",
        f"{log_cleaned.VALUE_SIZE_BYTES} B {codec.label}",
        lambda: log_cleaned.clean_copy(prepared, folder / "copy"),
        lambda kafka: java_took(kafka, "clean", log_cleaned.RECORD_COUNT, **asked),
    )
    shutil.rmtree(folder)
    return line


if __name__ == "__main__":
    sys.exit(main())
