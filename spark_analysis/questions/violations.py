"""List what is wrong in each cluster of a DataFrame: broken constraints, and partitions in a bad state.

`violations` has a row per broken constraint with what is broken in words, of each kind and cluster the first ones by
topic and partition; A state that the rows do not show is null, never false.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from broker.cluster import ClusterView
from broker.clusters import Clusters
from broker.min_isr import with_min_isr, with_min_isr_of
from spark_analysis.frames.per_cluster import Rows, columns_of, per_cluster
from spark_analysis.frames.transforming import question
from spark_analysis.frames.views import LEAST_ISR, STATES
from spark_analysis.tables import schemas
from spark_analysis.tables.columns import IN_BATCH, Column, Table, batch_of
from spark_analysis.tables.limits import VIOLATIONS_MAX
from spark_analysis.tables.partition_rows import partition_rows
from spark_analysis.tables.view_rows import broken_of, broken_of_each, violation_rows

VIOLATIONS: Final = attrs.evolve(
    schemas.VIOLATIONS,
    grain=f"one row per broken constraint, of each cluster and kind the first {VIOLATIONS_MAX} by topic and partition",
)
PARTITIONS: Final = attrs.evolve(schemas.PARTITIONS, grain="one row per cluster and partition")


@question
def violations(
    partitions: DataFrame,
    brokers: DataFrame | None = None,
    *,
    by: Sequence[str] | None = None,
    min_insync_replicas: int | None = None,
) -> DataFrame:
    """Return one row per broken constraint; `min_insync_replicas` is for topics that do not show theirs.

    Raises UsageError for a column that is missing or of another type.
    """

    def many(clusters: Clusters) -> pa.Table:
        return violations_of(with_min_isr_of(clusters, min_insync_replicas))

    return per_cluster(Rows(partitions, brokers, by), VIOLATIONS, many=many, reads=(*STATES, LEAST_ISR))


@question
def partitions(
    partitions: DataFrame,
    brokers: DataFrame | None = None,
    *,
    by: Sequence[str] | None = None,
    min_insync_replicas: int | None = None,
) -> DataFrame:
    """Return one row per partition, with each of its states and the names of all that it breaks, as `violations`."""

    def kernel(view: ClusterView) -> pa.Table:
        return partition_table(view, min_insync_replicas)

    return per_cluster(Rows(partitions, brokers, by), PARTITIONS, kernel)


def violations_of(clusters: Clusters) -> pa.Table:
    """Return the first violations of each kind of each cluster; only those that have some are put into words."""
    counts = broken_of_each(clusters, None)[2]["violation_count"]
    broken = [place for place, count in enumerate(counts) if count]
    listed = [broken_of(clusters.one(place), None).listed for place in broken]
    rows = _of(schemas.VIOLATIONS, violation_rows(listed).parts)
    return rows.append_column(IN_BATCH, pa.array(np.repeat(broken, [len(some) for some in listed]), pa.int64()))


def partition_table(view: ClusterView, min_insync_replicas: int | None = None) -> pa.Table:
    """Return every partition of one cluster with what it breaks."""
    view = with_min_isr(view, min_insync_replicas)
    found = broken_of(view, None).found
    if found is None:
        raise AssertionError("a view's violations are known only by looking")
    parts = [_of(schemas.PARTITIONS, rows.parts) for _, rows in partition_rows(view, found, None)]
    return pa.concat_tables(parts or [_of(schemas.PARTITIONS, [[]] * (len(schemas.PARTITIONS.columns) - 2))])


def _of(table: Table, parts: Sequence[Any]) -> pa.Table:
    """Return columns without the key as a table."""
    columns: tuple[Column, ...] = table.columns[2:]
    return columns_of(batch_of(attrs.evolve(table, columns=columns), parts))
