"""Turn clusters of a simulated fleet into rows of one table, as each of their placers places them.

Constraints: cluster k is a function of the recipe's seed and k alone, so rows do not depend on tasks. One cluster is
held at a time.

Example: fleet_batches(FleetRequest(FLEET_PARTITIONS, FLEET_PARTITIONS.column_names, load_recipe("demo")), range(3))

Source: spark_analysis.fleet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import pyarrow as pa

from spark_analysis.data_sources.dump_rows import view_rows
from spark_analysis.fleet.generate import Fleet, make_clusters
from spark_analysis.fleet.place import place_cluster
from spark_analysis.fleet.recipe import Recipe
from spark_analysis.fleet.views import view_of
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import FLEET_PARTITIONS
from spark_analysis.tables.view_columns import Constants

TASK_COUNT_MIN: Final = 8  # Work for as many cores, however small the fleet.
CLUSTERS_PER_TASK_MAX: Final = 1_000
PARTITIONS_PER_TASK: Final = 1_000_000  # Some seconds of placing and of sending rows.


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
            view = view_of(cluster, place_cluster(cluster, placer, seed=recipe.seed), recipe.source)
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
