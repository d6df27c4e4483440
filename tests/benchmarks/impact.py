"""How long an impact and a schedule of many moves take, and how near the bound the schedule is.

    python -m tests.benchmarks.impact [--partitions 1000000] [--brokers 1000] [--rounds 3]

What it measures: CPU seconds of `impact` of a plan that moves a replica of every partition, three replicas each, with
sizes, racks, ISR and a throttle, and of reading that plan's JSON; of `schedule` of a tenth of these moves (sizes
log-normal, sigma 1.5); of the rolling schedule of a tenth and of all; and the time of the batches, and of the rolling
schedule, over the lower bound. Compiled code is loaded before.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import attrs
import numpy as np

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from placement.formats.plan_files import reassignment_json
from placement.formats.plans import read_plan
from placement.reassignment.impact import impact
from placement.reassignment.reassignment import Reassignment
from placement.reassignment.rolling import rolling
from placement.reassignment.schedule import Limits, schedule
from placement.reassignment.throttle import Links
from tests.benchmarks.report import describe_machine


def large_plan(partition_count: int, broker_count: int) -> Reassignment:
    """Return a plan that moves one replica of each partition to a broker without one."""
    chance = np.random.default_rng(7)
    # Four distinct brokers a row: a random first one, then steps that do not come back to it.
    steps = np.sort(chance.integers(1, broker_count - 3, (partition_count, 3)), axis=1) + np.arange(3)
    four = (chance.integers(0, broker_count, (partition_count, 1)) + np.pad(steps, ((0, 0), (1, 0)))) % broker_count
    replicas, new = four[:, :3], four[:, 3]
    target = replicas.copy()
    target[np.arange(partition_count), chance.integers(0, 3, partition_count)] = new
    view = ClusterView.build(
        name="large",
        source="random",
        format="benchmark",
        brokers=[BrokerView(id=BrokerId(each), rack=f"rack-{each % 3}") for each in range(broker_count)],
        topics=(TopicView("t", min_insync_replicas=2),),
        partitions=PartitionTable(
            topic_index=np.zeros(partition_count),
            partition_ids=np.arange(partition_count),
            replicas=replicas,
            leader=replicas[:, 0],
            isr=replicas,
            size_bytes=chance.lognormal(17, 1.5, partition_count).astype(np.int64) + 1,
        ),
    )
    return Reassignment(view=view, rows=np.arange(partition_count), replicas=target)


def cpu_seconds(work: Callable[[], object], rounds: int) -> float:
    """Return the median CPU time of some rounds."""
    taken = []
    for _ in range(rounds):
        begun = time.process_time()
        work()
        taken.append(time.process_time() - begun)
    return statistics.median(taken)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--brokers", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    plan = large_plan(options.partitions, options.brokers)
    some = plan.take(np.arange(0, plan.count, 10))
    links = Links(throttle=100_000_000)
    impact([some], links=links)
    print(describe_machine())
    seconds = cpu_seconds(lambda: impact([attrs.evolve(plan)], links=links), options.rounds)
    print(f"impact of {plan.count:,} moves on {options.brokers:,} brokers: {seconds:.2f} CPU s")
    text = reassignment_json(plan).encode()
    read_plan([text], source="plan.json", view=plan.view)
    seconds = cpu_seconds(lambda: read_plan([text], source="plan.json", view=plan.view), options.rounds)
    print(f"reading its JSON of {len(text):,} bytes: {seconds:.2f} CPU s")
    for count in (8, 32):
        found = schedule(some, Limits(batch_count=count))
        seconds = cpu_seconds(lambda: schedule(some, Limits(batch_count=count)), options.rounds)  # noqa: B023 - called here.
        over = found.seconds / found.bound.seconds
        print(
            f"schedule of {some.count:,} moves: {len(found.batches)} batches, {over:.3f} x bound, {seconds:.2f} CPU s"
        )
    for part in (some, plan):
        for slots in (1, 5):
            begun = time.process_time()
            rolled = rolling(part, concurrency=slots)
            seconds, over = time.process_time() - begun, rolled.seconds / rolled.bound_seconds
            print(f"{part.count:,} without batches, {slots} at a time: {over:.3f} x bound, {seconds:.2f} CPU s")


if __name__ == "__main__":
    main()
