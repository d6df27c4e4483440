"""How long one thread needs to place a million partitions: ours beside Kafka's own classes, in one run.

    python -m tests.benchmarks.placement [--rounds 21] [--json]

CPU time of one call that places 1,000,000 partitions of factor 3 on 1,000 brokers: classic without racks, classic with
10 racks, striped with 10 racks. Kafka's side is that of the calling Java thread, ours of the whole process, both after
warm-up. Rounds alternate between the two; medians are shown.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from typing import Any, Final

import attrs

from broker.cluster import BrokerView
from broker.entropy import JavaRandom
from broker.ids import BrokerId
from placement.placers.classic import ClassicPlacer
from placement.placers.striped import StripedPlacer
from placement.spec import PlacementSpec, ReplicaPlacer
from tests.benchmarks.report import describe_machine, show
from tests.benchmarks.rounds import in_turn, java_took, kafka_or_none, process_cpu
from tests.kafka.jvm import KafkaJvm
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
    """One line of the table: what is placed, and by whom."""

    name: str
    brokers: tuple[BrokerView, ...]
    ours: ReplicaPlacer
    kafka_placer: str


WORKS: Final = (
    Work("classic, no racks", RACKLESS, ClassicPlacer(fixed_start_index=0), "classic"),
    Work("classic, 10 racks", RACKED, ClassicPlacer(fixed_start_index=0), "classic"),
    Work("striped, 10 racks", RACKED, StripedPlacer(), "striped"),
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
        kafka = kafka_or_none(stack, WITH_ADMIN_UTILS)
        if kafka is not None:
            machine |= {"Kafka": kafka.source()}
        rows = [measure(work, kafka, options.rounds) for work in WORKS]
    title = f"{PARTITION_COUNT:,} partitions, factor {FACTOR}, {BROKER_COUNT:,} brokers: median CPU ms of one call"
    show(title, machine, rows, as_json=options.json)
    return 0


def measure(work: Work, kafka: KafkaJvm | None, rounds: int) -> dict[str, object]:
    """Return one row of the table: medians over `rounds` alternating calls, after the warm-up."""
    contestants = {"ours": lambda: process_cpu(lambda: work.ours.place(SPEC, work.brokers, JavaRandom(1)))}
    if kafka is not None:
        brokers = [{"id": broker.id, "rack": broker.rack} for broker in work.brokers]
        asked: dict[str, Any] = {"placer": work.kafka_placer, "brokers": brokers}
        asked |= {"partitions": PARTITION_COUNT, "replication_factor": FACTOR}
        contestants["Kafka"] = lambda: java_took(kafka.call("placer_times", **asked))
    found = in_turn(contestants, rounds, work.name, warm_ups=WARM_UP_ROUNDS)
    milliseconds = {name: 1e3 / medians.cpu_rate for name, medians in found.items()}
    theirs = milliseconds.get("Kafka")
    return {
        "placer": work.name,
        "replicas": PARTITION_COUNT * FACTOR,
        "ours ms": round(milliseconds["ours"], 2),
        "Kafka ms": None if theirs is None else round(theirs, 2),
        "times faster": None if theirs is None else round(theirs / milliseconds["ours"], 2),
    }


if __name__ == "__main__":
    sys.exit(main())
