"""What the table of topics costs: described views of a million partitions, and simulated clusters, CPU milliseconds.

`python -m tests.benchmarks.topics` prints medians of `--rounds`: views of 100,000 topics of 10 partitions and of 1,000
topics of 1,000, on brokers of even racks, of uneven racks, and of uneven racks with fenced brokers; then clusters of
fleets, placed by both of Kafka's placers: made, placed, counted and written. Run it on two trees to compare them.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import attrs
import numpy as np

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from spark_analysis.fleet.generate import Fleet
from spark_analysis.fleet.reading import load_recipe
from spark_analysis.tables import schemas
from spark_analysis.tables.view_rows import describe_view
from spark_analysis.tables.write import COUNT_FOLDER
from spark_analysis.tasks import fleet_task
from tests.benchmarks.report import describe_machine, show

CLUSTERS = 60
RECIPES = ("demo", "uneven-racks", "classic-vs-striped")


def cluster(topic_count: int, partition_count: int, racks: tuple[int, ...], fenced_count: int) -> ClusterView:
    """A view of random placements that keep the rack rule, led by the first live replica."""
    random = np.random.default_rng(7)
    rack = np.repeat(np.arange(len(racks)), racks)
    first = np.cumsum(racks) - racks
    row_count = topic_count * partition_count
    picked = np.argsort(random.random((row_count, len(racks))), axis=1)[:, :3]
    rows = (first[picked] + random.random((row_count, 3)) * np.array(racks)[picked]).astype(np.int32)
    fenced = np.zeros(rack.size, dtype=np.bool_)
    fenced[random.choice(rack.size, fenced_count, replace=False)] = True
    live = ~fenced[rows]
    leader = np.where(live.any(axis=1), rows[np.arange(row_count), live.argmax(axis=1)], -1)
    return ClusterView(
        name="c",
        source="benchmark",
        format="benchmark",
        brokers=tuple(
            BrokerView(id=BrokerId(place), rack=f"r{number}", fenced=bool(fenced[place]))
            for place, number in enumerate(rack.tolist())
        ),
        topics=tuple(TopicView(f"t{number}", min_insync_replicas=2) for number in range(topic_count)),
        partitions=PartitionTable(
            topic_index=np.repeat(np.arange(topic_count, dtype=np.int32), partition_count),
            partition_ids=np.tile(np.arange(partition_count), topic_count),
            replicas=rows,
            leader=leader.astype(np.int32),
            isr=rows,
        ),
    )


def views() -> Iterator[tuple[str, ClusterView]]:
    """The views to describe, each with its name."""
    for topics, partitions in ((100_000, 10), (1_000, 1_000)):
        for name, racks, fenced in (
            ("even racks", (40, 40, 40), 0),
            ("uneven racks", (60, 40, 20), 0),
            ("uneven racks, 6 fenced", (60, 40, 20), 6),
            ("1,000 brokers, 5 uneven racks", (300, 300, 200, 100, 100), 0),
        ):
            yield f"view: {topics:,} topics of {partitions:,}, {name}", cluster(topics, partitions, racks, fenced)


def fleet_work(recipe: str, fenced: float | None) -> Callable[[], float]:
    """Return what makes, places, counts and writes clusters of this recipe, as a task of a fleet does."""
    loaded = load_recipe(recipe)
    if fenced is not None:
        loaded = attrs.evolve(loaded, shapes=tuple(attrs.evolve(one, fenced=fenced) for one in loaded.shapes))

    def timed() -> float:
        with tempfile.TemporaryDirectory() as name:
            for table in (*schemas.TABLES, *schemas.WORK):
                (Path(name) / table.name).mkdir()
            (Path(name) / COUNT_FOLDER).mkdir()
            task = fleet_task(Fleet.of(loaded), Path(name))
            return cpu_seconds(lambda: list(task(range(CLUSTERS), "00000")))

    return timed


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for name, view in views():
        describe_view(view)
        times = [cpu_seconds(partial(describe_view, view)) for _ in range(arguments.rounds)]
        rows.append({"work": name, "CPU ms": 1000 * statistics.median(times)})
    for recipe in RECIPES:
        for fenced in (None, 0.05):
            work = fleet_work(recipe, fenced)
            work()
            times = [work() for _ in range(2 * arguments.rounds + 1)]
            suffix = "" if fenced is None else ", 5 % fenced"
            rows.append({"work": f"{CLUSTERS} clusters of {recipe}{suffix}", "CPU ms": 1000 * statistics.median(times)})
    show("Describing topics", describe_machine("numpy", "numba"), rows, as_json=arguments.json)


if __name__ == "__main__":
    main()
