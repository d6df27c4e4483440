"""Run the scenario of a real cluster on one release and print what differs.

    python -m tests.kafka.real_cluster --kafka 4.0

Exits with status 1 where ours and Kafka's differ, 2 where Kafka cannot be run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from broker.releases import NEWEST, Release
from tests.kafka.cluster_checks import (
    DUMPED,
    consumer_differences,
    dump_differences,
    dumped_files,
    moment_differences,
    recovery_differences,
)
from tests.kafka.cluster_scenario import run_scenario
from tests.kafka.jvm import KafkaUnavailableError
from tests.kafka.log_jvm import KafkaLogs


def main() -> int:
    """Run the scenario and its checks; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.kafka.real_cluster", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--kafka", type=Release, default=NEWEST, help="release of Kafka (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            evidence = run_scenario(folder / "cluster", options.kafka, tell=print)
            running = KafkaLogs.start(folder / "classes", options.kafka)
        except KafkaUnavailableError as missing:
            print(f"released brokers cannot be run here: {missing}", file=sys.stderr)
            return 2
        with running as kafka_logs:
            found = {
                f"{len(evidence.moments)} moments": list(moment_differences(evidence)),
                **{
                    f"{len(dumped_files(evidence, kind))} dumps of {kind}": list(
                        dump_differences(evidence, kafka_logs, kind)
                    )
                    for kind in DUMPED
                },
                f"{len(evidence.killed)} recoveries": list(recovery_differences(evidence, kafka_logs, folder)),
                f"{len(evidence.acknowledged)} records": list(consumer_differences(evidence, folder)),
            }
    for what, differences in found.items():
        print(f"{what}: {len(differences)} differences", *differences, sep="\n  ")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
