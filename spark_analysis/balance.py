"""Compute the table of measures and the table of clusters, in Spark SQL.

What it decides: for each cluster and placer, how replicas, leaders and bytes are spread over brokers, racks and topics,
beside the best spread that can be reached; and the rank, which cluster to look at first.

How: the input is the table of sums (tables/staging.py), which executors write beside the table of brokers: of the
shares x of the groups, those that hold nothing included, with q the floor of their mean, y = x - q and i the rank of a
share, 1 holding most. With n shares of total T and r = T mod n, the y sum to r, so

    n² variance = n Σ y² - r²        n T Gini = (n + 1) r - 2 Σ i y

and the same of the best shares, whose y sum to r too. Σ y² and Σ i y are sums of doubles. They do not cancel: either
the y are small and the sums are whole numbers below 2^53, or the terms taken away are small beside the rest; in Σ i y,
the shares above the mean stand before those below, so that at least a quarter of the sum is left.

Example: shares 4, 1, 1, 1 give stdev 1.299, cv 0.742, Gini 0.321 and 2 moves.

Left out: percentiles over clusters, which the report computes from these tables.

Source: placement/balance/measures.py, which explains the figures and is the oracle of the tests.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_analysis.tables import schemas

_KEY: Final = ("cluster_id", "placer", "scope", "quantity")


def measures(sums: DataFrame) -> DataFrame:
    """Return the table `measures`: one row per cluster, placer, scope and quantity that the input contains.

    Brokers, racks and topics that hold nothing count; fenced brokers do not. Brokers without a rack are in no rack. A
    scope without any group (no rack is known, no topics) and a quantity that is not known for every group have no row.
    Over topics nothing can move, so `moves` is null.
    """
    return _figures(sums).select(*schemas.MEASURES.column_names)


def _figures(sums: DataFrame) -> DataFrame:
    counted = sums.withColumns({"floor": F.expr("total div n"), "rest_count": F.expr("total % n")})
    n, total, rest = F.col("n").cast("double"), F.col("total").cast("double"), F.col("rest_count").cast("double")
    spread = F.sqrt(n * F.col("squares") - rest * rest)
    best_spread = F.sqrt(n * F.col("best_squares") - rest * rest)

    def over_total(value: Column, empty: float = 0.0) -> Column:
        return F.when(F.col("total") > 0, value / total).otherwise(F.lit(empty))

    return counted.select(
        *_KEY,
        F.col("n").cast("int").alias("group_count"),
        "total",
        "min",
        (total / n).alias("mean"),
        "max",
        F.col("first").alias("max_group"),
        over_total(F.col("max") * n, 1.0).alias("max_over_mean"),
        (spread / n).alias("stdev"),
        over_total(spread).alias("cv"),
        over_total(((n + 1) * rest - 2 * F.col("weighted")) / n).alias("gini"),
        "moves",
        F.when(F.col("moves").isNotNull(), over_total(F.col("moves"))).alias("moves_share"),
        over_total(F.col("best_max") * n, 1.0).alias("best_max_over_mean"),
        (best_spread / n).alias("best_stdev"),
        over_total(best_spread).alias("best_cv"),
        over_total(((n + 1) * rest - 2 * F.col("best_weighted")) / n).alias("best_gini"),
        "moves_exact",
    )


def clusters(facts: DataFrame) -> DataFrame:
    """Return the table `clusters`: one row per cluster and placer, with the rank that says where to look first.

    Clusters are compared by: partitions without a leader; under min-ISR; on fewer racks than possible; then the share
    of replicas plus the share of leaders to move until brokers are at their best, shares up to
    `placement.balance.measures.TOLERANCE` counting as none. More is worse, unknown counts as none, and
    equals stand in order of number and placer.
    """

    def worst(name: str) -> Column:
        return F.coalesce(F.col(name), F.lit(0)).desc()

    order = Window.orderBy(
        worst("leaderless_count"),
        worst("under_min_isr_count"),
        worst("fewer_racks_count"),
        F.col("uneven").desc(),
        "cluster_id",
        "placer",
    ).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return facts.withColumn("rank", F.row_number().over(order)).select(*schemas.CLUSTERS.column_names)
