"""Check and group DataFrames of batches, records and segments, and count the rows that cannot be used.

Logs are told apart by those of `LOG_KEYS` that the DataFrame has, or the columns that the caller gives as `by`. A row
with a `fault`, and one with a value that cannot be, is counted as rejected, never left out in silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from broker.errors import UsageError
from broker.ids import INT32_MAX, INT64_MAX
from spark_analysis.data_sources.spark_types import spark_schema_of
from spark_analysis.frames.inputs import CLUSTER, by_default, documented_types, quoted, refuse_missing, refuse_other
from spark_analysis.tables.columns import Table

LOG_KEYS: Final = ("run_id", "observed_at", "cluster_id", "cluster")
_MOST: Final = {"int": INT32_MAX, "smallint": 32_767, "tinyint": 127}


def log_keys(frame: DataFrame, what: str, by: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns whose values are equal in all rows of one cluster's logs; there may be none."""
    refuse_other(what, frame)
    if by is None:
        return by_default("logs", (name for name in LOG_KEYS if name in frame.columns))
    if isinstance(by, str):
        raise UsageError(f"by is {by!r}; allowed is a list of columns of the DataFrame of {what}")
    refuse_missing(what, by, frame.columns)
    return tuple(by)


def with_fault(frame: DataFrame) -> DataFrame:
    """Return the frame with a column `fault`, null in every row if it has none."""
    return frame if "fault" in frame.columns else frame.withColumn("fault", F.lit(None).cast("string"))


def checked(
    frame: DataFrame, table: Table, needed: Mapping[str, int | None], known: Mapping[str, int] = MappingProxyType({})
) -> DataFrame:
    """Return the frame, with a fault in each row that has a value which cannot be; that value becomes null.

    `needed` and `known` give the least number of a column, or None for text; a null is a fault where it is needed, and
    in `cluster` where that is a column.
    Numbers have the type that `table` documents.
    """
    types = documented_types(table)
    needed = {CLUSTER: None, **needed}
    fault = F.col("fault")
    columns = {}
    for name, least in {**needed, **known}.items():
        if name not in frame.columns:
            continue
        column = F.col(quoted(name))
        wrong = column.isNull() & F.lit(name in needed)
        allowed = "any text"
        if least is not None:
            most = _MOST.get(types[name].simpleString(), INT64_MAX)
            wrong = F.coalesce((column < least) | (column > most), wrong)
            allowed = f"{least} to {most}"
            columns[name] = F.when(~wrong, column).cast(types[name])
        shown = F.concat(F.lit(f"{name} is "), F.coalesce(column.cast("string"), F.lit("null")))
        fault = F.coalesce(fault, F.when(wrong, F.concat(shown, F.lit(f"; allowed is {allowed}"))))
    return frame.withColumns({"fault": fault, **columns})


def is_good() -> Column:
    """Return the condition of a row that can be used."""
    return F.col("fault").isNull()


def rejected() -> tuple[Column, Column]:
    """Return the aggregates `rejected_count` and `fault`: the least text, as rows arrive in any order."""
    return F.count("fault").alias("rejected_count"), F.min("fault").alias("fault")


def as_documented(frame: DataFrame, keys: Sequence[str], table: Table) -> DataFrame:
    """Return the keys and the columns of `table`, each of its type, with its comment and unit."""
    columns = [
        F.col(field.name).cast(field.dataType).alias(field.name, metadata=field.metadata) for field in _of(table)
    ]
    return frame.select(*keys, *columns)


def answer_schema(frame: DataFrame, keys: Sequence[str], table: Table) -> StructType:
    """Return the schema of the keys, as in `frame`, and of the columns of `table`."""
    types = {field.name: field for field in frame.schema.fields}
    return StructType([StructField(key, types[key].dataType, True, types[key].metadata) for key in keys] + _of(table))


def _of(table: Table) -> list[StructField]:
    return list(spark_schema_of(table).fields)
