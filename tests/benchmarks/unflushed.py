"""Measure how often a power cut loses acknowledged records, by how many of a partition's replicas it takes.

It is the assumption `unflushed_loss_chance` of `--ask durability`. Each run is a cluster of three brokers on a virtual
clock, with one partition of three replicas, min.insync.replicas 2, and two producers that write all the time. Power
fails at a random moment at one, two or three brokers at once; each loses the last 1 to 8 records of its log, and is
back after 5 to 40 seconds. A partition without writes in the seconds that are not flushed loses nothing.

Run `python -m tests.benchmarks.unflushed [RUNS]`.
"""

from __future__ import annotations

import random
import sys

import attrs

from replication.scenarios.extension import ScenarioExtension
from replication.scenarios.operations import LosePower
from replication.scenarios.scenario import Scenario
from replication.simulation.history import discard_line
from replication.simulation.run import run

BROKERS = 3


def losses(seed: int, cut_count: int) -> int:
    """Return the number of records acknowledged with acks=all that a cut of so many brokers loses."""
    source = random.Random(f"{seed}/{cut_count}")
    at_ms = source.randrange(10_000, 20_000)
    cuts = tuple(
        LosePower(at_ms, broker, at_ms + source.randrange(5_000, 40_000), record_count=source.randrange(1, 9))
        for broker in source.sample(range(BROKERS), cut_count)
    )
    scenario = Scenario(
        name="cut", title="", how="", source="", operations=cuts, producers=2, consumers=0, is_strict=False
    )
    options = attrs.evolve(scenario.options(), seed=seed)
    outcome = run(options, (), discard_line, extension=ScenarioExtension(cuts, ()))
    assert outcome.durability.acked_count > 0
    return len(outcome.durability.lost_by_all)


def main() -> None:
    run_count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print("| replicas without power | runs | runs that lose acknowledged records | share |")
    print("|---|---|---|---|")
    for cut_count in range(1, BROKERS + 1):
        lost = sum(losses(seed, cut_count) > 0 for seed in range(run_count))
        print(f"| {cut_count} of {BROKERS} | {run_count} | {lost} | {lost / run_count:.2f} |")


if __name__ == "__main__":
    main()
