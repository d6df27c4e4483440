"""Compute the chance that partitions of each cluster of a DataFrame are leaderless, under min-ISR or lost.

It answers for each cluster and event (any moment; one rack is down; power is back after a cut) the chance that some
partition is in each state, its standard error, and how many are, on average and in 99 of 100 cases. Rows are those of
the table `availability` of `brokerside fleet --ask availability`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from broker.min_isr import with_min_isr
from spark_analysis.answers.availability import AVAILABILITY, QUESTION, availability_table
from spark_analysis.frames.per_cluster import Rows, per_cluster
from spark_analysis.frames.transforming import question
from spark_analysis.frames.views import LEAST_ISR, STATES


@question
def availability(
    partitions: DataFrame,
    brokers: DataFrame | None = None,
    *,
    by: Sequence[str] | None = None,
    min_insync_replicas: int | None = None,
    assume: Mapping[str, float] | None = None,
) -> DataFrame:
    """Return one row per cluster and event; `assume` replaces defaults of the assumptions by name.

    `min_insync_replicas` is for topics that do not show theirs. Raises UsageError for a column that does not fit, and
    for an assumption that there is not or that is beyond its limits.
    """
    values = QUESTION.values(assume)
    return per_cluster(
        Rows(partitions, brokers, by),
        AVAILABILITY,
        lambda view: availability_table(with_min_isr(view, min_insync_replicas), values),
        reads=(*STATES, LEAST_ISR),
    )
