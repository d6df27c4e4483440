"""Append answers to tables of the session's catalog, with the run and time of each row, partitioned by day.

What it decides: a table is created by the first append, with the columns `run_id` and `observed_at` before the others
and `day`, the date of `observed_at` in UTC, after them; it is partitioned by `day`. Its format is the catalog's own, or
`spark.sql.sources.default`: Parquet in Spark's session catalog, Delta or Iceberg where the session has them.

Constraints: everything is checked before anything is written: the catalog and the schema are there, a table that is
there has these columns of these types, and none has rows of this run already. So a run that is repeated is refused, not
doubled. Nothing is created but tables and their partitions, and nothing of the session is changed. A failure between
two tables of one run leaves the first, and one within a table may leave a part of it: the next append of the run is
refused, and says so; delete the rows of the run, and repeat it. Spark moves files into a table before it tells the
catalog of their partition, so that the folder of the day is looked into as well.

Source: Spark 4.3 DataFrameWriter.saveAsTable, which matches columns by name.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Final

import attrs
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from broker.errors import InputError, UsageError
from spark_analysis.frames.inputs import quoted

DAY: Final = "day"
SESSION_CATALOG: Final = "spark_catalog"
_OF_FILES: Final = frozenset({"avro", "csv", "json", "orc", "parquet"})
"""Formats of tables whose partitions the catalog is told of; Delta and Iceberg list files themselves."""
RUN_COLUMNS: Final = ("run_id", "observed_at")


@attrs.frozen
class Run:
    """Name a run, and the time of what its rows say."""

    id: str
    observed_at: datetime.datetime

    @property
    def day(self) -> datetime.date:
        """Return the date of the time, in UTC."""
        return self.observed_at.astimezone(datetime.UTC).date()


def append(rows: DataFrame, table: str, *, run: Run) -> None:
    """Append the rows to a table named CATALOG.SCHEMA.TABLE, or SCHEMA.TABLE of the session's current catalog.

    Raises UsageError for a name that is none, rows that cannot be stamped, a table with other columns and a run that is
    in the table already, and InputError if the schema is not there or Spark cannot write.
    """
    schema, dot, name = table.rpartition(".")
    if not dot:
        raise UsageError(
            f"table {table!r} is named without its schema; allowed is CATALOG.SCHEMA.TABLE or SCHEMA.TABLE"
        )
    append_all(rows.sparkSession, {name: rows}, schema, run=run)


def append_all(spark: SparkSession, tables: Mapping[str, DataFrame], into: str, *, run: Run) -> None:
    """Append rows to tables of the schema `into`, by name; every table is checked before the first is written.

    Raises what `append` raises.
    """
    check_all(spark, tables, into, run=run)
    stamped = {name: _stamped(rows, run) for name, rows in tables.items()}
    # Spark tells the catalog of a table that it creates after it has written the rows: of one that is killed in between
    # only a folder is left, which nobody knows of. So every table is created without rows first.
    for name, rows in stamped.items():
        if not spark.catalog.tableExists(_quoted((*parts_of(into), name))):
            _write(rows.limit(0), into, name)
    for name, rows in stamped.items():
        _write(rows, into, name)


def check_all(spark: SparkSession, tables: Mapping[str, DataFrame], into: str, *, run: Run) -> None:
    """Check the tables of an append without computing their rows; raise what `append_all` raises before it writes."""
    check_schema(spark, into)
    taken = []
    for name, rows in tables.items():
        quoted_name = _quoted((*parts_of(into), name))
        if spark.catalog.tableExists(quoted_name):
            there = spark.table(quoted_name)
            _check_columns(there, _stamped(rows, run), f"{into}.{name}")
            if _is_listed(there, run) or _is_unlisted(there, quoted_name, run):
                taken.append(name)
    if taken:
        names = f"table {into}.{taken[0]} has" if len(taken) == 1 else f"tables {', '.join(taken)} of {into} have"
        raise UsageError(
            f"{names} rows of run {run.id!r} on {run.day} already; nothing was appended. If an append of this run "
            "ended early, delete its rows there, and repeat it"
        )


def _write(rows: DataFrame, into: str, name: str) -> None:
    try:
        rows.write.mode("append").partitionBy(DAY).saveAsTable(_quoted((*parts_of(into), name)))
    except PySparkException as error:
        raise InputError(f"cannot be written: {_sentence(error)}", source=f"{into}.{name}") from error


def check_schema(spark: SparkSession, into: str) -> None:
    """Raise InputError if the session has no catalog and schema of this name, UsageError if it is no name."""
    parts = parts_of(into)
    try:
        if spark.catalog.databaseExists(_quoted(parts)):
            return
        why = "" if len(parts) == 1 else f" in a catalog {parts[0]!r}"
        wanted = f"the session has no schema {'.'.join(parts[1:] or parts)!r}{why}"
    except PySparkException as error:
        wanted = f"the session cannot find it: {_sentence(error)}"
    raise InputError(f"{wanted}; CREATE SCHEMA makes one, and a catalog is a setting of Spark", source=into)


def forgets(spark: SparkSession, into: str) -> bool:
    """Return whether tables of this schema are known to the session alone, and to none after it."""
    catalog = parts_of(into)[0] if len(parts_of(into)) > 1 else spark.catalog.currentCatalog()
    in_memory = spark.conf.get("spark.sql.catalogImplementation", "in-memory") == "in-memory"
    return catalog == SESSION_CATALOG and in_memory


def parts_of(into: str) -> tuple[str, ...]:
    """Return the names that dots part in the name of a schema; raise UsageError for an empty one."""
    parts = tuple(into.split("."))
    if not all(part.strip() and "`" not in part for part in parts):
        raise UsageError(f"a schema is named CATALOG.SCHEMA or SCHEMA, not {into!r}")
    return parts


def _stamped(rows: DataFrame, run: Run) -> DataFrame:
    if DAY in rows.columns:
        raise UsageError(f"the DataFrame has a column {DAY!r} already")
    comment = {"comment": "Date of observed_at in UTC, by which the table is partitioned"}
    return with_run(rows, run.id, run.observed_at).select("*", F.lit(run.day).alias(DAY, metadata=comment))


def _check_columns(there: DataFrame, rows: DataFrame, shown: str) -> None:
    found, wanted = _types(there), _types(rows)
    for name in sorted(found.keys() | wanted.keys()):
        if found.get(name) != wanted.get(name):
            has = f"a column {name!r} of type {found[name]}" if name in found else f"no column {name!r}"
            given = f"are {wanted[name]}" if name in wanted else "have none of that name"
            raise UsageError(f"table {shown} has {has}; the rows to append {given}")


def _is_listed(there: DataFrame, run: Run) -> bool:
    """Return whether the table has rows of the run."""
    return bool(there.where((F.col("run_id") == run.id) & (F.col(DAY) == F.lit(run.day))).limit(1).count())


def _is_unlisted(there: DataFrame, table: str, run: Run) -> bool:
    """Return whether the folder of the day has rows of the run that the catalog does not list.

    If so, the catalog is told of the day, so that the rows can be seen and deleted.
    """
    spark = there.sparkSession
    facts = {row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()}
    kind = facts.get("Provider", "").lower()
    if kind not in _OF_FILES:
        return False
    columns, folder = there.drop(DAY).schema, f"{facts['Location']}/{DAY}={run.day}"
    try:
        # Twice: of one folder that is not there Spark logs a warning with a stack, when it looks for a stream's log.
        found = spark.read.format(kind).schema(columns).load([folder, folder])
        is_found = bool(found.where(F.col("run_id") == run.id).limit(1).count())
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return False
    if is_found:
        spark.sql(f"ALTER TABLE {table} ADD IF NOT EXISTS PARTITION ({DAY} = DATE'{run.day}')")
    return is_found


def _types(rows: DataFrame) -> dict[str, str]:
    return {field.name.lower(): field.dataType.simpleString() for field in rows.schema.fields}


def _quoted(parts: Sequence[str]) -> str:
    return ".".join(quoted(part) for part in parts)


def _sentence(error: PySparkException) -> str:
    """Return the first line of what Spark says, without its stack."""
    return str(error).strip().splitlines()[0].split(" SQLSTATE:")[0].rstrip(".")


__all__ = ("Run", "append", "append_all", "check_all", "check_schema", "forgets")


def with_run(rows: DataFrame, run_id: str, observed_at: datetime.datetime) -> DataFrame:
    """Return the rows with the columns `run_id` and `observed_at` before the others.

    Raises UsageError for rows that have one of them, for an empty run, and for a time without a zone.
    """
    for name in RUN_COLUMNS:
        if name in rows.columns:
            raise UsageError(f"the DataFrame has a column {name!r} already")
    if not run_id:
        raise UsageError("run_id is empty; a name of the run is needed")
    if observed_at.tzinfo is None:
        raise UsageError(f"observed_at is {observed_at}, without a time zone; one is needed, such as UTC")
    stamps = {
        "run_id": F.lit(run_id).alias("run_id", metadata={"comment": "Run that made the row"}),
        "observed_at": F.lit(observed_at).alias("observed_at", metadata={"comment": "Time of what the row says"}),
    }
    return rows.select(*stamps.values(), *rows.columns)
