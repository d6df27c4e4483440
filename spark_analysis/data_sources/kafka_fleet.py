"""Simulate a fleet as `spark.read.format("kafka_fleet")`: a recipe's clusters, as each of their placers places them.

It takes the options `table` (partitions, brokers, clusters); `clusters` and `seed` instead of the recipe's.

Constraints: the driver reads the recipe; clusters are made and placed on executors.

Example: spark.read.format("kafka_fleet").option("clusters", 10).load("uneven-racks").groupBy("placer").count()

Source: pyspark.sql.datasource, 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import attrs
import pyarrow as pa

from broker.errors import UsageError
from placement.placers.registry import load_placer
from spark_analysis.data_sources.dump_rows import view_rows
from spark_analysis.data_sources.options import GivenOptions
from spark_analysis.data_sources.source import TableSource, TaskReader
from spark_analysis.fleet.generate import Fleet, make_clusters
from spark_analysis.fleet.place import place_cluster
from spark_analysis.fleet.reading import load_recipe
from spark_analysis.fleet.recipe import CLUSTER_COUNT_MAX, SEED_MAX, Recipe
from spark_analysis.fleet.views import simulated_view
from spark_analysis.sources.listing import local_path
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import FLEET_PARTITIONS, FLEET_TABLES
from spark_analysis.tables.view_columns import Constants

NAME: Final = "kafka_fleet"
OPTIONS: Final = ("table", "clusters", "seed")
TASK_COUNT_MIN: Final = 8  # Work for as many cores, however small the fleet.
CLUSTERS_PER_TASK_MAX: Final = 1_000
PARTITIONS_PER_TASK: Final = 1_000_000  # Some seconds of placing and of sending rows.


class KafkaFleetSource(TableSource):
    """Describe the data source kafka_fleet to Spark."""

    NAME, TABLES, OPTIONS = NAME, FLEET_TABLES, OPTIONS

    def reader_of(self, given: GivenOptions, table: Table, columns: tuple[str, ...]) -> TaskReader:
        """Return a reader of ranges of clusters; raise UsageError for a recipe that makes no sense."""
        request = FleetRequest(table, columns, chosen_recipe(given))
        return TaskReader(partial(fleet_batches, request), ranges(table, request.recipe))


def chosen_recipe(given: GivenOptions) -> Recipe:
    """Return the recipe that was loaded by name or path, with the options' number of clusters and seed."""
    names = given.loaded()
    if len(names) > 1:
        raise UsageError(f"{NAME} takes one recipe, not {len(names)}")
    recipe = load_recipe(local_path(names[0]))
    clusters = given.number("clusters", low=1, high=CLUSTER_COUNT_MAX)
    seed = given.number("seed", low=0, high=SEED_MAX)
    if clusters is not None:
        recipe = attrs.evolve(recipe, cluster_count=clusters)
    if seed is not None:
        recipe = attrs.evolve(recipe, seed=seed)
    for placer in sorted({placer for shape in recipe.shapes for placer in shape.placers}):
        load_placer(placer)
    return recipe


@attrs.frozen
class FleetRequest:
    """Choose what to make of a fleet: the table, its columns and the recipe."""

    table: Table
    columns: tuple[str, ...]
    recipe: Recipe


def fleet_batches(request: FleetRequest, numbers: range) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the clusters with these numbers; raise the errors of the placers."""
    fleet, recipe = Fleet.of(request.recipe), request.recipe
    for cluster in make_clusters(fleet, numbers):
        for placer in cluster.shape.placers:
            view = simulated_view(cluster, place_cluster(cluster, placer, seed=recipe.seed), recipe.source)
            constants = {"cluster_id": cluster.number, "placer": placer, "shape": cluster.shape.name}
            known = Constants({**constants, "cluster": view.name, "source": recipe.source})
            for rows in view_rows(request.table, view):
                yield rows.batch(request.table, known).select(list(request.columns))


def ranges(table: Table, recipe: Recipe) -> Sequence[range]:
    """Return the numbers of the clusters of each task: the same on every machine."""
    count = recipe.cluster_count
    largest = max(shape.topics.count.high * max(shape.topics.partitions) for shape in recipe.shapes)
    at_once = CLUSTERS_PER_TASK_MAX
    if table == FLEET_PARTITIONS:
        at_once = max(1, min(at_once, PARTITIONS_PER_TASK // largest))
    tasks = min(count, max(TASK_COUNT_MIN, -(-count // at_once)))
    return [range(count * task // tasks, count * (task + 1) // tasks) for task in range(tasks)]
