"""Measure from segment files which topics would shrink: by compaction, or by a codec, without a broker.

Example: `python -m spark_analysis.examples.bytes_by_codec /var/lib/kafka 1763935200000`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_analysis import register
from spark_analysis.examples.usage import run
from spark_analysis.questions import storage


def savings(batches: DataFrame, segments: DataFrame, now_ms: int) -> DataFrame:
    """Return one row per topic: bytes stored, bytes unpacked, and bytes that a compaction would drop."""
    stored = storage.codecs(batches).groupBy("topic")
    sums = stored.agg(F.sum("stored_bytes").alias("stored_bytes"), F.sum("unpacked_bytes").alias("unpacked_bytes"))
    dropped = storage.compaction(segments, now_ms=now_ms).groupBy("topic").agg(F.sum("bytes_dropped").alias("dropped"))
    return sums.join(dropped, on="topic", how="left").select("topic", "stored_bytes", "unpacked_bytes", "dropped")


def main(path: str, now_ms: str) -> None:
    """Print the topics of a log directory, those first that take most bytes."""
    spark = SparkSession.builder.getOrCreate()
    register(spark)
    read = spark.read.format("kafka_log")
    batches, segments = (read.option("table", table).load(path) for table in ("batches", "segments"))
    savings(batches, segments, int(now_ms)).orderBy(F.desc("stored_bytes"), "topic").show(truncate=False)


if __name__ == "__main__":
    run(main)
