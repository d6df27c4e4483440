"""How fast a dump of a million partition lines is read, beside a bare loop that only splits its lines.

    python -m tests.benchmarks.parse [--lines 1000000] [--rounds 5] [--json]

What it measures: CPU time and peak memory of reading one `kafka-topics --describe` of a million
partition lines, three million replicas, into a ClusterView; topics' own lines come on top. The
cases differ in how many partitions a topic has and in how the text was carried. Beside the
parser runs the baseline, `for line in file: line.split("\t")` over decoded lines, which throws the
pieces away; text that has spaces for tabs is split at white space. The goal is a third of
the loop's speed: at most three times its seconds. Every measurement is a process of its own, parser and
loop in turn, so that the peaks of memory are separate; the loop's peak is what the imports take.

A process first reads a short dump of the same kind: the parser's compiled code is loaded then (and compiled, where
it never was). "load CPU s" says what that takes once a process; the parser's seconds are without it, and
the last column is the multiple with it.

Left out: the disk. The file is in the page cache when it is measured.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import attrs

from placement.formats.read import read_dump
from tests.benchmarks.report import describe_machine, show

BROKER_COUNT: Final = 1_000
CHUNK_SIZE_BYTES: Final = 1 << 20
WARM_UP_LINES: Final = 20_000


@attrs.frozen(kw_only=True)
class Case:
    """A dump: partitions a topic, whether lines end with the ELR columns of Kafka 4, and how the text was carried.

    Every `shrunken_step`-th partition has lost followers from its ISR; 0 for none.
    """

    topic_partition_count: int
    shrunken_step: int = 0
    has_elr: bool = False
    separator: str = "\t"
    line_end: str = "\n"


CASES: Final = {
    "50 a topic": Case(topic_partition_count=50),
    "20 a topic, ELR": Case(topic_partition_count=20, has_elr=True),
    "10 a topic": Case(topic_partition_count=10),
    "10 a topic, ISRs shrunk": Case(topic_partition_count=10, has_elr=True, shrunken_step=3),
    "3 a topic": Case(topic_partition_count=3),
    "10 a topic, ELR, CRLF": Case(topic_partition_count=10, has_elr=True, line_end="\r\n"),
    "10 a topic, ELR, spaces": Case(topic_partition_count=10, has_elr=True, separator="    "),
}


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.parse", description="Measure how fast a dump of a million lines is read."
    )
    parser.add_argument("--lines", type=int, default=1_000_000, help="lines of the dump (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="measured runs of each reader (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    parser.add_argument("--reader", choices=sorted(READERS), help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reader is not None:
        print(json.dumps(attrs.asdict(measure_here(READERS[options.reader], options.file))))
        return 0
    table = []
    with tempfile.TemporaryDirectory() as directory:
        dump = Path(directory) / "describe.txt"
        for name, case in CASES.items():
            write_dump(dump, options.lines, case)
            write_dump(warm_up_of(dump), WARM_UP_LINES, case)
            baseline = "split at tabs" if case.separator == "\t" else "split at white space"
            size_mib = dump.stat().st_size / 2**20
            table.append(row_of(name, size_mib, baseline, measure_in_turn(dump, baseline, options.rounds)))
    title = f"{options.lines:,} partition lines of kafka-topics --describe, factor 3: medians of {options.rounds}"
    show(title, describe_machine("numpy", "numba", "attrs"), table, as_json=options.json)
    return 0


def write_dump(path: Path, line_count: int, case: Case) -> None:
    """Write a describe of `line_count` partitions as Kafka prints it."""
    with path.open("w", encoding="utf-8", newline="") as dump:
        for first in range(0, line_count, case.topic_partition_count):
            count = min(case.topic_partition_count, line_count - first)
            topic = f"orders.events.v{first // case.topic_partition_count}"
            lines = [
                f"Topic: {topic}\tTopicId: {first:022d}\tPartitionCount: {count}\tReplicationFactor: 3\t"
                "Configs: min.insync.replicas=2,segment.bytes=1073741824"
            ]
            lines += [_partition_line(topic, first, partition, case) for partition in range(count)]
            dump.writelines(line.replace("\t", case.separator) + case.line_end for line in lines)


def _partition_line(topic: str, first: int, partition: int, case: Case) -> str:
    number = first + partition
    brokers = [str((number + 37 * step) % BROKER_COUNT) for step in range(3)]
    is_shrunken = case.shrunken_step > 0 and number % case.shrunken_step == 0
    in_sync = brokers[: 1 + number % 2] if is_shrunken else brokers
    line = (
        f"\tTopic: {topic}\tPartition: {partition}\tLeader: {brokers[0]}"
        f"\tReplicas: {','.join(brokers)}\tIsr: {','.join(in_sync)}"
    )
    if not case.has_elr:
        return line
    eligible = brokers[1:2] if len(in_sync) == 1 else []
    return f"{line}\tElr: {','.join(eligible)}\tLastKnownElr: "


def warm_up_of(dump: Path) -> Path:
    """Return where the short dump stands that is read before `dump`."""
    return dump.with_name("warm-up.txt")


def read_with_the_parser(path: Path) -> None:
    """Read the dump as every command does."""
    read_dump(chunks_of(path), source=path.name)


def split_at_tabs(path: Path) -> None:
    """Split every line at tabs."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            line.split("\t")


