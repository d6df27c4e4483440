"""Append each new dump in a folder to a history of clusters, with Spark's Structured Streaming.

A batch of new files is a partition of the history, named by the number that Spark gives the batch; a batch that was cut
off by a failure is made again under its number and replaces what it had written, so each dump counts once.

Example: `python -m spark_analysis.examples.streamed_history dumps history checkpoint`; it runs until it is stopped.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark_analysis import parse
from spark_analysis.examples.usage import run
from spark_analysis.questions import balance

FILES = "path string, modificationTime timestamp, length bigint, content binary"


def append_new(spark: SparkSession, dumps: str, history: str, checkpoint: str, *, once: bool = False) -> StreamingQuery:
    """Start the stream: one row per cluster and dump; with `once` it ends when all files there are have been read."""

    def append(files: DataFrame, batch: int) -> None:
        rows = balance.clusters(parse.partitions(files), parse.brokers(files))
        written = rows.withColumn("batch", F.lit(batch)).write.mode("overwrite")
        written.option("partitionOverwriteMode", "dynamic").partitionBy("batch").parquet(history)

    files = spark.readStream.format("binaryFile").schema(FILES).load(dumps)
    stream = files.writeStream.foreachBatch(append).option("checkpointLocation", checkpoint)
    return (stream.trigger(availableNow=True) if once else stream).start()


def main(dumps: str, history: str, checkpoint: str) -> None:
    """Append dumps until the stream is stopped."""
    spark = SparkSession.builder.getOrCreate()
    append_new(spark, dumps, history, checkpoint).awaitTermination()


if __name__ == "__main__":
    run(main)
