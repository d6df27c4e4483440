"""How fast a dump of a million partition lines is read, beside a bare loop that only splits its lines.

    python -m tests.benchmarks.parse [--lines 1000000] [--rounds 5] [--json]

What it measures: CPU time and peak memory of reading one `kafka-topics --describe` of a million
partition lines, three million replicas, into a ClusterView. Beside it two loops that split every
line and throw the pieces away: one over text lines at white space, as a script would be written
first, and one over the undecoded bytes at tabs, which is the least that Python can do. The goal is a
third of the loop's speed. Every measurement is a process of its own, so that the peaks
of memory are separate; the loops' peak is what the imports take.

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

from placement.formats.read import read_dump
from tests.benchmarks.report import describe_machine, show

TOPIC_PARTITION_COUNT: Final = 100
BROKER_COUNT: Final = 1_000
CHUNK_SIZE_BYTES: Final = 1 << 20


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
        print(json.dumps(measure_here(READERS[options.reader], options.file)))
        return 0
    with tempfile.TemporaryDirectory() as directory:
        dump = Path(directory) / "describe.txt"
        write_dump(dump, options.lines)
        size_mib = dump.stat().st_size / 2**20
        measured = measure_in_turn(dump, options.rounds)
    title = f"{options.lines:,} partition lines of kafka-topics --describe, {size_mib:.0f} MiB: medians"
    show(title, describe_machine("numpy", "pyarrow"), rows_of(measured), as_json=options.json)
    return 0


def write_dump(path: Path, line_count: int) -> None:
    """Write a describe of topics of 100 partitions, factor 3, all replicas in sync, as Kafka 4 prints it."""
    with path.open("w", encoding="utf-8") as dump:
        for first in range(0, line_count, TOPIC_PARTITION_COUNT):
            count = min(TOPIC_PARTITION_COUNT, line_count - first)
            topic = f"orders.events.v{first // TOPIC_PARTITION_COUNT}"
            dump.write(
                f"Topic: {topic}\tTopicId: {first:022d}\tPartitionCount: {count}\tReplicationFactor: 3\t"
                "Configs: min.insync.replicas=2,segment.bytes=1073741824\n"
            )
            dump.writelines(_partition_line(topic, first, partition) for partition in range(count))


def _partition_line(topic: str, first: int, partition: int) -> str:
    brokers = ",".join(str((first + partition + 37 * step) % BROKER_COUNT) for step in range(3))
    leader = brokers.partition(",")[0]
    return (
        f"\tTopic: {topic}\tPartition: {partition}\tLeader: {leader}\tReplicas: {brokers}\tIsr: {brokers}"
        "\tElr: \tLastKnownElr: \n"
    )


def read_with_the_parser(path: Path) -> None:
    """Read the dump as every command does."""
    read_dump(chunks_of(path), source=path.name)


def split_text_lines(path: Path) -> None:
    """Split every decoded line at white space."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            line.split()


def split_byte_lines(path: Path) -> None:
    """Split every undecoded line at tabs."""
    with path.open("rb") as lines:
        for line in lines:
            line.split(b"\t")


READERS: Final[dict[str, Callable[[Path], None]]] = {
    "parser": read_with_the_parser,
    "bare loop, text": split_text_lines,
    "bare loop, bytes": split_byte_lines,
}


def chunks_of(path: Path) -> Iterator[bytes]:
    """Yield the file's bytes, a mebibyte at a time."""
    with path.open("rb") as dump:
        while chunk := dump.read(CHUNK_SIZE_BYTES):
            yield chunk


def measure_here(reader: Callable[[Path], None], path: Path) -> tuple[float, float]:
    """Return CPU seconds and the peak resident MiB of this process."""
    begin = time.process_time()
    reader(path)
    seconds = time.process_time() - begin
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_in_turn(dump: Path, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Run each reader `rounds` times in processes of their own, taking turns; return (seconds, peak MiB) of each."""
    measured: dict[str, list[tuple[float, float]]] = {reader: [] for reader in READERS}
    for _ in range(rounds):
        for reader, runs in measured.items():
            command = [sys.executable, "-m", "tests.benchmarks.parse", "--reader", reader, "--file", str(dump)]
            seconds, peak_mib = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            runs.append((seconds, peak_mib))
    return measured


def rows_of(measured: dict[str, list[tuple[float, float]]]) -> list[dict[str, object]]:
    """Return one row a reader: medians, and its speed as a share of each bare loop's."""
    seconds = {reader: statistics.median(run[0] for run in runs) for reader, runs in measured.items()}
    return [
        {
            "reader": reader,
            "CPU s": round(seconds[reader], 3),
            "peak MiB": round(statistics.median(run[1] for run in runs), 1),
            "speed / text loop": f"{seconds['bare loop, text'] / seconds[reader]:.2f}",
            "speed / bytes loop": f"{seconds['bare loop, bytes'] / seconds[reader]:.2f}",
        }
        for reader, runs in measured.items()
    ]


if __name__ == "__main__":
    sys.exit(main())
