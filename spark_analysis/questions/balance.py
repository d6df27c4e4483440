"""Measure how evenly each cluster of a DataFrame is loaded, beside the best that it can reach.

What it decides: for each cluster, how replicas, leaders and bytes spread over brokers, racks and topics, beside the
best spread that can be reached (`measures`); and what is wrong with it, in one row (`clusters`). The figures are
those of `brokerside report`, in its tables `measures` and `clusters`, to the last bit.

How: DataFrame in, DataFrame out (frames/per_cluster.py). `partitions` are rows of the data source kafka_cluster or of
a table with the columns `cluster`, `topic`, `partition` and `replicas`; `leader`, `isr`, `racks`, `size_bytes` and
others count where they are there. `brokers`, with `broker_id`, add brokers that hold nothing, racks and fenced ones.

Example:
    partitions = spark.read.format("kafka_cluster").load("dumps/*.txt")
    measures(partitions).where("scope = 'broker' and quantity = 'leaders'").orderBy(F.desc("moves_share"))

Source: placement/balance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from broker.clusters import Clusters
from broker.min_isr import with_min_isr_of
from placement.balance.shares import Held
from spark_analysis.frames.per_cluster import Rows, columns_of, per_cluster
from spark_analysis.frames.transforming import question
from spark_analysis.frames.views import SIZES, STATES
from spark_analysis.tables import schemas
from spark_analysis.tables.cluster_rows import measure_rows
from spark_analysis.tables.columns import batch_of
from spark_analysis.tables.view_rows import broken_of_each, facts_of

_NOT_HERE: Final = ("source", "format", "shape", "previous_cluster_id")
MEASURES: Final = schemas.MEASURES
CLUSTERS: Final = attrs.evolve(
    schemas.FACTS,
    grain="one row per cluster",
    columns=tuple(column for column in schemas.FACTS.columns if column.name not in _NOT_HERE),
)


@question
def measures(
    partitions: DataFrame,
    brokers: DataFrame | None = None,
    *,
    by: Sequence[str] | None = None,
    totals: bool = False,
) -> DataFrame:
    """Return one row per cluster, scope (broker, rack, topic) and quantity (replicas, leaders, bytes).

    A quantity that the rows do not say has no row. With `totals`, where partitions are only a part of the cluster, the
    loads of brokers are `replica_count`, `leader_count` and `size_bytes` of their rows; totals below what the
    partitions list are a fault. Raises UsageError for a column that is missing or of another type.
    """
    rows = Rows(partitions, brokers, by, totals)
    return per_cluster(rows, MEASURES, many=measures_of, reads=(*STATES, *SIZES))


@question
def clusters(
    partitions: DataFrame,
    brokers: DataFrame | None = None,
    *,
    by: Sequence[str] | None = None,
    min_insync_replicas: int | None = None,
    totals: bool = False,
) -> DataFrame:
    """Return one row per cluster: its sizes, its partitions in each state, its violations, and how uneven it is.

    `min_insync_replicas` is for topics that do not show theirs; `totals` and errors are those of `measures`.
    """

    return per_cluster(
        Rows(partitions, brokers, by, totals),
        CLUSTERS,
        many=lambda clusters: clusters_of(with_min_isr_of(clusters, min_insync_replicas)),
    )


def measures_of(clusters: Clusters) -> pa.Table:
    """Return the measures of clusters, with their places in the batch."""
    places = np.arange(clusters.count)
    found, _ = measure_rows(places, [""] * clusters.count, Held.of(clusters).shares())
    return MEASURES.arrow_schema().empty_table() if found is None else columns_of(found)


def clusters_of(clusters: Clusters) -> pa.Table:
    """Return a row for each cluster, with its place in the batch."""
    places, held = np.arange(clusters.count), Held.of(clusters)
    _, uneven = measure_rows(places, [""] * clusters.count, held.shares())
    facts = facts_of(clusters, held) | broken_of_each(clusters, None)[2]
    facts |= {"cluster_id": places, "placer": [""] * clusters.count, "uneven": uneven}
    return columns_of(batch_of(schemas.FACTS, [facts.get(name) for name in schemas.FACTS.column_names]))
