"""Write the tables of a run to a catalog, as `--into` of `brokerside fleet` and `brokerside report` asks.

The DataFrames are those that the run writes as Parquet, each to the table of its name, whose rows of that run it
replaces (sinks.py). Spark's own catalog in memory is refused, as it forgets the tables when the command ends. pyspark
is imported only where it runs.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from broker.errors import UsageError
from spark_analysis.answers.registry import Asked
from spark_analysis.engines import Engine
from spark_analysis.tables.schemas import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_analysis.sinks import Run
    from spark_analysis.spark_engine import SparkEngine


@attrs.frozen
class Sink:
    """Name the schema that tables are written to, the run, and the time of what its rows say."""

    into: str
    run_id: str
    observed_at: datetime.datetime

    @property
    def run(self) -> Run:
        """Return the run id and the time that every row is stamped with."""
        from spark_analysis.sinks import Run

        return Run(self.run_id, self.observed_at)


def instant(text: str) -> datetime.datetime:
    """Return the time of --observed-at, in UTC unless it has a zone; raise UsageError for another text."""
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--observed-at {text}: allowed is a time such as 2026-11-21T18:30") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)


def session_of(engine: Engine) -> SparkSession:
    """Return the session of an engine that runs on Spark."""
    from spark_analysis.spark_engine import SparkEngine

    if not isinstance(engine, SparkEngine):
        raise AssertionError("--into and URIs choose Spark")
    return engine.session


def sink_engine(spark: SparkSession, sink: Sink | None, asked: Sequence[Asked]) -> SparkEngine:
    """Return the engine that also writes the tables of a run to the sink, if there is one.

    Raises UsageError or InputError if tables cannot be written there.
    """
    from spark_analysis.spark_engine import SparkEngine

    if sink is None:
        return SparkEngine(spark)
    from spark_analysis.data_sources.spark_types import spark_schema_of
    from spark_analysis.sinks import append_all, check_all, forgets

    if forgets(spark, sink.into):
        raise UsageError(
            f"--into {sink.into}: Spark's own catalog is in memory here and forgets its tables at the end; give "
            "--conf spark.sql.catalogImplementation=hive, or the catalog of a lake"
        )
    tables = (*TABLES, *(one.question.run_table for one in asked))
    empty = {table.name: spark.createDataFrame([], spark_schema_of(table)) for table in tables}
    check_all(spark, empty, sink.into, run=sink.run)
    return SparkEngine(spark, lambda rows: append_all(spark, rows, sink.into, run=sink.run))
