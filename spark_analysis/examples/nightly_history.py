"""Append each night's dumps to a history partitioned by day, and ask which clusters got worse, with Spark.

Example: `python -m spark_analysis.examples.nightly_history dumps/2026-11-21 2026-11-21T23:00+00:00 history`.
"""

from __future__ import annotations

import datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_analysis import register
from spark_analysis.examples.usage import run
from spark_analysis.history import got_worse
from spark_analysis.questions import balance
from spark_analysis.sinks import with_run


def append_night(spark: SparkSession, dumps: str, observed_at: datetime.datetime, history: str) -> None:
    """Append one row per cluster of the dumps under a path; the run is called as the time."""
    read = spark.read.format("kafka_cluster")
    rows = balance.clusters(read.load(dumps), read.option("table", "brokers").load(dumps))
    stamped = with_run(rows, observed_at.isoformat(), observed_at)
    stamped.withColumn("day", F.to_date("observed_at")).write.mode("append").partitionBy("day").parquet(history)


def main(dumps: str, observed_at: str, history: str) -> None:
    """Append one night to the history, and print which clusters got worse."""
    spark = SparkSession.builder.getOrCreate()
    register(spark)
    append_night(spark, dumps, datetime.datetime.fromisoformat(observed_at), history)
    got_worse(spark.read.parquet(history)).show(truncate=False)


if __name__ == "__main__":
    run(main)
