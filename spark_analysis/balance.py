"""How even is a fleet: the table of measures and the table of clusters, in SQL.

What it decides: for each cluster and placer, how replicas, leaders and bytes are spread over
brokers, racks and topics, beside the best spread that whole shares allow; and which cluster
to look at first. The figures are those of `placement/balance.py`, which says why they are
right and is the oracle that tests hold these to.

Input is the stage (staging.py): brokers, racks and topics stand as arrays in the row of their
cluster, so nothing has to be shuffled and brokers that hold nothing are there.

How: each known quantity of each scope becomes one row with its shares ascending. With n
shares x of total T, q = floor(T / n), r = T mod n and y = x - q:

    stdev = sqrt(n Σ y² - r²) / n        Gini = Σ (2 i - n - 1) y_i / (n T), i from 1

Both sums are of doubles. They do not cancel: either the y are small and the sums are whole
numbers below 2^53, or the terms taken away are small beside the rest.

Example: shares 4, 1, 1, 1 give stdev 1.299, cv 0.742, Gini 0.321 and 2 moves.

Left out: percentiles over clusters, which the report makes of these tables.

Source: placement/balance.py.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_analysis import schemas

_SCOPES: Final = (("broker", "brokers", "broker_id"), ("rack", "racks", "rack"), ("topic", "topics", "topic"))
_QUANTITIES: Final = (("replicas", "replica_count"), ("leaders", "leader_count"), ("bytes", "size_bytes"))


def measures(stage: DataFrame) -> DataFrame:
    """One row per (cluster_id, placer, scope, quantity) that the input says; the table `measures`.

    Brokers, racks and topics that hold nothing count. Brokers without a rack are in no rack. A scope
    without any group (no rack is known, no topics) and a quantity that is not known for every
    group have no row. Over topics nothing can move, so `moves` is null.
    """
    shares = _shares(stage)
    sums = _sums(shares)
    return _figures(sums).select(*schemas.MEASURES.column_names)


def _shares(stage: DataFrame) -> DataFrame:
    """One row per (cluster_id, placer, scope, quantity): `values`, and `ordered` the same ascending."""
    racks = F.filter("racks", lambda rack: rack["rack"].isNotNull())
    groups = stage.select("cluster_id", "placer", "brokers", racks.alias("racks"), "topics", "topic_leader_counts")
    entries = [
        F.struct(
            F.lit(scope).alias("scope"),
            F.lit(quantity).alias("quantity"),
            _first_largest(F.col(f"{array}.{name}"), _values(array, column)).alias("max_group"),
            _values(array, column).alias("values"),
        )
        for scope, array, name in _SCOPES
        for quantity, column in _QUANTITIES
    ]
    return (
        groups.select("cluster_id", "placer", F.explode(F.array(*entries)).alias("entry"))
        .select("cluster_id", "placer", "entry.*")
        .where((F.size("values") > 0) & ~F.exists("values", lambda share: share.isNull()))
        .withColumn("ordered", F.sort_array("values"))
    )


def _first_largest(names: Column, values: Column) -> Column:
    """The name beside the largest value, the first of equals; null where nothing is known."""
    place = F.array_position(values, F.array_max(values)).cast("int")
    return F.when(place > 0, F.element_at(names, place)).cast("string")


def _values(array: str, column: str) -> Column:
    known_apart = array == "topics" and column == "leader_count"
    return F.col("topic_leader_counts") if known_apart else F.col(f"{array}.{column}")


def _sums(shares: DataFrame) -> DataFrame:
    """The same rows with n, total, floor, ceiling, rest and the three sums over shares."""
    zero, nothing = F.lit(0).cast("bigint"), F.lit(0.0)
    counted = shares.withColumn("n", F.size("ordered").cast("bigint")).withColumn(
        "total", F.aggregate("ordered", zero, lambda sum_, share: sum_ + share)
    )
    divided = counted.withColumn("floor", F.expr("total div n")).withColumn("rest", F.col("total") % F.col("n"))
    floor, n = F.col("floor"), F.col("n")
    centred = divided.withColumn("ceiling", floor + F.when(F.col("rest") > 0, 1).otherwise(0)).withColumn(
        "centred", F.transform("ordered", lambda share: (share - floor).cast("double"))
    )
    weighted = F.transform("centred", lambda share, place: share * (2 * place + 1 - n))
    return (
        centred.withColumn("squares", F.aggregate("centred", nothing, lambda sum_, share: sum_ + share * share))
        .withColumn("weighted", F.aggregate(weighted, nothing, lambda sum_, share: sum_ + share))
        .withColumn(
            "excess",
            F.aggregate("ordered", zero, lambda sum_, share: sum_ + F.greatest(share - F.col("ceiling"), zero)),
        )
        .withColumn("lack", F.aggregate("ordered", zero, lambda sum_, share: sum_ + F.greatest(floor - share, zero)))
    )


def _figures(sums: DataFrame) -> DataFrame:
    n, total, rest = F.col("n").cast("double"), F.col("total").cast("double"), F.col("rest").cast("double")
    largest = F.array_max("ordered")
    spread = F.sqrt(n * F.col("squares") - rest * rest)
    best_spread = F.sqrt(rest * (n - rest))
    moves = F.when(F.col("scope") != "topic", F.greatest("excess", "lack"))

    def over_total(value: Column, empty: float = 0.0) -> Column:
        return F.when(F.col("total") > 0, value / total).otherwise(F.lit(empty))

    return sums.select(
        "cluster_id",
        "placer",
        "scope",
        "quantity",
        F.col("n").cast("int").alias("group_count"),
        "total",
        F.array_min("ordered").alias("min"),
        (total / n).alias("mean"),
        largest.alias("max"),
        "max_group",
        over_total(largest * n, 1.0).alias("max_over_mean"),
        (spread / n).alias("stdev"),
        over_total(spread).alias("cv"),
        over_total(F.col("weighted") / n).alias("gini"),
        moves.alias("moves"),
        F.when(moves.isNotNull(), over_total(moves)).alias("moves_share"),
        over_total(F.col("ceiling") * n, 1.0).alias("best_max_over_mean"),
        (best_spread / n).alias("best_stdev"),
        over_total(best_spread).alias("best_cv"),
        over_total(rest * (n - rest) / n).alias("best_gini"),
    )


def clusters(stage: DataFrame, measured: DataFrame) -> DataFrame:
    """One row per (cluster_id, placer): the table `clusters`, with the rank that says where to look first.

    Clusters are compared by: partitions without a leader; under min-ISR; on fewer racks than
    possible; then the share of replicas plus the share of leaders to move until brokers are even. More is
    worse, unknown counts as none, and equals stand in order of number and placer. `measured` is the
    table `measures`; a cluster that has none is kept.
    """
    uneven = (
        measured.where((F.col("scope") == "broker") & F.col("quantity").isin("replicas", "leaders"))
        .groupBy("cluster_id", "placer")
        .agg(F.sum("moves_share").alias("uneven"))
    )

    def worst(name: str) -> Column:
        return F.coalesce(F.col(name), F.lit(0)).desc()

    order = Window.orderBy(
        worst("leaderless_count"),
        worst("under_min_isr_count"),
        worst("fewer_racks_count"),
        worst("uneven"),
        "cluster_id",
        "placer",
    )
    facts = stage.select("cluster_id", *(name for name in schemas.CLUSTERS.column_names[1:] if name != "rank"))
    return (
        facts.join(uneven, on=["cluster_id", "placer"], how="left")
        .withColumn("rank", F.row_number().over(order))
        .select(*schemas.CLUSTERS.column_names)
    )


def nested_table(stage: DataFrame, table: schemas.Table) -> DataFrame:
    """One row per row of `table` that some cluster of the stage carries; a cluster with none gives none.

    Tables that have the key of their cluster get it here.
    """
    rows = stage.where(F.size(table.name) > 0)
    key = [name for name in table.column_names if name in ("cluster_id", "placer")]
    return rows.select(*key, F.inline(table.name)).select(*table.column_names)
