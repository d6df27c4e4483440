"""What --jobs brings to `brokerside log`, and what it costs to recover a directory of many small partitions.

    python -m tests.benchmarks.log_jobs [--mib 2048] [--partitions 10000] [--rounds 3] [--commands verify stats ...]

What it measures: each command on the same partitions with one job and with two. `CPU` is how much sooner two jobs are
done in CPU seconds, as a clock on a machine with other work says little: all seconds of one job, divided by those of
two without the less busy of the two processes that work. `clock` is the same by the clock, to be read beside the load.
`at most` is what two processes could bring in CPU if they shared all but what the command takes for one small
partition: to load its modules and compiled loops. Medians of the rounds; what is printed and written is compared, byte
for byte, and does not depend on the number of jobs. `dump --out` takes no --jobs: one process writes its tables.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from broker.ids import LeaderEpoch, Offset
from broker.units import MIB
from log.batches.build import BatchSpec
from log.batches.build_columns import build_batches
from log.codecs.compression import Codec
from log.segments.file_names import LOG, file_name
from tests.architecture.house import ROOT
from tests.benchmarks.log_files import RECORDS_AT_ONCE, RECORDS_PER_BATCH, Case, columns, write_segment_file
from tests.benchmarks.process_tree import MAIN, POLL_SECONDS, TICKS, processes_below
from tests.benchmarks.report import describe_machine, show
from tests.log.samples import DIRECTORY, write_sample

CASE: Final = Case(100, Codec.LZ4)
PARTITION_BYTES: Final = 128 * MIB
PARTITION_COUNT: Final = 10_000
KEY_COUNT: Final = 200_000
DUMPED_SHARE: Final = 4
"""`dump` prints so much less of records: its text is longer than they are, and slower to print than to check."""
NOW: Final = ("--now-ms", "1800000000000")
CHECKPOINTS: Final = ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint")


@attrs.frozen
class Command:
    """Hold a command's words behind its path, what it reads, and where it writes: into OUT, or in place."""

    words: tuple[str, ...]
    reads: str
    in_place: bool = False


COMMANDS: Final = {
    "verify": Command(("verify",), "plain"),
    "stats": Command(("stats", *NOW), "plain"),
    "dump": Command(("dump", "--deep-iteration"), "dumped"),
    "compact --out": Command(("compact", "--topic", "topic", "--include-active", *NOW, "--out", "OUT"), "keyed"),
    "recover --out": Command(("recover", *NOW, "--out", "OUT"), "plain"),
    "recover --in-place": Command(("recover", *NOW, "--in-place", "--yes"), "plain", in_place=True),
}


@attrs.frozen
class Watched:
    """Hold what a command took, in seconds, and the digest of what it printed and wrote."""

    cpu: float
    path_cpu: float
    clock: float
    digest: str


