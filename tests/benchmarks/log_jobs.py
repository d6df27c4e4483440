"""What --jobs brings to `brokerside log`, and what it costs to recover a directory of many small partitions.

    python -m tests.benchmarks.log_jobs [--partitions 10000] [--rounds 3]

What it measures: CPU seconds of whole process trees. How much sooner two processes are done than one is said in CPU,
too, as a clock on a machine with other work says nothing: all of one process's seconds, divided by those of two jobs
without the less busy of the two that work. Results are compared: they do not depend on the number of jobs.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from log.codecs.compression import Codec
from tests.architecture.house import ROOT
from tests.benchmarks.engines import MAIN, POLL_SECONDS
from tests.benchmarks.log_files import Case, write_segment_file
from tests.benchmarks.process_tree import TICKS, processes_below, tree_cpu_seconds
from tests.log.samples import DIRECTORY, write_sample

SHARED: Final = Case(100, Codec.LZ4)
SHARED_BYTES: Final = 128 << 20  # A process is started for each 256 MiB.
PARTITIONS: Final = {"verify": 64, "stats": 16}
"""On how many partitions of so many bytes each command works: verify checks 2 GiB in the time of four starts."""
PARTITION_COUNT: Final = 10_000


def watched(words: list[str]) -> tuple[dict[int, float], float, bytes]:
    """Run a process; return the CPU seconds of it and each below it, those of all together, and what it printed."""
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(words, cwd=ROOT, stdout=printed, stderr=subprocess.DEVNULL)
        seen: dict[int, float] = {}
        whole = 0.0
        while process.poll() is None:
            with contextlib.suppress(KeyError):  # It has just ended.
                for pid, stat in processes_below(process.pid).items():
                    seen[pid] = sum(map(int, stat[11:13])) / TICKS
                whole = max(whole, tree_cpu_seconds(process.pid))
            time.sleep(POLL_SECONDS)
        assert process.returncode == 0, words
        printed.seek(0)
        return seen, whole, printed.read()


def speed_up(command: str, folder: Path, rounds: int) -> float:
    """Return how many times sooner two jobs are done than one, in CPU."""
    ratios = []
    for _ in range(rounds):
        words = [sys.executable, "-c", MAIN, "log", command, str(folder), "--quiet", "--jobs"]
        _, alone, printed = watched([*words, "1"])
        shared, _, also_printed = watched([*words, "2"])
        assert printed == also_printed, f"{command} answers otherwise with two jobs"
        less_busy = sorted(list(shared.values())[1:])[-2]  # The first starts the others, which start or work.
        ratios.append(alone / (sum(shared.values()) - less_busy))
    return statistics.median(ratios)


def speed_ups(rounds: int) -> dict[str, float]:
    """Return the speed-up of each command over its partitions of 128 MiB."""
    with tempfile.TemporaryDirectory() as name:
        made = write_segment_file(SHARED, Path(name) / "made", SHARED_BYTES).path
        for command, count in PARTITIONS.items():
            for number in range(count):
                place = Path(name) / command / f"topic-{number}"
                place.mkdir(parents=True)
                (place / made.name).hardlink_to(made)
        return {command: speed_up(command, Path(name) / command, rounds) for command in PARTITIONS}


def recovery_cpu_seconds(partition_count: int) -> float:
    """Return the CPU of recovering so many partitions of one small segment each, whose indexes are gone."""
    with tempfile.TemporaryDirectory() as name:
        write_sample("none", Path(name) / "made")
        first = min((Path(name) / "made" / DIRECTORY).glob("*.log"))
        for number in range(partition_count):
            place = Path(name) / "logs" / f"topic-{number}"
            place.mkdir(parents=True)
            shutil.copy(first, place)
        words = ["log", "recover", str(Path(name) / "logs"), "--in-place", "--yes", "--quiet", "--recovery-point", "0"]
        return watched([sys.executable, "-c", MAIN, *words])[1]


def main() -> None:
    """Print what is measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--partitions", type=int, default=PARTITION_COUNT)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for command, ratio in speed_ups(options.rounds).items():
        print(f"log {command} with two jobs: {ratio:.2f} times")
    print(f"{options.partitions:,} partitions recovered: {recovery_cpu_seconds(options.partitions):.1f} CPU s")


if __name__ == "__main__":
    main()
