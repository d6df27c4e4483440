"""Show what losing each broker and each rack does to each cluster of a DataFrame.

`outages` has a row for every loss, `partitions` one for each partition that a loss brings into a bad state. Clusters
of more than `OUTAGE_BROKERS_MAX` brokers have a row with a `fault`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from broker.cluster import BoolArray, ClusterView, Int32Array
from broker.clusters import Clusters
from broker.errors import UsageError
from broker.min_isr import with_min_isr, with_min_isr_of
from placement.outages.lost import After, after_loss, is_under_min_isr
from placement.outages.succession import Successions, successions
from spark_analysis.frames.per_cluster import Rows, per_cluster
from spark_analysis.frames.transforming import question
from spark_analysis.frames.views import LEAST_ISR, STATES
from spark_analysis.tables import schemas
from spark_analysis.tables.columns import KEY, Column
from spark_analysis.tables.outage_rows import check_outages, outage_rows
from spark_analysis.tables.schemas import HIT

OUTAGES: Final = attrs.evolve(
    schemas.OUTAGES,
    grain="one row per cluster and broker or rack that is lost",
    columns=(
        *schemas.OUTAGES.columns,
        Column("severity_rank", "int", "1 is the worst loss of the cluster and scope"),
    ),
)
SCOPES: Final = ("rack", "broker")
_STATES: Final = ("is_leaderless", "is_under_min_isr", "has_no_replica", "is_at_risk")


@question
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

    return per_cluster(
        Rows(partitions, brokers, by),
        OUTAGES,
        many=lambda clusters: outage_rows(with_min_isr_of(clusters, min_insync_replicas)),
    )


@question
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

    return per_cluster(Rows(partitions, brokers, by), HIT, kernel, reads=(*STATES, LEAST_ISR))


def hit_table(view: ClusterView, scope: str) -> pa.Table:
    """Return the partitions of one cluster that each loss hits; raise UsageError where that is not known."""
    check_outages(Clusters.of_view(view))
    if scope == "rack" and not view.racks:
        raise UsageError(f"no broker of cluster {view.name!r} is in a known rack, so that no rack can be lost")
    found = successions(view)
    before = _states(found, after_loss(found, np.zeros(len(view.brokers), np.bool_)))
    parts = []
    racks = np.array([one.rack or "" for one in view.brokers], dtype=object)
    for lost in sorted(view.racks) if scope == "rack" else view.broker_ids.tolist():
        gone = racks == lost if scope == "rack" else view.broker_ids == lost
        after = after_loss(found, gone.astype(np.bool_))
        states = _states(found, after)
        rows = np.flatnonzero((states & ~before).any(axis=0))
        parts.append(_rows(view, found, (scope, lost), (after, states), rows))
    fields = [pa.field(field.name, field.type) for field in list(HIT.arrow_schema())[len(KEY) :]]
    schema = pa.schema(fields)
    return pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)])


def _states(found: Successions, after: After) -> BoolArray:
    """Return bool[4, P]: which partitions are in each of the states, in order."""
    return np.stack([after.leader < 0, is_under_min_isr(found, after), ~after.replica, ~after.clean])


def _rows(
    view: ClusterView, found: Successions, lost: tuple[str, Any], state: tuple[After, BoolArray], rows: Any
) -> pa.Table:
    (scope, name), (after, states), table = lost, state, view.partitions
    count, names = rows.size, pa.array([topic.name for topic in view.topics], pa.string())
    ids: Int32Array = np.append(view.broker_ids, np.int32(-1))
    columns: dict[str, Any] = {
        "scope": pa.array([scope] * count, pa.string()),
        "broker_id": pa.array([name if scope == "broker" else None] * count, pa.int32()),
        "rack": pa.array([name if scope == "rack" else None] * count, pa.string()),
        "topic": names.take(pa.array(table.topic_index[rows])),
        "partition": table.partition_ids[rows],
        "leader": ids[after.leader[rows]],
        "isr_count": after.isr_count[rows],
    }
    for state_name, mask in zip(_STATES, states, strict=True):
        unknown = found.min_isr[rows] < 0 if state_name == "is_under_min_isr" else None
        columns[state_name] = pa.array(mask[rows], mask=unknown)
    return pa.table(columns)
