"""Compare ours with Kafka's own classes in every area, on new random cases.

    python -m tests.kafka.differential --minutes 10 --seed 7
    python -m tests.kafka.differential --minutes 1 --seed 7 --kafka 4.0 --area logs,striped_replica_placer

Prints cases and differences by area, and each difference made small. Exits with status 1 where there is one, 2 where
Kafka's classes cannot be run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from broker.releases import NEWEST, Release
from tests.kafka import batches, controllers, dumps, metadata, placement, programs
from tests.kafka.areas import Area, Tally, run
from tests.kafka.jvm import KafkaJvm, KafkaUnavailableError
from tests.kafka.releases import WITH_CONTROLLER

OTHERS: Final[Mapping[str, Callable[[KafkaJvm], Area[Any]]]] = {
    "controller": controllers.area,
    "batches": batches.area,
    "logs": programs.area,
    "dumps": dumps.area,
    "metadata images": metadata.images,
    "metadata dumps": metadata.dumps,
}
"""The areas beside those of `tests.kafka.placement`."""

_SINCE: Final = {"controller": WITH_CONTROLLER, "dumps": NEWEST}
"""The first release of an area; dumps are in the words of the newest release's tool."""
AREAS: Final = (*placement.AREAS, *OTHERS)


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
    with tempfile.TemporaryDirectory() as build_directory:
        try:
            running = KafkaJvm.start(Path(build_directory), options.kafka)
        except KafkaUnavailableError as missing:
            print(f"Kafka's own classes cannot be run here: {missing}", file=sys.stderr)
            return 2
        with running as kafka:
            print(f"Kafka {options.kafka}, seed {options.seed}, {options.minutes:g} minutes", flush=True)
            areas = open_areas(kafka, options.area)
            tally = run(areas, seed=options.seed, seconds=60 * options.minutes, tell=_progress)
    print(file=sys.stderr)
    print(*tally.found, *tally.lines(), sep="\n")
    return int(bool(tally.found))


def open_areas(kafka: KafkaJvm, names: Sequence[str] = AREAS) -> list[Area[Any]]:
    """Return the named areas that the release has."""
    others = [name for name in OTHERS if name in names and kafka.release >= _SINCE.get(name, kafka.release)]
    return [*placement.areas(kafka, names), *(OTHERS[name](kafka) for name in others)]


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
