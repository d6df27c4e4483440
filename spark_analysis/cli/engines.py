"""Choose the engine of `brokerside fleet` and `brokerside report`: this process, or Spark.

What it decides: with `--engine auto`, small work is done in this process, unless `--master`, `--conf` or spark-submit
asks for a Spark. Small is less than a gibibyte of dumps, or up to 1,000 clusters of a fleet. The rows and files are the
same either way.

Constraints: pyspark is imported only where Spark is chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import click

from spark_analysis.cli.commands import PROGRAM
from spark_analysis.cli.interrupts import ending_at_once
from spark_analysis.cli.start_up import without_pandas
from spark_analysis.engines.engine import Engine

AUTO: Final = "auto"
LOCAL: Final = "local"
SPARK: Final = "spark"
LOCAL_BYTES_MAX: Final = 1 << 30  # Some eight million partitions: about half a minute of one core.
LOCAL_CLUSTERS_MAX: Final = 1_000


def is_local(engine: str, *, asks_for_spark: bool, is_small: bool) -> bool:
    """Return whether to run in this process."""
    return engine == LOCAL or (engine == AUTO and is_small and not asks_for_spark)


@contextmanager
def started_engine(*, local: bool, master: str | None, settings: Mapping[str, str], quiet: bool) -> Iterator[Engine]:
    """Yield the engine; with Spark, its session has the `settings` and ends with the block."""
    if local:
        with ending_at_once():
            from spark_analysis.engines.local import LocalEngine
        without_pandas()
        yield LocalEngine()
        return
    with ending_at_once():
        from spark_analysis.engines.spark import SparkEngine
        from spark_analysis.session.spark_session import spark_session
    if not quiet:
        click.echo("Starting Spark …", err=True)
    with spark_session(app_name=PROGRAM, master=master, options=settings) as spark:
        yield SparkEngine(spark)
