"""Find the brokers that lead more than their share, with Spark, from the tables of a run.

Example: `python -m spark_analysis.examples.with_spark brokerside-out`.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_analysis.examples.usage import run
from spark_analysis.session.spark_session import spark_session


def overloaded_brokers(spark: SparkSession, out: Path, times: float = 2.0) -> DataFrame:
    """Return one row per broker that leads more than `times` the mean of its cluster, the heaviest first."""
    tables = out / "tables"
    brokers = spark.read.parquet(str(tables / "brokers"))
    measures = spark.read.parquet(str(tables / "measures"))
    means = measures.where((F.col("scope") == "broker") & (F.col("quantity") == "leaders"))
    ratio = F.col("leader_count") / F.col("mean")
    return (
        brokers.join(means, on=["cluster_id", "placer"], how="inner")
        .where(ratio > times)
        .select("cluster_id", "placer", "broker_id", "rack", "leader_count", F.round(ratio, 2).alias("times_the_mean"))
        .orderBy(F.desc("times_the_mean"), "cluster_id", "placer", "broker_id")
    )


def main(out: str) -> None:
    """Print the brokers of a run that lead more than twice their share, in a Spark session of its own."""
    with spark_session(app_name="overloaded brokers") as session:
        overloaded_brokers(session, Path(out)).show()


if __name__ == "__main__":
    run(main)
