"""Measure what 300 dumps of 3,000 partitions cost on Spark once the session is warm.

`python -m tests.benchmarks.dumps_on_spark [--rounds 3]` reads the dumps of tests/benchmarks/engines.py with
`kafka_cluster` on local[2]: the table of clusters, a row per partition, and the same counted by cluster, all columns
handed over. CPU seconds are of this process, the JVM and its workers, medians of the rounds, after 40 dumps for each.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs
from pyspark.sql import DataFrame, SparkSession

import spark_analysis
from spark_analysis.session.spark_session import spark_session
from tests.benchmarks.engines import CASES, write_dumps
from tests.benchmarks.process_tree import tree_cpu_seconds

WARM_UP_DUMPS: Final = 40
CASE: Final = CASES["many"]


def used(frame: DataFrame) -> None:
    """Let Spark take every row with every column."""
    frame.write.format("noop").mode("overwrite").save()


READS: Final[dict[str, Callable[[SparkSession, str], None]]] = {
    "a row per cluster": lambda spark, folder: used(
        spark.read.format("kafka_cluster").option("table", "clusters").load(folder)
    ),
    "a row per partition": lambda spark, folder: used(spark.read.format("kafka_cluster").load(folder)),
    "leaderless partitions counted by cluster": lambda spark, folder: used(
        spark.read.format("kafka_cluster").load(folder).where("leader = -1").groupBy("cluster").count()
    ),
}


def dumps_cpu_seconds(rounds: int) -> dict[str, float]:
    """Return the median CPU seconds of each read."""
    with (
        tempfile.TemporaryDirectory() as name,
        spark_session(app_name="dumps", master="local[2]") as spark,
    ):
        warm, whole = Path(name) / "warm", Path(name) / "whole"
        write_dumps(warm, attrs.evolve(CASE, dump_count=WARM_UP_DUMPS))
        write_dumps(whole, CASE)
        spark_analysis.register(spark)
        taken: dict[str, list[float]] = {what: [] for what in READS}
        for read in READS.values():
            for _ in range(2):
                read(spark, str(warm))
        for _ in range(rounds):
            for what, read in READS.items():
                before = tree_cpu_seconds(os.getpid())
                read(spark, str(whole))
                taken[what].append(tree_cpu_seconds(os.getpid()) - before)
    return {what: statistics.median(some) for what, some in taken.items()}


def main() -> None:
    """Print a line for each read."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    for what, seconds in dumps_cpu_seconds(parser.parse_args().rounds).items():
        print(f"{CASE.name}, {what}: {seconds:.1f} CPU s")


if __name__ == "__main__":
    main()
