"""Show what losing each broker and each rack does to each cluster of a DataFrame.

What it decides: `outages` has a row for every loss, `partitions` one for each partition that a loss brings into a bad
state. For every broker, and every rack where racks are known, the partitions that would be leaderless, under
min-ISR, without a replica or at risk, beside those that are so now, and who would take over the leaders.
`severity_rank` is 1 for the worst loss of a cluster and scope; these rows are the table `outages` of
`brokerside report`.

Constraints: clusters of more than `OUTAGE_BROKERS_MAX` brokers have a row with a `fault`.

How: as balance.py; the figures are those of `brokerside outage`.

Source: placement/outages/look_ahead.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame

from broker.cluster import ClusterView
from broker.errors import UsageError
from broker.min_isr import with_min_isr
from spark_analysis.frames.chunks import Chunk
from spark_analysis.frames.hit_rows import SCOPES, check_outages, hit_table
from spark_analysis.frames.many import Answered
from spark_analysis.frames.many_outages import outages_of
from spark_analysis.frames.per_cluster import Rows, per_cluster
from spark_analysis.tables import schemas
from spark_analysis.tables.advice_rows import outage_rows
from spark_analysis.tables.columns import Column
from spark_analysis.tables.schemas import HIT

OUTAGES: Final = attrs.evolve(
    schemas.OUTAGES,
    grain="one row per cluster and broker or rack that is lost",
    columns=(
        *schemas.OUTAGES.columns,
        Column("severity_rank", "int", "1 is the worst loss of the cluster and scope"),
    ),
)


def outages(
    partitions: DataFrame,
    brokers: DataFrame | None = None,
    *,
    by: Sequence[str] | None = None,
    min_insync_replicas: int | None = None,
) -> DataFrame:
    """Return one row per broker and rack that is lost; `min_insync_replicas` is for topics that do not show theirs.

    Raises UsageError for a column that is missing or of another type.
    """

    def kernel(view: ClusterView) -> pa.Table:
        return outage_table(with_min_isr(view, min_insync_replicas))

    def many(chunk: Chunk) -> Answered:
        return outages_of(chunk, min_insync_replicas)

    return per_cluster(Rows(partitions, brokers, by), OUTAGES, kernel, many)


def partitions(
    partitions: DataFrame,
    brokers: DataFrame | None = None,
    *,
    scope: str = "rack",
    by: Sequence[str] | None = None,
    min_insync_replicas: int | None = None,
) -> DataFrame:
    """Return one row per rack (or broker, by `scope`) that is lost and partition that it brings into a bad state.

    A cluster of which no rack is known has a fault. Raises UsageError as `outages` does, and for another scope.
    """
    if scope not in SCOPES:
        raise UsageError(f"scope is {scope!r}; allowed are {' and '.join(SCOPES)}")

    def kernel(view: ClusterView) -> pa.Table:
        return hit_table(with_min_isr(view, min_insync_replicas), scope)

    return per_cluster(Rows(partitions, brokers, by), HIT, kernel)


def outage_table(view: ClusterView) -> pa.Table:
    """Return the losses of one cluster, the worst of each scope first; raise UsageError for too many brokers."""
    check_outages(view)
    return pa.Table.from_pylist(list(outage_rows(view, None)), schema=schema_of())


def schema_of() -> pa.Schema:
    """Return the columns of the kernel, without the keys."""
    return pa.schema([pa.field(field.name, field.type) for field in list(OUTAGES.arrow_schema())[2:]])
