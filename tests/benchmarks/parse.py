"""How fast a dump of a million partition lines is read, beside a bare loop that only splits its lines.

    python -m tests.benchmarks.parse [--lines 1000000] [--rounds 5] [--json]

What it measures: CPU time of reading one `kafka-topics --describe`, factor 3, into a ClusterView; the cases differ in
how the text was carried. The baseline is `for line in file: line.split()` over decoded lines, which throws the pieces
away. Parser and loop take turns; medians are shown. The file is in the page cache when it is read.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from placement.formats.read import read_dump
from tests.benchmarks.report import describe_machine, show
from tests.benchmarks.rounds import in_turn, process_cpu

BROKER_COUNT: Final = 1_000
CHUNK_SIZE_BYTES: Final = 1 << 20


@attrs.frozen(kw_only=True)
class Case:
    """A dump: partitions a topic, and how the text was carried."""

    topic_partition_count: int = 10
    separator: str = "\t"
    line_end: str = "\n"


CASES: Final = {
    "50 a topic": Case(topic_partition_count=50),
    "3 a topic": Case(topic_partition_count=3),
    "10 a topic, CRLF": Case(line_end="\r\n"),
    "10 a topic, spaces": Case(separator="    "),
}


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.parse", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--lines", type=int, default=1_000_000, help="lines of the dump (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="measured runs of each reader (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        dump = Path(directory) / "describe.txt"
        rows = []
        for name, case in CASES.items():
            write_dump(dump, options.lines, case)
            readers = {
                "ours": lambda: process_cpu(lambda: read_dump(chunks_of(dump), source=dump.name)),
                "loop": lambda: process_cpu(lambda: split(dump)),
            }
            found = in_turn(readers, options.rounds, name)
            ours_s, loop_s = (1 / found[reader].cpu_rate for reader in ("ours", "loop"))
            rows.append(
                {
                    "partitions": name,
                    "MiB": round(dump.stat().st_size / 2**20),
                    "ours CPU s": round(ours_s, 2),
                    "loop CPU s": round(loop_s, 2),
                    "times the loop": f"{ours_s / loop_s:.2f}",
                }
            )
    title = f"{options.lines:,} partition lines of kafka-topics --describe, factor 3: medians of {options.rounds}"
    show(title, describe_machine("numpy", "attrs"), rows, as_json=options.json)
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
            lines += [_partition_line(topic, first, partition) for partition in range(count)]
            dump.writelines(line.replace("\t", case.separator) + case.line_end for line in lines)


def _partition_line(topic: str, first: int, partition: int) -> str:
    brokers = ",".join(str((first + partition + 37 * step) % BROKER_COUNT) for step in range(3))
    leader = brokers.partition(",")[0]
    return (
        f"\tTopic: {topic}\tPartition: {partition}\tLeader: {leader}\tReplicas: {brokers}\tIsr: {brokers}"
        "\tElr: \tLastKnownElr: "
    )


def chunks_of(path: Path) -> Iterator[bytes]:
    """Yield the file's bytes, a mebibyte at a time."""
    with path.open("rb") as dump:
        while chunk := dump.read(CHUNK_SIZE_BYTES):
            yield chunk


def split(path: Path) -> None:
    """Split every line at white space."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            line.split()


if __name__ == "__main__":
    sys.exit(main())
