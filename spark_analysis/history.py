"""Ask of a history of clusters which of them got worse, vanished or could not be read.

A history is rows of `balance.clusters` with `observed_at`, appended night after night: by `sinks.append`, by the stream
of the examples, or the table `clusters` that `brokerside report --into CATALOG.SCHEMA` appends to. Clusters are
distinguished by `cluster` and, where the history has it, `placer`. Files with a date in their names give clusters with
one: north-2026-11-27 and north-2026-11-28 are the cluster north. Where one run has several such moments, the newest
counts.

Example:
    got_worse(spark.table("lake.kafka.clusters"), since=datetime.datetime(2026, 11, 27, tzinfo=datetime.UTC)).show()
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from broker.errors import UsageError
from spark_analysis.frames.inputs import CLUSTER, refuse_missing, refuse_other
from spark_analysis.sources.dated_names import of_path

WORSE: Final = ("leaderless_count", "under_min_isr_count", "under_replicated_count")
"""A cluster got worse if one of these counts of partitions rose."""
BESIDE: Final = ("fewer_racks_count", "uneven")
"""What is shown beside them, where the history has it."""
TIME: Final = "observed_at"
_PERHAPS_DATED: Final = r"20\d\d|\d{10}"


def got_worse(history: DataFrame, *, since: datetime.datetime | None = None) -> DataFrame:
    """Return one row per cluster and time at which it was worse than before, in order of time.

    `change` is "worse", with the rise of each count in a column NAME_more; "vanished" of a cluster that has rows at one
    time and none at the next; "unreadable" of one whose rows all have a `fault`, which is shown. Without `since` each
    time is compared with the one before; with it the last time of all with the last one that is not after `since`. A
    count that is not known on one side has not risen. Raises UsageError for a history without the columns.
    """
    refuse_other("history", history)
    refuse_missing("history", (CLUSTER, TIME, *WORSE), history.columns)
    keys = [name for name in (CLUSTER, "placer") if name in history.columns]
    fault = F.col("fault") if "fault" in history.columns else F.lit(None).cast("string")
    names = [*WORSE, *(name for name in BESIDE if name in history.columns)]
    rows = _newest_moments(history.select(*keys, TIME, *names, fault.alias("fault")), keys)
    if since is not None:
        if since.tzinfo is None:
            raise UsageError(f"since is {since}, without a time zone; one is needed, such as UTC")
        rows = _two_times(rows, keys, since)
    good = rows.where("fault is null")
    before = Window.partitionBy(*keys).orderBy(TIME)
    more = [_more(name, F.lag(name).over(before)) for name in names]
    rises = good.select(*keys, TIME, F.lit("worse").alias("change"), *more, "fault")
    worse = rises.where(" or ".join(f"{name}_more > 0" for name in WORSE))
    others = _vanished(rows, keys).unionByName(_unreadable(rows, good, keys))
    found = worse.unionByName(others, allowMissingColumns=True).orderBy(TIME, *keys)
    return found if since is None else found.where(F.col(TIME) > F.lit(since))


def _newest_moments(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the rows with the names of clusters without dates; of several moments at one time, those of the newest."""
    names = rows.select(CLUSTER).distinct().where(F.col(CLUSTER).rlike(_PERHAPS_DATED))
    dated = F.broadcast(
        names.withColumn("dated", F.udf(_dated, "struct<name:string,moment:string>", useArrow=False)(CLUSTER))
    )
    named = rows.join(dated, on=CLUSTER, how="left").withColumns(
        {CLUSTER: F.coalesce("dated.name", CLUSTER), "moment": F.coalesce("dated.moment", F.lit(""))}
    )
    newest = named.withColumn("newest", F.max("moment").over(Window.partitionBy(*keys, TIME)))
    return newest.where("moment = newest").select(*rows.columns)


def _dated(name: str) -> tuple[str, str] | None:
    """Return a cluster's name without the date in it, and that moment; None without a date."""
    named = of_path(name, has_ending=False)
    return None if named.time is None or named.label is None else (named.cluster, named.label)


def _two_times(rows: DataFrame, keys: Sequence[str], since: datetime.datetime) -> DataFrame:
    """Return the rows of the last time, and of each cluster those it had last by `since`, as of one time."""
    last = rows.agg(F.max(TIME).alias("last"))
    by_then = rows.where(F.col(TIME) <= F.lit(since))
    then = by_then.agg(F.max(TIME).alias("then"))
    newest_first = Window.partitionBy(*keys).orderBy(F.col("fault").isNotNull(), F.desc(TIME))
    earlier = by_then.withColumn("place", F.row_number().over(newest_first)).where("place = 1").drop("place", TIME)
    latest = rows.where(F.col(TIME) > F.lit(since)).join(last, on=F.col(TIME) == F.col("last"), how="inner")
    return earlier.crossJoin(then.withColumnRenamed("then", TIME)).unionByName(latest.drop("last"))


def _vanished(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the clusters that have rows at one time and none at the next time of the history."""
    times = rows.select(TIME).distinct()
    following = times.select(TIME, F.lead(TIME).over(Window.orderBy(TIME)).alias("next")).where("next is not null")
    due = rows.select(*keys, TIME).distinct().join(F.broadcast(following), on=TIME, how="inner")
    there = rows.select(*keys, F.col(TIME).alias("next")).distinct()
    gone = due.where(f"{CLUSTER} is not null").join(there, on=[*keys, "next"], how="left_anti")
    return gone.select(
        *keys, F.col("next").alias(TIME), F.lit("vanished").alias("change"), F.lit(None).cast("string").alias("fault")
    )


def _unreadable(rows: DataFrame, good: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the clusters of which nothing could be used at a time, and those of faults that name no cluster."""
    faults = rows.where("fault is not null").groupBy(*keys, TIME).agg(F.min("fault").alias("fault"))
    unread = faults.join(good.select(*keys, TIME), on=[*keys, TIME], how="left_anti")
    return unread.select(*keys, TIME, F.lit("unreadable").alias("change"), "fault")


def _more(name: str, before: Column) -> Column:
    return (F.col(name) - before).alias(f"{name}_more")


__all__ = ("got_worse",)
