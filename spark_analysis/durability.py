"""Count the copysets of each cluster of a DataFrame, and how many brokers share in a rebuild, beside the optimum.

What it decides: for each cluster and number of replicas, the distinct sets of brokers that hold all replicas of some
partition (losing such a set at once loses a partition), the scatter widths of brokers (how many others can help to
rebuild one), the fewest copysets that these widths allow, and the fewest at all.

How: as balance.py; the figures are those of `brokerside outage`, in its table `copysets`.

Example: copysets(partitions).selectExpr("cluster", "copyset_count / copyset_count_min as times_the_optimum")

Left out: probabilities of loss; racks.

Source: placement/outages/copysets.py, after Cidon et al., USENIX ATC 2013.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from broker.cluster import ClusterView
from broker.errors import UsageError
from placement.outages import copysets as counted
from spark_analysis.frames.per_cluster import Rows, per_cluster
from spark_analysis.tables.columns import KEY, Column, Table

_BROKERS: Final = "brokers"
_SETS: Final = "copysets"
COPYSETS: Final = Table(
    "copysets",
    "one row per cluster and number of replicas",
    (
        *KEY,
        Column("replication_factor", "long", "Number of replicas of these partitions", "replicas"),
        Column("partition_count", "long", "Partitions with so many replicas", "partitions"),
        Column("broker_count", "long", "Brokers that hold some of them", _BROKERS),
        Column("copyset_count", "long", "Sets of brokers that hold all replicas of some partition", _SETS),
        Column("copyset_count_min", "long", "Fewest copysets that these scatter widths allow", _SETS, nullable=True),
        Column("copyset_count_least_scatter", "long", "Fewest copysets at all, with the least scatter width", _SETS),
        Column("scatter_width_min", "long", "Fewest others that a broker shares with", _BROKERS, nullable=True),
        Column("scatter_width_mean", "double", "Mean of the others that a broker shares with", _BROKERS, nullable=True),
        Column("scatter_width_max", "long", "Most others that a broker shares with", _BROKERS, nullable=True),
    ),
)


def copysets(partitions: DataFrame, brokers: DataFrame | None = None, *, by: Sequence[str] | None = None) -> DataFrame:
    """Return one row per cluster and number of replicas; raise UsageError for a column that does not fit."""
    return per_cluster(Rows(partitions, brokers, by), COPYSETS, copyset_table)


def copyset_table(view: ClusterView) -> pa.Table:
    """Return the copysets of one cluster, a row for each number of replicas."""
    if not view.partitions_complete:
        raise UsageError(f"of cluster {view.name!r} not every partition is listed, so that copysets are not known")
    return counted.copysets_table(counted.copysets(view))
