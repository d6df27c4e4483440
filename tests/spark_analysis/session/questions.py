"""Ask every question about the clusters of some dumps, in any session: rows that can be compared."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from spark_analysis.questions import balance, durability, movement, outages, violations


def answers(spark: SparkSession, dumps: Sequence[str]) -> dict[str, list[str]]:
    """The rows of every question's answer on the dumps, sorted, each as JSON; the data sources are registered."""
    read = spark.read.format("kafka_cluster")
    partitions, brokers = read.load(list(dumps)), read.option("table", "brokers").load(list(dumps))
    found = {
        "measures": balance.measures(partitions, brokers),
        "clusters": balance.clusters(partitions, brokers),
        "violations": violations.violations(partitions, brokers),
        "partitions": violations.partitions(partitions, brokers),
        "outages": outages.outages(partitions, brokers, min_insync_replicas=2),
        "plans": movement.plans(partitions, brokers),
        "costs": movement.costs(partitions, brokers, joining=2),
        "copysets": durability.copysets(partitions, brokers),
        "functions": spark.sql("select partition_of_key(concat('user-', id), 12), murmur2('key') from range(20)"),
    }
    return {name: rows(frame) for name, frame in found.items()}


def rows(frame: DataFrame) -> list[str]:
    """The rows, sorted, each as JSON."""
    return sorted(json.dumps(row.asDict(recursive=True), default=str, sort_keys=True) for row in frame.collect())
