"""Ask which clusters got worse between two nights of a history, with Spark.

The history is rows of `balance.clusters` that were appended each night, or the table `clusters` that
`brokerside report --into CATALOG.SCHEMA` appends to.

Example: `spark-submit got_worse.py lake.kafka.clusters`.
"""

from __future__ import annotations

import argparse
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

WORSE: Final = ("leaderless_count", "under_min_isr_count", "under_replicated_count")
"""A cluster got worse if one of these counts of partitions rose."""
BESIDE: Final = ("fewer_racks_count", "uneven")
"""What is shown beside them, where the history has it."""


def got_worse(history: DataFrame) -> DataFrame:
    """Return the clusters and nights with more partitions in a bad state than the night before, and how many more.

    The history has `cluster`, `observed_at` and the counts; rows with a `fault` are left out. A cluster that is placed
    by several placers is one of each. A count that is not known on one of two nights has not risen.
    """
    keys = [name for name in ("cluster", "placer") if name in history.columns]
    before = Window.partitionBy(*keys).orderBy("observed_at")
    known = history.where("fault is null") if "fault" in history.columns else history
    names = [*WORSE, *(name for name in BESIDE if name in history.columns)]
    rises = known.select(*keys, "observed_at", *(_more(name, F.lag(name).over(before)) for name in names))
    return rises.where(" or ".join(f"{name}_more > 0" for name in WORSE)).orderBy("observed_at", *keys)


def _more(name: str, before: Column) -> Column:
    return (F.col(name) - before).alias(f"{name}_more")


def main(table: str) -> None:
    """Print which clusters of a table of the session's catalog got worse, and when."""
    got_worse(SparkSession.builder.getOrCreate().table(table)).show(truncate=False)


if __name__ == "__main__":
    # Not by `usage.run`: this file needs pyspark alone, so that spark-submit can send it without our packages.
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    main(parser.parse_args().table)
