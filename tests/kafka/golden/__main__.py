"""Print golden vectors by the classes of a released Kafka.

    python -m tests.kafka.golden OUT
    python -m tests.kafka.golden OUT --kafka 4.0 --seed 7
    python -m tests golden OUT

Writes OUT/placement/*.json and OUT/log.tar.xz: the cases of tests/golden, answered by the release, and with a seed new
random cases beside them. The classic placer is in releases up to 4.0 alone; for newer ones its file is 4.0's and says
so. Exits with 2 where Kafka cannot be run or OUT holds something.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from broker.errors import UsageError
from broker.releases import NEWEST, Release
from tests.kafka.golden.writing import write_logs, write_placement
from tests.kafka.jvm import KafkaUnavailableError
from tests.kafka.releases import version_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the folder that the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.golden", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT", help="folder that is written; it must not hold anything")
    parser.add_argument("--kafka", default=str(NEWEST), metavar="RELEASE", help="release (default %(default)s)")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of new random cases (default: none are added)")
    options = parser.parse_args(arguments)
    try:
        release = Release(options.kafka)
        version_of(release)
    except UsageError as unknown:
        print(unknown, file=sys.stderr)
        return 2
    if options.out.exists() and (not options.out.is_dir() or any(options.out.iterdir())):
        print(f"{options.out} is there and is no empty folder; give one that can be made", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        try:
            write_placement(Path(name), release, options.out / "placement", seed=options.seed, tell=print)
            write_logs(Path(name), release, options.out, seed=options.seed, tell=print)
        except KafkaUnavailableError as missing:
            print(f"Kafka's own classes cannot be run here: {missing}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