def watched(words: Sequence[str], written: Path) -> Watched:
    """Run a command and return what it took."""
    with tempfile.TemporaryFile() as printed:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, "log", *words], cwd=ROOT, stdout=printed, stderr=subprocess.DEVNULL
        )
        below: dict[int, float] = {}
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            with contextlib.suppress(KeyError):  # It has just ended.
                for each, stat in processes_below(process.pid).items():
                    below[each] = sum(map(int, stat[11:13])) / TICKS
            time.sleep(POLL_SECONDS)
        clock = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, words
        below.pop(process.pid, None)
        cpu = usage.ru_utime + usage.ru_stime
        printed.seek(0)
        found = hashlib.file_digest(printed, "sha256")
    for path in sorted(path for path in written.rglob("*") if path.is_file()):
        found.update(f"{path.relative_to(written)} {hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
    return Watched(cpu, cpu - sum(sorted(below.values())[:-1]), clock, found.hexdigest())


def run(command: Command, source: Path, jobs: int) -> Watched:
    """Run a command over a folder; what it changes or writes is a folder of its own, gone afterwards."""
    written = source.with_name("written")
    if command.in_place:
        shutil.copytree(source, written)
        source = written
    first, *others = (str(written) if word == "OUT" else word for word in command.words)
    try:
        return watched([first, str(source), *others, "--quiet", "--jobs", str(jobs)], written)
    finally:
        shutil.rmtree(written, ignore_errors=True)


def measured(name: str, folder: Path, rounds: int) -> dict[str, object]:
    """Return the row of a command."""
    command = COMMANDS[name]
    start = statistics.median(run(command, folder / "small", 1).cpu for _ in range(rounds))
    pairs = [tuple(run(command, folder / command.reads, jobs) for jobs in (1, 2)) for _ in range(rounds)]
    assert len({each.digest for pair in pairs for each in pair}) == 1, f"{name} answers otherwise with two jobs"
    alone = statistics.median(one.cpu for one, _ in pairs)
    size = sum(path.stat().st_size for path in (folder / command.reads).rglob("*.log"))
    return {
        "log": name,
        "MiB on disk": size // MIB,
        "CPU s": round(alone, 2),
        "start": round(start, 2),
        "CPU": f"{statistics.median(one.cpu / two.path_cpu for one, two in pairs):.2f}",
        "at most": f"{alone / (start + (alone - start) / 2):.2f}",
        "clock": f"{statistics.median(one.clock / two.clock for one, two in pairs):.2f}",
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def write_keyed(folder: Path, size_bytes: int) -> Path:
    """Write a segment whose keys come again after `KEY_COUNT` records."""
    folder.mkdir(parents=True)
    path = folder / file_name(Offset(0), LOG)
    with path.open("wb") as file:
        for first in range(0, size_bytes // CASE.value_size_bytes, RECORDS_AT_ONCE):
            spec = BatchSpec(Offset(first), codec=CASE.codec, partition_leader_epoch=LeaderEpoch(0))
            file.write(build_batches(spec, columns(CASE, first % KEY_COUNT), RECORDS_PER_BATCH))
    return path


def write_partitions(folder: Path, size_bytes: int) -> None:
    """Write what the commands read: partitions with one segment each, of `size_bytes` in all before compression."""
    count = max(2, size_bytes // PARTITION_BYTES)
    small = PARTITION_BYTES // DUMPED_SHARE
    made = {
        "plain": write_segment_file(CASE, folder / "made", PARTITION_BYTES).path,
        "dumped": write_segment_file(CASE, folder / "made-small", small).path,
        "keyed": write_keyed(folder / "made-keyed", PARTITION_BYTES),
        "small": write_keyed(folder / "made-least", MIB),
    }
    for name, path in made.items():
        for number in range(1 if name == "small" else count):
            place = folder / name / f"topic-{number}"
            place.mkdir(parents=True)
            (place / path.name).hardlink_to(path)


def recovery_cpu_seconds(partition_count: int) -> float:
    """Return the CPU of recovering so many partitions of one small segment each, whose indexes are gone."""
    with tempfile.TemporaryDirectory() as name:
        write_sample("none", Path(name) / "made")
        first = min((Path(name) / "made" / DIRECTORY).glob("*.log"))
        logs = Path(name) / "logs"
        for number in range(partition_count):
            place = logs / f"topic-{number}"
            place.mkdir(parents=True)
            shutil.copy(first, place)
        lines = "".join(f"topic {number} 0\n" for number in range(partition_count))
        for checkpoint in CHECKPOINTS:  # A broker's name each of its partitions.
            (logs / checkpoint).write_text(f"0\n{partition_count}\n{lines}")
        return watched(["recover", str(logs), "--in-place", "--yes", "--quiet"], Path(name) / "none").cpu


def speed_ups(commands: Sequence[str], size_bytes: int, rounds: int) -> list[dict[str, object]]:
    """Return the row of each command, over partitions of `size_bytes` of records in all."""
    with tempfile.TemporaryDirectory() as name:
        write_partitions(Path(name), size_bytes)
        return [measured(command, Path(name), rounds) for command in commands]


def main() -> None:
    """Print what is measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--mib", type=int, default=2048, help="MiB of records that each command but dump reads")
    parser.add_argument("--partitions", type=int, default=PARTITION_COUNT)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--commands", nargs="*", choices=[*COMMANDS], default=[*COMMANDS])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.commands:
        rows = speed_ups(options.commands, options.mib * MIB, options.rounds)
        title = f"Two jobs against one, {options.mib:,} MiB of records"
        show(title, describe_machine("numpy", "numba"), rows, as_json=options.json)
    if options.partitions:
        print(f"{options.partitions:,} partitions recovered: {recovery_cpu_seconds(options.partitions):.1f} CPU s")


if __name__ == "__main__":
    main()
