"""How much longer than any batches must take ours take, where concurrency is tight and sizes are skewed.

    python -m tests.benchmarks.batches [--seeds 2] [--json]

What it measures: random plans of partitions of log-normal sizes, each with one or two new replicas on random brokers;
the time of all batches (at most 32 files) beside the bound of any order and that of any batches within the concurrency,
and CPU seconds after compiling. Each line is the widest of the seeds.
"""

from __future__ import annotations

import argparse
import random
import time

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from placement.reassignment.reassignment import Reassignment
from placement.reassignment.schedule import Limits, schedule
from tests.benchmarks.report import describe_machine, show

SIGMAS = (0.0, 1.0, 1.5, 2.0, 3.0)
SHAPES = (
    (12, 150, 1, 1),
    (12, 80, 2, 1),
    (26, 90, 2, 1),
    (36, 193, 3, 1),
    (12, 450, 1, 3),
    (20, 400, 2, 3),
    (30, 2_000, 1, 5),
    (12, 1_500, 1, 10),
)
"""Brokers, partitions, new replicas of each, and concurrency."""


def skewed_plan(seed: int, brokers: int, partitions: int, adds: int, sigma: float) -> Reassignment:
    """Return a plan in which every partition of factor 2 gains `adds` replicas on random brokers."""
    chance = random.Random(seed)
    replicas, targets = [], []
    for _ in range(partitions):
        drawn = chance.sample(range(brokers), 2 + adds)
        replicas.append(drawn[:2])
        targets.append([drawn[0], *drawn[2:]])
    view = ClusterView.build(
        name="skewed",
        source="random",
        format="made",
        brokers=[BrokerView(id=BrokerId(number)) for number in range(brokers)],
        topics=(TopicView("t"),),
        partitions=PartitionTable(
            topic_index=[0] * partitions,
            partition_ids=range(partitions),
            replicas=replicas,
            leader=[row[0] for row in replicas],
            size_bytes=[int(chance.lognormvariate(20, sigma)) + 1 for _ in range(partitions)],
        ),
    )
    return Reassignment(view=view, rows=range(partitions), replicas=targets)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    schedule(skewed_plan(0, 6, 20, 1, 1.0), Limits(concurrency=2))
    rows = []
    for brokers, partitions, adds, concurrency in SHAPES:
        for sigma in SIGMAS:
            plans = [skewed_plan(seed, brokers, partitions, adds, sigma) for seed in range(1, options.seeds + 1)]
            begun = time.process_time()
            found = [schedule(plan, Limits(concurrency=concurrency)) for plan in plans]
            taken = (time.process_time() - begun) / len(found)
            rows.append(
                {
                    "brokers": brokers,
                    "moves": partitions,
                    "new replicas": adds,
                    "concurrency": concurrency,
                    "sigma": str(sigma),
                    "files": max(len(each.batches) for each in found),
                    "x any order": f"{max(each.seconds / each.bound.seconds for each in found):.3f}",
                    "x any batches": f"{max(each.seconds / each.batched_bound_seconds for each in found):.3f}",
                    "CPU s": f"{taken:.2f}",
                }
            )
    show("Batches within a concurrency", describe_machine(), rows, as_json=options.json)


if __name__ == "__main__":
    main()
