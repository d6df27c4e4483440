"""CPU that the `brokerside` command needs before it does anything, beside the interpreter's own.

    python -m tests.benchmarks.startup [--rounds 9] [--json]

What it measures: user and system time of a whole process, files warm; medians, and the smallest of all rounds. The
aims are 0.25 s for `--version` and `--help`, 0.5 s for `assign`. Loads of other processes lengthen CPU time too where
cores share their parts, so the interpreter alone is measured in the same rounds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys

from tests.architecture.house import ROOT
from tests.benchmarks.report import describe_machine, show

MAIN = "from spark_analysis.cli import main; main()"
COMMANDS: dict[str, tuple[list[str], str]] = {
    "python alone": (["-c", "pass"], ""),
    "python and numpy": (["-c", "import numpy"], ""),
    "--version": (["-c", MAIN, "--version"], "0.25"),
    "--help": (["-c", MAIN, "--help"], "0.25"),
    "config": (["-c", MAIN, "config", "log.retention.ms"], ""),
    "recipes": (["-c", MAIN, "recipes"], ""),
    "assign": (["-c", MAIN, "assign", "orders:12:3", "--brokers", "0-5"], "0.50"),
}


def cpu_seconds(words: list[str]) -> float:
    before = os.times()
    subprocess.run([sys.executable, *words], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(options.rounds):
        for name, (words, _) in COMMANDS.items():
            times[name].append(cpu_seconds(words))
    rows = [
        {"command": name, "median s": f"{statistics.median(taken):.2f}", "least s": f"{min(taken):.2f}", "aim s": aim}
        for (name, (_, aim)), taken in zip(COMMANDS.items(), times.values(), strict=True)
    ]
    show("CPU of a whole process", describe_machine("numpy", "click", "attrs"), rows, as_json=options.json)


if __name__ == "__main__":
    main()
