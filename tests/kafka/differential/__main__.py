"""Compare ours with Kafka's own classes in every area, on new random cases.

    python -m tests.kafka.differential --minutes 10 --seed 7
    python -m tests.kafka.differential --minutes 1 --seed 7 --kafka 4.0 --area logs,striped

Prints cases and differences by area, and each difference made small. Exits with status 1 where there is one, 2 where
Kafka's classes cannot be run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from broker.releases import NEWEST, Release
from tests.kafka.assignor_differential import ASSIGNORS
from tests.kafka.assignor_jvm import AssignorJvm
from tests.kafka.controller_jvm import OLDEST, ControllerJvm
from tests.kafka.differential import assignors, batches, controllers, dumps, logs, metadata, placers
from tests.kafka.differential.areas import Area, Tally, run
from tests.kafka.jvm import KafkaJvm, KafkaUnavailableError
from tests.kafka.log_jvm import KafkaLogs

LOG_AREAS: Final = ("batches", "logs", "dumps", "metadata images", "metadata dumps")
CONTROLLER: Final = "controller"
AREAS: Final = (*sorted(placers.ALGORITHMS), *ASSIGNORS, CONTROLLER, *LOG_AREAS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison that the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.kafka.differential", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--minutes", type=float, default=1.0, help="how long to run (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the cases (default: %(default)s)")
    parser.add_argument("--kafka", type=Release, default=NEWEST, help="release of Kafka (default: %(default)s)")
    parser.add_argument(
        "--area", type=_areas, default=AREAS, help=f"areas, with commas between (default: all of {', '.join(AREAS)})"
    )
    options = parser.parse_args(arguments)
    with ExitStack() as running, tempfile.TemporaryDirectory() as build_directory:
        try:
            areas = open_areas(running, Path(build_directory), options.kafka, options.area)
        except KafkaUnavailableError as missing:
            print(f"Kafka's own classes cannot be run here: {missing}", file=sys.stderr)
            return 2
        print(f"Kafka {options.kafka}, seed {options.seed}, {options.minutes:g} minutes", flush=True)
        tally = run(areas, seed=options.seed, seconds=60 * options.minutes, tell=_progress)
    print(file=sys.stderr)
    print(*tally.found, *tally.lines(), sep="\n")
    return int(bool(tally.found))


def open_areas(running: ExitStack, build_directory: Path, release: Release, names: Sequence[str]) -> list[Area[Any]]:
    """Start the Java processes that the named areas need, and return the areas that the release has."""
    areas: list[Area[Any]] = []
    if set(names) & set(placers.ALGORITHMS):
        areas += placers.areas(running.enter_context(KafkaJvm.start(build_directory, release)))
    if set(names) & set(ASSIGNORS):
        areas += assignors.areas(running.enter_context(AssignorJvm.start(build_directory, release)))
    if CONTROLLER in names and release >= OLDEST:
        areas.append(controllers.area(running.enter_context(ControllerJvm.start(build_directory, release))))
    if set(names) & set(LOG_AREAS):
        kafka = running.enter_context(KafkaLogs.start(build_directory, release))
        areas += [batches.area(kafka), logs.area(kafka), dumps.area(kafka), *metadata.areas(kafka)]
    return [area for area in areas if area.name in names]


def _areas(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = sorted(set(names) - set(AREAS))
    if unknown:
        raise argparse.ArgumentTypeError(f"no area {', '.join(unknown)}; there are {', '.join(AREAS)}")
    return names


def _progress(tally: Tally) -> None:
    count = sum(tally.case_counts.values())
    print(f"\r{count:,} cases, {len(tally.found)} differences", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
