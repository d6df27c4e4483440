"""Find the clusters of a folder of dumps that a power cut would most likely cost data, with Spark.

Example: `python -m spark_analysis.examples.riskiest_clusters 'dumps/*.txt' 0.5` if half a percent of brokers never come
back.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_analysis import register
from spark_analysis.examples.usage import run
from spark_analysis.questions.availability import availability


def riskiest(spark: SparkSession, dumps: str, lost_percent: float) -> DataFrame:
    """Return one row per cluster: the chances in a power cut and at any moment, the riskiest cluster first."""
    read = spark.read.format("kafka_cluster")
    assume = {"power_cut_lost_percent": lost_percent}
    risks = availability(read.load(dumps), read.option("table", "brokers").load(dumps), assume=assume)
    chances = risks.where("fault is null").groupBy("cluster").pivot("event", ["moment", "power cut"])
    found = chances.agg(
        F.first("lost_chance").alias("loss"),
        F.first("leaderless_count_mean").alias("leaderless_mean"),
    )
    return found.select(
        "cluster",
        F.col("`power cut_loss`").alias("loss_chance"),
        F.col("`power cut_leaderless_mean`").alias("leaderless_after_mean"),
        F.col("moment_leaderless_mean").alias("leaderless_now_mean"),
    ).orderBy(F.desc("loss_chance"), "cluster")


def main(dumps: str, lost_percent: str = "1") -> None:
    """Print the clusters that a power cut would most likely cost data."""
    spark = SparkSession.builder.getOrCreate()
    register(spark)
    riskiest(spark, dumps, float(lost_percent)).show(truncate=False)


if __name__ == "__main__":
    run(main)
