"""Count the simulated clusters whose restart schedule is proven to be the shortest, and the time that takes.

    python -m tests.benchmarks.restarts [--clusters 40] [--seed 11]

Shapes of up to 200 brokers: three zones, even and uneven; no zones; more zones than replicas; zones and topics from
before the zones. min.insync.replicas is 2 unless said otherwise. CPU seconds of this process, after compiling.
"""

from __future__ import annotations

import statistics
import time

import attrs
import click
import numpy as np

from broker.cluster import ClusterView, PartitionTable, TopicView
from placement import RestartSchedule, restart_schedule
from spark_analysis.fleet.generate import Fleet, make_cluster
from spark_analysis.fleet.place import place_cluster
from spark_analysis.fleet.reading import parse_recipe
from spark_analysis.fleet.views import view_of

TOPICS = "topics = {{ count = {{ min = 20, max = 400 }}, partitions = [1, 3, 6, 12, 24, 50], factor = {factor} }}"
SHAPES = {
    "three even zones": "brokers = { min = 6, max = 200 }\nracks = { count = 3 }",
    "three uneven zones": "brokers = { min = 10, max = 200 }\nracks = { sizes = [4, 4, 2] }\nfenced = 0.02",
    "three zones, min.insync.replicas 1": "brokers = { min = 6, max = 200 }\nracks = { count = 3 }",
    "five zones": "brokers = { min = 10, max = 200 }\nracks = { count = 5 }",
    "three zones, factors 2 and 3": "brokers = { min = 6, max = 200 }\nracks = { count = 3 }",
    "three zones and old topics": "brokers = { min = 6, max = 200 }\nracks = { count = 3 }",
    "no zones, up to 30 brokers": 'brokers = { min = 3, max = 30 }\nracks = "none"',
    "no zones, 30 to 200 brokers": 'brokers = { min = 30, max = 200 }\nracks = "none"',
}
FACTORS = {"three zones, factors 2 and 3": '{ "2" = 1, "3" = 9 }'}
OLD_TOPIC_COUNT = 4
COMPILING = (("five zones", 0), ("no zones, 30 to 200 brokers", 6))
"""Clusters of seed 11 that need every kernel."""


def shape_text(name: str, seed: int = 11) -> str:
    """Return the recipe of one shape."""
    min_isr = 1 if name.endswith("min.insync.replicas 1") else 2
    lines = ["[fleet]", f'name = "{name}"', "clusters = 1000", f"seed = {seed}", "", "[[shape]]", f'name = "{name}"']
    lines += [SHAPES[name], 'placer = ["classic", "striped"]', TOPICS.format(factor=FACTORS.get(name, "3"))]
    return "\n".join([*lines, f"min_insync_replicas = {min_isr}"]) + "\n"


def drawn(fleet: Fleet, number: int, name: str) -> ClusterView:
    """Return one simulated cluster; every other one is placed by the striped placer."""
    cluster = make_cluster(fleet, number)
    rows = place_cluster(cluster, ("classic", "striped")[number % 2], seed=fleet.recipe.seed)
    view = view_of(cluster, rows, "benchmark")
    return with_old_topics(view, number) if name == "three zones and old topics" else view


def with_old_topics(view: ClusterView, seed: int) -> ClusterView:
    """Add topics whose replicas stand on successive brokers, whatever their zones, as before zones were known."""
    entropy = np.random.default_rng(seed)
    count, table = len(view.brokers), view.partitions
    ids = view.broker_ids
    starts = entropy.integers(0, count, OLD_TOPIC_COUNT * 24)
    shifts = entropy.integers(1, max(count // 2, 2), starts.size)
    old = np.stack([ids[starts], ids[(starts + shifts) % count], ids[(starts + 2 * shifts) % count]], axis=1)
    old = old[(old[:, 0] != old[:, 1]) & (old[:, 1] != old[:, 2]) & (old[:, 0] != old[:, 2])].astype(np.int32)
    rows = np.concatenate([table.replicas, np.pad(old, ((0, 0), (0, table.replicas.shape[1] - 3)), constant_values=-1)])
    partitions = PartitionTable(
        topic_index=np.concatenate([table.topic_index, np.full(old.shape[0], len(view.topics))]),
        partition_ids=np.concatenate([table.partition_ids, np.arange(old.shape[0])]),
        replicas=rows,
    )
    return attrs.evolve(view, topics=(*view.topics, TopicView("old", min_insync_replicas=2)), partitions=partitions)


@click.command()
@click.option("--clusters", default=40, show_default=True, help="Clusters of each shape.")
@click.option("--seed", default=11, show_default=True, help="Seed of the simulated clusters.")
def main(clusters: int, seed: int) -> None:
    """Print for each shape how many schedules are proven, and the time."""
    click.echo("proven   CPU s median, most   batches at most   widest gap   shape")
    all_found: list[RestartSchedule] = []
    all_taken: list[float] = []
    for name, number in COMPILING:
        restart_schedule(drawn(Fleet.of(parse_recipe(shape_text(name), source=name)), number, name))
    for name in SHAPES:
        fleet = Fleet.of(parse_recipe(shape_text(name, seed), source=name))
        found, taken = [], []
        for number in range(clusters):
            view = drawn(fleet, number, name)
            begun = time.process_time()
            found.append(restart_schedule(view))
            taken.append(time.process_time() - begun)
        proven = sum(each.is_optimal for each in found)
        gap = max(len(each.batches) - each.bound for each in found)
        most = max(len(each.batches) for each in found)
        seconds = f"{statistics.median(taken):6.2f}, {max(taken):6.2f}"
        click.echo(f"{proven:3} of {clusters:3}   {seconds}   {most:15}   {gap:10}   {name}")
        all_found += found
        all_taken += taken
    share = sum(each.is_optimal for each in all_found) / len(all_found)
    click.echo(f"{100 * share:.1f} % of {len(all_found)} clusters proven, at most {max(all_taken):.2f} CPU s each")


if __name__ == "__main__":
    main()