def split_at_white_space(path: Path) -> None:
    """Split every line at white space."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            line.split()


READERS: Final[dict[str, Callable[[Path], None]]] = {
    "parser": read_with_the_parser,
    "split at tabs": split_at_tabs,
    "split at white space": split_at_white_space,
}


def chunks_of(path: Path) -> Iterator[bytes]:
    """Yield the file's bytes, a mebibyte at a time."""
    with path.open("rb") as dump:
        while chunk := dump.read(CHUNK_SIZE_BYTES):
            yield chunk


@attrs.frozen
class Run:
    """One process: CPU seconds of reading the short dump and then the dump, and the peak resident MiB."""

    load_seconds: float
    seconds: float
    peak_mib: float


def measure_here(reader: Callable[[Path], None], path: Path) -> Run:
    """Measure this process."""
    begin = time.process_time()
    reader(warm_up_of(path))
    loaded = time.process_time()
    reader(path)
    end = time.process_time()
    return Run(loaded - begin, end - loaded, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def measure_in_turn(dump: Path, baseline: str, rounds: int) -> dict[str, list[Run]]:
    """Run parser and baseline `rounds` times in processes of their own, in turn, after one that is thrown away."""
    measured: dict[str, list[Run]] = {"parser": [], baseline: []}
    for turn in range(rounds + 1):
        for reader, runs in measured.items():
            command = [sys.executable, "-m", "tests.benchmarks.parse", "--reader", reader, "--file", str(dump)]
            run = Run(**json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
            if turn > 0:
                runs.append(run)
    return measured


def row_of(case: str, size_mib: float, baseline: str, measured: dict[str, list[Run]]) -> dict[str, object]:
    """Return one case's medians, and the parser's seconds as a multiple of the baseline's."""
    seconds = {reader: statistics.median(run.seconds for run in runs) for reader, runs in measured.items()}
    peaks = {reader: statistics.median(run.peak_mib for run in runs) for reader, runs in measured.items()}
    load_seconds = statistics.median(run.load_seconds for run in measured["parser"])
    return {
        "partitions": case,
        "MiB": round(size_mib),
        "parser CPU s": round(seconds["parser"], 3),
        "baseline": baseline,
        "baseline CPU s": round(seconds[baseline], 3),
        "parser / baseline": f"{seconds['parser'] / seconds[baseline]:.2f}",
        "peak MiB": round(peaks["parser"]),
        "baseline peak MiB": round(peaks[baseline]),
        "load CPU s": round(load_seconds, 2),
        "with load": f"{(load_seconds + seconds['parser']) / seconds[baseline]:.2f}",
    }


if __name__ == "__main__":
    sys.exit(main())
