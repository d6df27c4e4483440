"""Append the tables of a run to a catalog, as `--into` of `brokerside fleet` and `brokerside report` asks.

The tables are those that the run wrote as Parquet, each appended to the table of its name. Spark's own catalog in
memory is refused, as it forgets the tables when the command ends. pyspark is imported only where it runs.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from broker.errors import UsageError
from spark_analysis.answers.registry import Asked
from spark_analysis.engines import Engine, SparkEngine
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import TABLES
from spark_analysis.tables.write import table_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_analysis.sinks import Run


@attrs.frozen
class Sink:
    """Name the schema that tables are appended to, the run, and the time of what its rows say."""

    into: str
    run_id: str
    observed_at: datetime.datetime

    @property
    def run(self) -> Run:
        """Return the run id and the time that every appended row is stamped with."""
        from spark_analysis.sinks import Run

        return Run(self.run_id, self.observed_at)


def instant(text: str) -> datetime.datetime:
    """Return the time of --observed-at, in UTC unless it has a zone; raise UsageError for another text."""
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--observed-at {text}: allowed is a time such as 2026-11-21T18:30") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)


def check_sink(engine: Engine, sink: Sink, asked: Sequence[Asked]) -> None:
    """Raise UsageError or InputError if tables cannot be appended there, before the job runs."""
    from spark_analysis.data_sources.spark_types import spark_schema_of
    from spark_analysis.sinks import check_all, forgets

    spark = _session(engine)
    if forgets(spark, sink.into):
        raise UsageError(
            f"--into {sink.into}: Spark's own catalog is in memory here and forgets its tables at the end; give "
            "--conf spark.sql.catalogImplementation=hive, or the catalog of a lake"
        )
    empty = {table.name: spark.createDataFrame([], spark_schema_of(table)) for table in _tables(asked)}
    check_all(spark, empty, sink.into, run=sink.run)


def append_tables(engine: Engine, sink: Sink, out: Path, asked: Sequence[Asked]) -> None:
    """Append every table that the run wrote under `out`; raise what `spark_analysis.sinks.append` raises."""
    from spark_analysis.data_sources.spark_types import spark_schema_of
    from spark_analysis.sinks import append_all

    spark = _session(engine)
    frames = {
        table.name: spark.read.schema(spark_schema_of(table)).parquet(table_path(out, table).as_uri())
        for table in _tables(asked)
        if table_path(out, table).is_dir()
    }
    append_all(spark, frames, sink.into, run=sink.run)


def _tables(asked: Sequence[Asked]) -> tuple[Table, ...]:
    return (*TABLES, *(one.question.run_table for one in asked))


def _session(engine: Engine) -> SparkSession:
    if not isinstance(engine, SparkEngine):
        raise AssertionError("--into chooses Spark")
    return engine.session
