"""What `brokerside report` costs in this process and on Spark, for dumps from small to large.

    python -m tests.benchmarks.engines [--rounds 3] [--cases small many million] [--json]

What it measures: user and system time of a whole fresh process, with its JVM and workers, from the command line to the
written page; medians of the rounds, in which the engines take turns. A round before them is not counted: it compiles
loops and modules, which an installation does once, whatever PYTHONDONTWRITEBYTECODE says. The dumps are made here, of
`kafka-topics --describe`: each partition's replicas are drawn, so that no cluster is even. The tables of both engines
are compared byte for byte before a figure is printed.

The aims of the local engine are 2 CPU s for 15 partitions, 6 for 300 dumps of 3,000 and 4.5 for a million partitions.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from broker.entropy import SplitMix64
from tests.architecture.house import ROOT
from tests.benchmarks.process_tree import tree_cpu_seconds
from tests.benchmarks.report import describe_machine, show

MAIN: Final = "from spark_analysis.cli import main; main()"
ENGINES: Final = ("local", "spark")
POLL_SECONDS: Final = 0.05


@attrs.frozen(kw_only=True)
class Case:
    """Dumps of clusters that are alike: how many, and their topics, partitions a topic and brokers."""

    name: str
    dump_count: int
    topic_count: int
    partition_count: int
    broker_count: int
    aim_cpu_s: float


CASES: Final = {
    "small": Case(
        name="1 dump of 15 partitions", dump_count=1, topic_count=3, partition_count=5, broker_count=5, aim_cpu_s=2.0
    ),
    "many": Case(
        name="300 dumps of 3,000", dump_count=300, topic_count=100, partition_count=30, broker_count=12, aim_cpu_s=6.0
    ),
    "million": Case(
        name="1 dump of 1,000,000",
        dump_count=1,
        topic_count=20_000,
        partition_count=50,
        broker_count=100,
        aim_cpu_s=4.5,
    ),
}


def write_dumps(folder: Path, case: Case) -> None:
    """Write the dumps of a case, whose replicas are drawn."""
    folder.mkdir()
    for number in range(case.dump_count):
        with (folder / f"cluster-{number:03d}.txt").open("w") as file:
            file.writelines(lines(case, SplitMix64(number)))


def lines(case: Case, source: SplitMix64) -> Iterator[str]:
    """Yield the lines of one dump."""
    for topic in range(case.topic_count):
        start = f"Topic: topic-{topic}\t"
        settings = "Configs: min.insync.replicas=2,segment.bytes=1073741824"
        yield f"{start}TopicId: Ab12cdEFghIJklMNopQRst\tPartitionCount: {case.partition_count}\tReplicationFactor: 3\t"
        yield f"{settings}\n"
        for partition in range(case.partition_count):
            first = source.next_int_bound(case.broker_count)
            step = 1 + source.next_int_bound(case.broker_count // 2 - 1)
            replicas = ",".join(str((first + step * place) % case.broker_count) for place in range(3))
            end = f"Leader: {first}\tReplicas: {replicas}\tIsr: {replicas}\tElr: \tLastKnownElr: \n"
            yield f"\t{start}Partition: {partition}\t{end}"


def cpu_seconds(words: list[str]) -> float:
    """Return the CPU of a process and of all that it starts."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(words, cwd=ROOT, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seen = 0.0
    while process.poll() is None:
        with contextlib.suppress(KeyError):  # It has just ended.
            seen = max(seen, tree_cpu_seconds(process.pid))
        time.sleep(POLL_SECONDS)
    assert process.returncode == 0, words
    return seen


def digests(out: Path) -> dict[str, str]:
    """Return the digest of each file of the tables."""
    paths = sorted((out / "tables").rglob("*.parquet"))
    return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def measured(case: Case, folder: Path, rounds: int) -> list[dict[str, object]]:
    """Return a row for each engine."""
    write_dumps(folder / "dumps", case)
    times: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    found = {}
    for _ in range(rounds + 1):
        for engine, taken in times.items():
            out = folder / engine
            words = ["report", str(folder / "dumps"), "--engine", engine, "--quiet", "--out", str(out)]
            taken.append(cpu_seconds([sys.executable, "-c", MAIN, *words]))
            found[engine] = digests(out)
    assert found["local"] == found["spark"], "the engines wrote different tables"
    return [
        {
            "input": case.name,
            "engine": engine,
            "CPU s": round(statistics.median(taken[1:]), 1),
            "least": round(min(taken[1:]), 1),
            "aim": case.aim_cpu_s if engine == "local" else None,
            "files": len(found[engine]),
        }
        for engine, taken in times.items()
    ]


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", nargs="+", choices=sorted(CASES), default=list(CASES))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name:
        for case in options.cases:
            folder = Path(name) / case
            folder.mkdir()
            rows += measured(CASES[case], folder, options.rounds)
    show("CPU of `brokerside report`", describe_machine("numpy", "pyarrow", "pyspark"), rows, as_json=options.json)


if __name__ == "__main__":
    main()
