"""Compare how durable the placers of a recipe make its clusters, with Spark.

Example: `python -m spark_analysis.examples.placers_compared uneven-racks 20`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_analysis import register
from spark_analysis.examples.usage import run
from spark_analysis.questions.durability import durability


def compared(spark: SparkSession, recipe: str, clusters: int) -> DataFrame:
    """Return one row per placer: copysets, losses a year, and what one broker takes over, means over clusters."""
    fleet = spark.read.format("kafka_fleet").options(clusters=clusters)
    brokers = fleet.option("table", "brokers").load(recipe)
    found = durability(fleet.option("table", "partitions").load(recipe), brokers, assume={"years": 0})
    return (
        found.where("fault is null")
        .groupBy("placer")
        .agg(
            F.count_distinct("cluster_id").alias("cluster_count"),
            F.mean("copyset_count").alias("copyset_count"),
            F.mean("losses_per_year_closed_form").alias("losses_per_year"),
            F.mean("takeover_share_mean").alias("takeover_share"),
        )
        .orderBy("losses_per_year")
    )


def main(recipe: str = "demo", clusters: str = "20") -> None:
    """Print one line for each placer of the recipe, the most durable first."""
    spark = SparkSession.builder.getOrCreate()
    register(spark)
    compared(spark, recipe, int(clusters)).show(truncate=False)


if __name__ == "__main__":
    run(main)
