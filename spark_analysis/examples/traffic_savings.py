"""Print what fetching from the closest replica, another assignor or a leader move saves, from tables of one's own.

The members are a table with `cluster`, `group`, `member_id`, `topics`, `rack` and `held`; the partitions are dumps of
kafka-topics --describe, with the racks of the brokers.

Example: `python -m spark_analysis.examples.traffic_savings members.parquet dumps racks.csv`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_analysis import register
from spark_analysis.examples.usage import run
from spark_analysis.questions import traffic


def savings(members: DataFrame, partitions: DataFrame) -> DataFrame:
    """Return one row per cluster and change that saves something, with the fetches and sends that still cross."""
    changes = traffic.clusters(members, partitions, assignors=["range", "uniform"])
    crossing = F.col("produce_count") + F.col("replicate_count") + F.col("consume_count")
    return changes.select("cluster", "change", crossing.alias("crossing_count"), "moved_leader_count", "fault")


def main(members: str, dumps: str, racks: str) -> None:
    """Print the changes of every cluster, those first that leave least traffic across zones."""
    spark = SparkSession.builder.getOrCreate()
    register(spark)
    partitions = spark.read.format("kafka_cluster").options(racks=racks, mode="DROPMALFORMED").load(dumps)
    found = savings(spark.read.parquet(members), partitions)
    found.orderBy("cluster", "crossing_count", "change").show(100, truncate=False)


if __name__ == "__main__":
    run(main)
