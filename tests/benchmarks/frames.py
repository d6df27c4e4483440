"""Measure the DataFrame functions on very many tiny clusters: CPU seconds of the JVM and its workers per function.

`python -m tests.benchmarks.frames 1000 10000 100000` asks balance, violations and outages about so many clusters of
3 brokers and 12 partitions, a tenth of them with a replica out of sync; `--functions movement` names others. Rows are
read from Parquet and answers are thrown away, so that a figure holds the reading, the shuffle, and the answers. Every
function is asked once about 100 clusters before, which is not counted. `--brokers` gives rows of brokers, too, each in
a rack of its own.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_analysis.questions import availability, balance, durability, movement, outages, storage, violations
from spark_analysis.session.spark_session import spark_session
from tests.benchmarks.process_tree import tree_cpu_seconds

PARTITIONS: Final = 12
TOPICS: Final = 3
FUNCTIONS: Final[dict[str, Callable[..., DataFrame]]] = {
    "balance": balance.measures,
    "violations": violations.violations,
    "outages": outages.outages,
    "clusters": balance.clusters,
    "partitions": violations.partitions,
    "copysets": durability.copysets,
    "held": storage.held,
    "availability": lambda *rows: availability.availability(*rows, assume={"draws": 64}),
    "plans": movement.plans,
    "movement": movement.costs,
}
ASKED: Final = ("balance", "violations", "outages")


def tiny_clusters(spark: SparkSession, count: int) -> DataFrame:
    """Rows of so many clusters; leaders and their followers go round the brokers, from another one in each topic."""
    rows = spark.range(count * PARTITIONS).select(
        F.format_string("cluster-%07d", F.expr(f"id div {PARTITIONS}")).alias("cluster"),
        F.expr(f"concat('topic-', id % {TOPICS})").alias("topic"),
        F.expr(f"cast(id % {PARTITIONS} div {TOPICS} as int)").alias("partition"),
        F.expr("cast((xxhash64(id) & 1023) % 3 as int)").alias("first"),
        F.expr(f"xxhash64(id div {PARTITIONS}) % 10 = 0 and id % {PARTITIONS} = 5").alias("is_lagging"),
    )
    replicas = F.expr("array(first, (first + 1) % 3, (first + 2) % 3)")
    return rows.select(
        "cluster", "topic", "partition", F.col("first").alias("leader"), replicas.alias("replicas"),
        F.when(F.col("is_lagging"), F.slice(replicas, 1, 2)).otherwise(replicas).alias("isr"),
        F.lit(2).alias("min_insync_replicas"),
    )  # fmt: skip


def brokers_of(partitions: DataFrame) -> DataFrame:
    """Rows of the three brokers of each cluster."""
    ids = F.explode(F.array(*(F.lit(number) for number in range(3)))).alias("broker_id")
    brokers = partitions.select("cluster").distinct().select("cluster", ids)
    return brokers.withColumn("rack", F.concat(F.lit("r"), F.col("broker_id").cast("string")))


def cpu_seconds(work: Callable[[], None]) -> float:
    """CPU seconds of this process and all below it while it works."""
    start = tree_cpu_seconds(os.getpid())
    work()
    return tree_cpu_seconds(os.getpid()) - start


def asked(name: str, *rows: DataFrame) -> Callable[[], None]:
    """Ask a function about the rows, and throw its answers away."""
    return lambda: FUNCTIONS[name](*rows).write.format("noop").mode("overwrite").save()


def main() -> None:
    """Print CPU seconds and ms a cluster, a line for each function and number of clusters."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", type=int, nargs="+", metavar="CLUSTERS")
    parser.add_argument("--functions", nargs="+", choices=tuple(FUNCTIONS), default=ASKED)
    parser.add_argument("--brokers", action="store_true", help="give rows of brokers, too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, spark_session(app_name="frames", master="local[2]") as spark:
        for count in (100, *given.counts):
            tiny_clusters(spark, count).write.parquet(str(Path(name) / str(count)))
            of_partitions = spark.read.parquet(str(Path(name) / str(count)))
            brokers_of(of_partitions).write.parquet(str(Path(name) / f"{count}-brokers"))
        for function in given.functions:
            for count in (100, *given.counts):
                names = (str(count), f"{count}-brokers") if given.brokers else (str(count),)
                spent = cpu_seconds(asked(function, *(spark.read.parquet(str(Path(name) / one)) for one in names)))
                if count > 100:
                    per = f"{spent / count * 1e3:7.3f} ms a cluster"
                    print(f"{function:>12}: {count:>9,} clusters {spent:8.1f} CPU s, {per}", flush=True)


if __name__ == "__main__":
    main()
