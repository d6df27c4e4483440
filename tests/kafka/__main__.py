"""Compare ours with Kafka's own classes on as many random inputs as you like.

    python -m tests.kafka --cases 100000 --seed 7
    python -m tests.kafka --kafka 4.0 --only classic --seed 7 --first 1234 --cases 1

Exits with status 1 after the first mismatch, which it prints with its input; 2 where Kafka cannot be run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from broker.releases import NEWEST, Release
from tests.kafka.differential.placers import ALGORITHMS, algorithms_of, check
from tests.kafka.jvm import KafkaJvm, KafkaUnavailableError


def main() -> int:
    """Run the comparison that the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.kafka", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000, help="random inputs per algorithm (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first input (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the inputs (default: %(default)s)")
    parser.add_argument("--kafka", type=Release, default=NEWEST, help="release of Kafka (default: %(default)s)")
    parser.add_argument("--only", choices=sorted(ALGORITHMS), help="one algorithm instead of all")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as build_directory:
        try:
            running = KafkaJvm.start(Path(build_directory), options.kafka)
        except KafkaUnavailableError as missing:
            print(f"Kafka's own classes cannot be run here: {missing}", file=sys.stderr)
            return 2
        with running as kafka:
            versions = kafka.versions()
            print(f"Kafka {versions.kafka} on Java {versions.java}, seed {options.seed}")
            algorithms = algorithms_of(options.kafka) if options.only is None else [options.only]
            return max(_compare(kafka, name, options.seed, options.first, options.cases) for name in algorithms)


def _compare(kafka: KafkaJvm, algorithm: str, seed: int, first: int, cases: int) -> int:
    for case in range(first, first + cases):
        try:
            check(kafka, algorithm, seed=seed, case=case)
        except AssertionError as mismatch:
            print(f"{algorithm}: mismatch in case {case} of seed {seed}\n{mismatch}")
            return 1
    print(f"{algorithm}: {cases} inputs agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
