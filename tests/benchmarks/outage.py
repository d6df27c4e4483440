"""Time the look-ahead over every broker, pair, rack, and rack with one more broker, beside numpy.

    python -m tests.benchmarks.outage [--brokers 1000] [--partitions 1000000] [--rounds 5]

The cluster stands as the striped placer puts it: topics of 100 partitions, factor 3, three racks. CPU seconds of this
process, medians, after everything is compiled. The numpy baseline counts one state (under min-ISR) for brokers and
pairs by `np.add.at`, of the five states that the look-ahead counts for all four kinds of sets.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from typing import Any

import click
import numpy as np

from broker import BrokerView, JavaRandom
from broker.cluster import ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from placement import PlacementSpec, StripedPlacer, look_ahead
from placement.outages.copysets import copysets
from placement.outages.fatal import fatal_sets
from placement.outages.lost import outage
from placement.outages.succession import Successions, successions
from tests.benchmarks.rounds import median_cpu_s

PER_TOPIC = 100


def cluster(broker_count: int, partition_count: int) -> ClusterView:
    """Return a healthy cluster on three racks."""
    brokers = [BrokerView(id=BrokerId(number), rack="abc"[number % 3]) for number in range(broker_count)]
    entropy, placer = JavaRandom(1), StripedPlacer()
    spec = PlacementSpec(0, PER_TOPIC, 3)
    topic_count = -(-partition_count // PER_TOPIC)
    rows = np.concatenate([placer.place(spec, brokers, entropy) for _ in range(topic_count)])[:partition_count]
    return ClusterView.build(
        name="striped",
        source="benchmark",
        format="benchmark",
        brokers=brokers,
        topics=[TopicView(f"t{number}", min_insync_replicas=2) for number in range(topic_count)],
        partitions=PartitionTable(
            topic_index=np.arange(partition_count) // PER_TOPIC,
            partition_ids=np.arange(partition_count) % PER_TOPIC,
            replicas=rows,
            isr=rows,
            leader=rows[:, 0],
            size_bytes=np.full(partition_count, 1 << 30),
        ),
    )


def by_numpy(found: Successions, broker_count: int) -> Any:
    """Count the partitions under min-ISR once each broker, and each pair, is lost; one in-sync replica may go."""
    pairs = np.zeros((broker_count, broker_count), dtype=np.int64)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        low = np.minimum(found.order[:, one], found.order[:, other])
        high = np.maximum(found.order[:, one], found.order[:, other])
        np.add.at(pairs, (low, high), 1)
    return pairs


@click.command()
@click.option("--brokers", default=1_000, show_default=True, help="Number of brokers.")
@click.option("--partitions", default=1_000_000, show_default=True, help="Number of partitions.")
@click.option("--rounds", default=5, show_default=True, help="Runs of which the median is taken.")
def main(brokers: int, partitions: int, rounds: int) -> None:
    """Print the CPU seconds of outages, and of numpy for a part of them."""
    view = cluster(brokers, partitions)
    found = successions(view)
    pairs = by_numpy(found, brokers)
    ahead = look_ahead(view)
    assert ahead.pairs is not None
    column = ahead.pairs.columns["under_min_isr_count"]
    assert column is not None
    assert np.array_equal(column, pairs[np.triu_indices(brokers, 1)]), "numpy counts otherwise"
    cases: tuple[tuple[str, Callable[[], object]], ...] = (
        ("look-ahead: all brokers, pairs, racks, racks and one", lambda: look_ahead(view)),
        ("  of which the order of succession", lambda: successions(view)),
        ("numpy: under min-ISR of brokers and pairs alone", lambda: by_numpy(found, brokers)),
        ("one outage in full", lambda: outage(view, [BrokerId(0), BrokerId(1)])),
        ("fatal sets of up to three brokers, exactly", lambda: fatal_sets(view)),
        ("copysets and scatter widths", lambda: copysets(view)),
    )
    click.echo(f"{brokers:,} brokers, {partitions:,} partitions, factor 3, three racks; CPU s, median of {rounds}")
    for name, call in cases:
        click.echo(f"{median_cpu_s(call, rounds):8.3f}  {name}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    click.echo(f"{peak:8,}  MiB at most, the cluster included")


if __name__ == "__main__":
    main()
