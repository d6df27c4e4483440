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

from pyspark.sql import DataFrame

from spark_analysis.frames.per_cluster import Rows, per_cluster
from spark_analysis.questions.durability import COPYSETS, copyset_table


def copysets(partitions: DataFrame, brokers: DataFrame | None = None, *, by: Sequence[str] | None = None) -> DataFrame:
    """Return one row per cluster and number of replicas; raise UsageError for a column that does not fit."""
    return per_cluster(Rows(partitions, brokers, by), COPYSETS, copyset_table)
