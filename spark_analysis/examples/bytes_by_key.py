"""Sum up the bytes of each key prefix and day from segment files, without a broker, in a Spark session of one's own.

Example: `python -m spark_analysis.examples.bytes_by_key /var/lib/kafka orders`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_analysis import register
from spark_analysis.examples.usage import run


def bytes_by_key(records: DataFrame, separator: str = "-") -> DataFrame:
    """Return one row per day and prefix of the key, which ends before `separator`: records and their bytes."""
    prefix = F.split_part(F.col("key").cast("string"), F.lit(separator), F.lit(1))
    day = F.to_date(F.timestamp_millis("timestamp_ms"))
    return (
        records.where("fault is null and not is_control")
        .groupBy(day.alias("day"), prefix.alias("prefix"))
        .agg(F.count("*").alias("record_count"), F.sum("size_bytes").alias("size_bytes"))
    )


def main(path: str, topics: str) -> None:
    """Print the prefixes with most bytes of some topics, with commas between their names."""
    spark = SparkSession.builder.getOrCreate()
    register(spark)
    records = spark.read.format("kafka_log").options(topics=topics, values="false").load(path)
    bytes_by_key(records).orderBy(F.desc("size_bytes"), "day", "prefix").show(truncate=False)


if __name__ == "__main__":
    run(main)
