"""Write answers to tables of the session's catalog, with the run and time of each row; a run replaces its own rows.

What it decides: a table is created by the first write, with the columns `run_id` and `observed_at` beside the others
and `day`, the date of `observed_at` in UTC; it is partitioned by `day` and `run_id`, so that a run is replaced without
a look at any other. Its format is the catalog's own, or `spark.sql.sources.default`: Parquet in Spark's session
catalog. Columns of a table that the rows do not have are null.

Constraints: everything is checked before anything is written: the catalog and the schema are there, a table that is
there has the columns of the rows, of their types, and partitions of its own for each run. Nothing is created but tables
and their partitions, and nothing of the session is changed. A write that is killed leaves a part of the run, and other
runs as they were; the same write again makes the run whole. Two writers may not write one run at a time.

How: a partition of files is replaced by INSERT OVERWRITE, also one that the catalog does not know, and those of the
run's other days are dropped. Formats that can overwrite by a condition (Delta, Iceberg) are asked to; none of them had
a release for Spark 4.3 in November 2026, so that this is not tested.

Source: Spark 4.3 InsertIntoHadoopFsRelationCommand, for the static partitions that are deleted before rows are written.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Final

import attrs
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from broker.errors import InputError, UsageError
from spark_analysis.frames.inputs import quoted

DAY: Final = "day"
SESSION_CATALOG: Final = "spark_catalog"
_OF_FILES: Final = frozenset({"avro", "csv", "json", "orc", "parquet"})
"""Formats of tables of files in folders by partition; Delta and Iceberg list files themselves."""
RUN_COLUMNS: Final = ("run_id", "observed_at")
PARTITIONED_BY: Final = (DAY, "run_id")


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
    """Write the rows of a run to a table named CATALOG.SCHEMA.TABLE, or SCHEMA.TABLE of the session's current catalog.

    Rows that the table has of this run are replaced. Raises UsageError for a name that is none, rows that cannot be
    stamped and a table with other columns or partitions, and InputError if the schema is not there or Spark cannot
    write.
    """
    schema, dot, name = table.rpartition(".")
    if not dot:
        raise UsageError(
            f"table {table!r} is named without its schema; allowed is CATALOG.SCHEMA.TABLE or SCHEMA.TABLE"
        )
    append_all(rows.sparkSession, {name: rows}, schema, run=run)


def append_all(spark: SparkSession, tables: Mapping[str, DataFrame], into: str, *, run: Run) -> None:
    """Write rows to tables of the schema `into`, by name; every table is checked before the first is written.

    Raises what `append` raises.
    """
    check_all(spark, tables, into, run=run)
    for name, rows in tables.items():
        table = _quoted((*parts_of(into), name))
        stamped = _stamped(rows, run)
        try:
            if not spark.catalog.tableExists(table):
                stamped.limit(0).write.partitionBy(*PARTITIONED_BY).saveAsTable(table)
            _replace(stamped, table, run)
        except PySparkException as error:
            raise InputError(f"cannot be written: {_sentence(error)}", source=f"{into}.{name}") from error


def check_all(spark: SparkSession, tables: Mapping[str, DataFrame], into: str, *, run: Run) -> None:
    """Check the tables of a write without computing their rows; raise what `append_all` raises before it writes."""
    check_schema(spark, into)
    for name, rows in tables.items():
        table = _quoted((*parts_of(into), name))
        if spark.catalog.tableExists(table):
            _check_columns(spark.table(table), _stamped(rows, run), f"{into}.{name}")
            _check_partitions(spark, table, f"{into}.{name}")


def _replace(rows: DataFrame, table: str, run: Run) -> None:
    """Write the rows of a run in place of those that the table has of it."""
    spark = rows.sparkSession
    there = spark.table(table)
    if _format_of(spark, table) not in _OF_FILES:
        rows.writeTo(table).overwrite(F.col("run_id") == F.lit(run.id))
        return
    given = {name.lower() for name in rows.columns}
    columns = [
        F.col(quoted(field.name)) if field.name.lower() in given else F.lit(None).cast(field.dataType).alias(field.name)
        for field in there.schema.fields
        if field.name not in PARTITIONED_BY
    ]
    place = f"{DAY} = DATE'{run.day}', run_id = {_literal(run.id)}"
    statement = f"INSERT OVERWRITE TABLE {table} PARTITION ({place})".replace("{", "{{").replace("}", "}}")
    spark.sql(f"{statement} SELECT * FROM {{rows}}", rows=rows.select(*columns))
    days = there.where((F.col("run_id") == run.id) & (F.col(DAY) != F.lit(run.day))).select(DAY).distinct()
    for row in days.collect():
        other = f"{DAY} = DATE'{row[DAY]}', run_id = {_literal(run.id)}"
        spark.sql(f"ALTER TABLE {table} DROP IF EXISTS PARTITION ({other})")


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
    comment = {"comment": "Date of observed_at in UTC"}
    return with_run(rows, run.id, run.observed_at).select("*", F.lit(run.day).alias(DAY, metadata=comment))


def _check_columns(there: DataFrame, rows: DataFrame, shown: str) -> None:
    found, wanted = _types(there), _types(rows)
    for name in sorted(wanted):
        if found.get(name) != wanted[name]:
            has = f"a column {name!r} of type {found[name]}" if name in found else f"no column {name!r}"
            raise UsageError(f"table {shown} has {has}; the rows to write are {wanted[name]}")
    for field in there.schema.fields:
        if field.name.lower() not in wanted and not field.nullable:
            raise UsageError(f"table {shown} has a column {field.name!r} that may not be null, and the rows have none")


def _check_partitions(spark: SparkSession, table: str, shown: str) -> None:
    found = [column.name for column in spark.catalog.listColumns(table) if column.isPartition]
    if _format_of(spark, table) in _OF_FILES and found != list(PARTITIONED_BY):
        raise UsageError(
            f"table {shown} is partitioned by {', '.join(found) or 'nothing'}; a run can be replaced where it is "
            f"partitioned by {', '.join(PARTITIONED_BY)}. Write to another schema, and copy the rows there"
        )


def _format_of(spark: SparkSession, table: str) -> str:
    facts = {row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()}
    return str(facts.get("Provider", "")).lower()


def _literal(text: str) -> str:
    """Return a text as SQL writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


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
