"""Turn a folder of dumps into a table of what is wrong in which cluster, in a Spark session of one's own.

Example: `python -m spark_analysis.examples.dumps_to_table dumps/ lake/health`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_analysis import register
from spark_analysis.examples.usage import run


def health(partitions: DataFrame) -> DataFrame:
    """Return one row per cluster and file: partitions, those without a leader, those with a replica out of sync."""
    out_of_sync = F.size("isr") < F.size("replicas")
    return partitions.groupBy("cluster", "source").agg(
        F.count("partition").alias("partition_count"),
        F.count_if(F.col("leader") == -1).alias("leaderless_count"),
        F.count_if(out_of_sync).alias("out_of_sync_count"),
        F.first("fault", ignorenulls=True).alias("first_fault"),
    )


def main(dumps: str, out: str) -> None:
    """Read the dumps under a path, and append their rows to a Parquet table, by day."""
    spark = SparkSession.builder.getOrCreate()
    register(spark)
    partitions = spark.read.format("kafka_cluster").load(dumps)
    rows = health(partitions).withColumn("day", F.current_date())
    rows.write.mode("append").partitionBy("day").parquet(out)
    spark.read.parquet(out).orderBy(F.desc("leaderless_count"), "cluster").show(truncate=False)


if __name__ == "__main__":
    run(main)
