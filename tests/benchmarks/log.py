"""How fast a log is, beside Kafka's own classes, aiokafka and kafka-python: everything in one table.

    python -m tests.benchmarks.log [--size 1GiB] [--rounds 3] [--only scan] [--folder DIR] [--json]

Parts: scan (every checksum, every record in columns; peak memory), append (encoding and appending), recovery,
compaction (1 million records, 100 thousand keys). Records have 100 bytes or 1 KiB, in batches of 100; `--size`
is how much of them, uncompressed, is written to each file. In each round everybody takes a turn; medians are shown.

CPU is the time of the working thread alone, on a shared machine the one to go by; ratios do. Java's does
not hold its collector's threads, in its favour. Without Maven and Java its columns stay empty.

Left out: the disk; files stay in the page cache. `--folder /dev/shm` keeps the machine's disk out altogether.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import attrs
from rich.console import Console
from rich.table import Table

from broker.units import format_size, parse_size
from log.codecs.compression import Codec
from tests.benchmarks import java_log, log_compaction
from tests.benchmarks.log_append import append_lines
from tests.benchmarks.log_files import CASES, PLAIN, Case, write_segment_file
from tests.benchmarks.log_recovery import recovery_lines
from tests.benchmarks.log_scan import scan_lines
from tests.benchmarks.report import describe_machine
from tests.benchmarks.rounds import Line, Took, in_turn, kafka_or_none, say
from tests.kafka.jvm import KafkaJvm

PARTS: Final = ("scan", "append", "recovery", "compaction")
RECORD_COUNT: Final = 1_000_000
KEY_COUNT: Final = 100_000
COMPACTION_CODECS: Final = (Codec.NONE, Codec.LZ4)
PACKAGES: Final = ("numpy", "numba", "crc32c", "cramjam", "zstandard", "aiokafka", "kafka-python")


@attrs.frozen(kw_only=True)
class Work:
    """What is to be measured, where, how often, and beside which Kafka."""

    parts: Sequence[str]
    size_bytes: int
    rounds: int
    folder: Path
    kafka: KafkaJvm | None


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
        lines = list(measured_lines(work))
    machine = describe_machine(*PACKAGES)
    title = f"The log: {format_size(options.size)} of records in batches of 100, medians of {options.rounds} rounds"
    (print_json if options.json else print_table)(title, machine, lines)
    return 0


def measured_lines(work: Work) -> Iterator[Line]:
    """Yield the lines of all parts; a file is written once for the parts that read it."""
    for case in CASES:
        readers = [part for part in ("scan", "recovery") if part in work.parts and reads(part, case)]
        if readers:
            yield from file_lines(case, readers, work)
    for case in CASES if "append" in work.parts else ():
        yield from append_lines(case, work.kafka, work.rounds, work.size_bytes, work.folder)
    for codec in COMPACTION_CODECS if "compaction" in work.parts else ():
        yield compaction_line(codec, work)


def reads(part: str, case: Case) -> bool:
    """Whether a part reads the file of a case: recovery those without codec."""
    return part == "scan" or case in PLAIN


def file_lines(case: Case, parts: Sequence[str], work: Work) -> Iterator[Line]:
    """Yield the lines of the parts that read a file."""
    ways: dict[str, Callable[..., list[Line]]] = {"scan": scan_lines, "recovery": recovery_lines}
    folder = work.folder / case.codec.label
    file = write_segment_file(case, folder, work.size_bytes)
    for part in parts:
        yield from ways[part](file, work.kafka, work.rounds)
    shutil.rmtree(folder)


def compaction_line(codec: Codec, work: Work) -> Line:
    """Return the line of a whole pass of the cleaner."""
    folder = work.folder / f"compaction-{codec.label}"
    folder.mkdir()
    say(f"compaction, {codec.label}: writing {RECORD_COUNT:,} records")
    log_compaction.write_log(folder / "prepared", codec, RECORD_COUNT, KEY_COUNT)

    contestants = {"ours": lambda: log_compaction.clean_copy(folder / "prepared", folder / "copy")}
    kafka = work.kafka
    if kafka is not None:
        contestants["Java"] = lambda: clean_java(kafka, folder)
    found = in_turn(contestants, work.rounds, f"compaction, {codec.label}")
    shutil.rmtree(folder)
    return Line(
        what="compaction",
        case=f"{log_compaction.VALUE_SIZE_BYTES} B {codec.label}",
        unit="M records/s",
        found=found,
        bound="hashing and looking up each key, and copying the survivors",
    )


def clean_java(kafka: KafkaJvm, folder: Path) -> Took:
    """Let Kafka clean a copy of the log; its rate, too, goes by the records of the log."""
    config = {"cleanup.policy": "compact", "segment.bytes": log_compaction.CONFIG.segment_size_bytes}
    times = java_log.clean(kafka, folder / "prepared" / log_compaction.DIRECTORY, config, scratch=folder)
    return attrs.evolve(times, count=RECORD_COUNT)


def print_table(title: str, machine: dict[str, str], lines: Sequence[Line]) -> None:
    """Print a table for people, and below it what bounds what."""
    rows = [line.row() for line in lines]
    table = Table(*(column for column in rows[0]))
    for row in rows:
        table.add_row(*map(cell, row.values()))
    console = Console(width=200)
    console.print(title, table, *(f"{line.what}, {line.case}: {line.bound}" for line in lines), sep="\n")
    console.print(", ".join(f"{name} {value}" for name, value in machine.items()), highlight=False)


def print_json(title: str, machine: dict[str, str], lines: Sequence[Line]) -> None:
    """Print one document."""
    rows = [{**line.row(), "bound": line.bound} for line in lines]
    print(json.dumps({"title": title, "machine": machine, "rows": rows}, indent=2))


def cell(value: Any) -> str:
    """Return what a table shows of a value."""
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
