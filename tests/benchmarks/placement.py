"""How long one thread needs to place a million partitions: ours beside Kafka's own classes, in one run.

    python -m tests.benchmarks.placement [--rounds 21] [--json]

What it measures: the CPU time of one call that places 1,000,000 partitions of factor 3 on 1,000
brokers, for Kafka's three algorithms: classic without racks, classic with 10 racks, striped with 10 racks.
Input is made before and the result is thrown away, on both sides.

How: Kafka's side is the CPU time of the calling Java thread, after warm-up, garbage collection
not counted; ours is the CPU time of the whole Python process, so that no helper thread could hide.
Rounds alternate between the two, so that noise of the machine meets both; medians are shown.

Left out: start-up and compilation on either side, which the warm-up takes away.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import attrs

from broker.cluster import BrokerView
from broker.entropy import JavaRandom
from broker.ids import BrokerId
from placement.placers.classic import ClassicPlacer
from placement.placers.striped import StripedPlacer
from placement.spec import PlacementSpec, ReplicaPlacer
from tests.benchmarks.report import describe_machine, show
from tests.kafka.jvm import KafkaJvm, KafkaUnavailableError
from tests.kafka.releases import WITH_ADMIN_UTILS

BROKER_COUNT: Final = 1_000
PARTITION_COUNT: Final = 1_000_000
FACTOR: Final = 3
RACK_COUNT: Final = 10
WARM_UP_ROUNDS: Final = 10
RACKLESS: Final = tuple(BrokerView(id=BrokerId(number)) for number in range(BROKER_COUNT))
RACKED: Final = tuple(
    BrokerView(id=BrokerId(number), rack=f"rack-{number % RACK_COUNT}") for number in range(BROKER_COUNT)
)
SPEC: Final = PlacementSpec(start_partition=0, partition_count=PARTITION_COUNT, replication_factor=FACTOR)


@attrs.frozen
class Work:
    """One line of the table: what is placed, by whom, and how much faster than Kafka it is meant to be."""

    name: str
    brokers: tuple[BrokerView, ...]
    ours: ReplicaPlacer
    kafka_placer: str
    target_ratio: float


WORKS: Final = (
    Work("classic, no racks", RACKLESS, ClassicPlacer(fixed_start_index=0), "classic", 5.0),
    Work("classic, 10 racks", RACKED, ClassicPlacer(fixed_start_index=0), "classic", 10.0),
    Work("striped, 10 racks", RACKED, StripedPlacer(), "striped", 8.0),
)


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.placement", description="Measure our placers beside Kafka's own."
    )
    parser.add_argument("--rounds", type=int, default=21, help="measured calls a line (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    options = parser.parse_args()
    machine = describe_machine("numpy", "numba")
    with ExitStack() as stack:
        kafka = _start_kafka(stack)
        if kafka is not None:
            versions = kafka.versions()
            machine |= {"kafka": versions.kafka, "java": f"{versions.java} ({versions.virtual_machine})"}
        rows = [measure(work, kafka, options.rounds) for work in WORKS]
    title = f"{PARTITION_COUNT:,} partitions, factor {FACTOR}, {BROKER_COUNT:,} brokers: median CPU ms of one call"
    show(title, machine, rows, as_json=options.json)
    return 0


def _start_kafka(stack: ExitStack) -> KafkaJvm | None:
    build_directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    try:
        return stack.enter_context(KafkaJvm.start(build_directory, WITH_ADMIN_UTILS))
    except KafkaUnavailableError as missing:
        print(f"Kafka's own classes cannot be run here ({missing}); ours alone follows.", file=sys.stderr)
        return None


def measure(work: Work, kafka: KafkaJvm | None, rounds: int) -> dict[str, object]:
    """Return one row of the table: medians over `rounds` alternating calls, after the warm-up."""
    ours_ns: list[int] = []
    kafka_ns: list[int] = []
    for _ in range(WARM_UP_ROUNDS + rounds):
        ours_ns.append(our_cpu_ns(work))
        if kafka is not None:
            kafka_ns.append(
                kafka.cpu_ns(work.kafka_placer, work.brokers, partition_count=PARTITION_COUNT, factor=FACTOR)
            )
    ours_ms = statistics.median(ours_ns[WARM_UP_ROUNDS:]) / 1e6
    kafka_ms = statistics.median(kafka_ns[WARM_UP_ROUNDS:]) / 1e6 if kafka_ns else None
    return {
        "placer": work.name,
        "replicas": PARTITION_COUNT * FACTOR,
        "ours ms": round(ours_ms, 2),
        "Kafka ms": None if kafka_ms is None else round(kafka_ms, 2),
        "times faster": None if kafka_ms is None else round(kafka_ms / ours_ms, 2),
        "target": work.target_ratio,
    }


def our_cpu_ns(work: Work) -> int:
    """Return the CPU nanoseconds that this process spends on one call, the result discarded."""
    entropy = JavaRandom(1)
    begin = time.process_time_ns()
    work.ours.place(SPEC, work.brokers, entropy)
    return time.process_time_ns() - begin


if __name__ == "__main__":
    sys.exit(main())
