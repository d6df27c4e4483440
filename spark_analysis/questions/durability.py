"""Compute how often each cluster of a DataFrame loses data, and count its copysets, beside the fewest possible.

It answers for each cluster and number of replicas, the distinct sets of brokers that hold all replicas of some
partition (losing such a set at once loses a partition), the scatter widths of brokers (how many others can help to
rebuild one), the fewest copysets that these widths allow, and the fewest at all; and, by `durability`, losses a year
by independent losses of brokers and by power cuts, with what one broker takes over of another.

Source: placement/outages/copysets.py, after Cidon et al., USENIX ATC 2013.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from spark_analysis.answers.durability import COPYSETS, DURABILITY, QUESTION, copyset_table, durability_table
from spark_analysis.frames.per_cluster import Rows, per_cluster
from spark_analysis.frames.transforming import question
from spark_analysis.frames.views import JUDGED, STATES


@question
def copysets(partitions: DataFrame, brokers: DataFrame | None = None, *, by: Sequence[str] | None = None) -> DataFrame:
    """Return one row per cluster and number of replicas; raise UsageError for a column that does not fit."""
    return per_cluster(Rows(partitions, brokers, by), COPYSETS, copyset_table, reads=JUDGED)


@question
def durability(
    partitions: DataFrame,
    brokers: DataFrame | None = None,
    *,
    by: Sequence[str] | None = None,
    assume: Mapping[str, float] | None = None,
) -> DataFrame:
    """Return one row per cluster and number of replicas; `assume` replaces defaults of the assumptions by name.

    Raises UsageError for a column that does not fit, and for an assumption that there is not or beyond its limits.
    """
    values = QUESTION.values(assume)
    rows = Rows(partitions, brokers, by)
    return per_cluster(rows, DURABILITY, lambda view: durability_table(view, values), reads=STATES)
