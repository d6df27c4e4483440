"""Print the table of costs of spark_analysis: every figure beside what it is to be, measured now, by one command.

`python -m tests.benchmarks.spark_costs [PART...] [--rounds 3] [--billion]` measures each part in a process of its own,
one after another, and prints one Markdown table with the load of the machine beside each part. CPU seconds are user
and system time of whole process trees: the driver, its JVM, the Python workers. Nothing here is timed by the clock.

Left out: answers, which the parts that have another engine beside them compare, and tests check.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import attrs

from tests.benchmarks.report import describe_machine
from tests.benchmarks.spark_cost_parts import PARTS, Figure

SIGNS: Final = {"at most": lambda found, aim: found <= aim, "at least": lambda found, aim: found >= aim}


def in_own_process(part: str, words: list[str]) -> list[dict[str, Any]]:
    """Return the figures of one part, measured in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.spark_costs", part, "--here", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, cwd=Path(__file__).parents[2])
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def line(figure: Figure, load: float) -> str:
    """Return the row of one figure."""
    if figure.aim is None:
        aim, holds = "", ""
    else:
        aim = f"{figure.sign} {figure.aim:g}"
        holds = "yes" if SIGNS[figure.sign](figure.found, figure.aim) else "no"
    return f"| {figure.what} | {figure.found:,.4g} {figure.unit} | {aim} | {holds} | {load:.0f} |"


def main() -> None:
    """Measure what is asked for, and print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("parts", nargs="*", help=f"what to measure: {', '.join(PARTS)}; all if none is named")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--billion", action="store_true", help="a fleet of a billion replicas, too")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    parts = options.parts or list(PARTS)
    if options.here:
        figures = PARTS[parts[0]](options)
        print(json.dumps([attrs.asdict(figure) for figure in figures]))
        return
    words = ["--rounds", str(options.rounds), *(["--billion"] if options.billion else [])]
    print("| what | found | aim | holds | load |\n|---|---|---|---|---|")
    for part in parts:
        found = in_own_process(part, words)
        load = os.getloadavg()[1]
        for figure in found:
            print(line(Figure(**figure), load), flush=True)
    print("\n" + ", ".join(f"{name} {value}" for name, value in describe_machine("pyarrow", "pyspark").items()))


if __name__ == "__main__":
    main()
