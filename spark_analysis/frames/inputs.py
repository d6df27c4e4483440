"""Check and choose the columns of the DataFrames that a question takes, before any job runs.

One cluster at one moment differs from another in the columns that the caller gives as `by`, else in those of `KEYS`
that the DataFrame has, which are logged then (INFO). A missing column, one of another type, and one that Spark cannot
tell from another is a UsageError that names it. Whole numbers and lists of them may be of any width: those that are too
large are found where the rows are read (views.py, log_inputs.py). Other columns than those needed are not shuffled.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    IntegralType,
    LongType,
    MapType,
    ShortType,
    StructType,
    VariantType,
)

from broker.errors import UsageError
from spark_analysis.data_sources.spark_types import spark_schema_of
from spark_analysis.tables import schemas
from spark_analysis.tables.columns import Table

logger: Final = logging.getLogger(__name__)
CLUSTER: Final = "cluster"
_NO_KEYS: Final = (ArrayType, MapType, StructType, BinaryType, VariantType)
_CHECKED_LATER: Final = ("partitions", "brokers", "records", "batches", "segments", "offsets")
"""Of these, numbers may be wide: a cast that overflows would end the job, without naming the column."""
KEYS: Final = ("run_id", "observed_at", "cluster_id", "placer", CLUSTER, "offset", "time_ms", "source")
_TABLES: Final = {
    "partitions": schemas.CLUSTER_PARTITIONS,
    "brokers": schemas.CLUSTER_BROKERS,
    "members": schemas.MEMBERS,
    "offsets": schemas.OFFSETS,
    "records": schemas.LOG_RECORDS,
    "batches": schemas.LOG_BATCHES,
    "segments": schemas.LOG_SEGMENTS,
}


def cluster_keys(partitions: DataFrame, by: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns whose values are equal in all rows of one cluster at one moment."""
    refuse_other("partitions", partitions)
    has = partitions.columns
    if by is None:
        refuse_missing("partitions", (CLUSTER,), has)
        return by_default("clusters", (name for name in KEYS if name in has))
    if isinstance(by, str) or not by:
        raise UsageError(f"by is {by!r}; allowed is a list of one column or more of the DataFrame of partitions")
    refuse_missing("partitions", by, has)
    return tuple(by)


def by_default(what: str, found: Iterable[str]) -> tuple[str, ...]:
    """Return the keys found by name where `by` is not given, and log them: a column may mean something else there."""
    keys = tuple(found)
    logger.info("by is not given: %s are told apart by %s", what, ", ".join(keys) or "no column")
    return keys


def chosen(
    frame: DataFrame, what: str, needed: Sequence[str], optional: Sequence[str], keys: Sequence[str] = ()
) -> DataFrame:
    """Return the keys, the needed columns, and the optional ones that are there, each of its documented type.

    `what` is the name of the documented table. Raises UsageError for a column that is missing or of another type.
    """
    refuse_other(what, frame)
    has = frame.columns
    refuse_missing(what, (*keys, *needed), has)
    wanted = documented_types(_TABLES[what])
    names = [name for name in (*needed, *optional) if name in has and name not in keys]
    _refuse_doubled(frame, what, (*keys, *names))
    found = {field.name: field.dataType for field in frame.schema.fields}
    for name in keys:
        if isinstance(found[name], _NO_KEYS):
            shown = found[name].simpleString()
            raise UsageError(f"column {name!r} of the DataFrame of {what} is {shown}; it cannot tell clusters apart")
    return frame.select(
        *(F.col(quoted(name)) for name in keys), *(_typed(what, name, found[name], wanted[name]) for name in names)
    )


def documented_types(table: Table) -> dict[str, DataType]:
    """Return Spark's type of each column of a table."""
    return {field.name: field.dataType for field in spark_schema_of(table).fields}


def refuse_other(what: str, given: object) -> None:
    """Raise UsageError unless what is given as `what` is a DataFrame."""
    if not isinstance(given, DataFrame):
        kind = type(given).__name__
        raise UsageError(f"a DataFrame of {what} is needed, such as spark.read gives; this is of type {kind}")


def refuse_missing(what: str, needed: Sequence[str], has: Sequence[str]) -> None:
    """Raise UsageError for the first needed column that the DataFrame of `what` does not have."""
    for name in needed:
        if name not in has:
            raise UsageError(f"the DataFrame of {what} has no column {name!r}; it has {', '.join(has) or 'none'}")


def refuse_unlike(partitions: DataFrame, brokers: DataFrame, keys: Sequence[str]) -> None:
    """Raise UsageError for the first key that is not of one type in the rows of partitions and in those of brokers."""
    for name in keys:
        one, other = (frame.schema[name].dataType.simpleString() for frame in (partitions, brokers))
        if one != other:
            raise UsageError(
                f"column {name!r} is {one} in the DataFrame of partitions and {other} in that of brokers; cast one"
            )


def quoted(name: str) -> str:
    """Return the name of a column as Spark reads it whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def _refuse_doubled(frame: DataFrame, what: str, names: Sequence[str]) -> None:
    """Raise UsageError for the first name that several columns have, which Spark compares without case by default."""
    is_exact = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    for name in names:
        alike = [one for one in frame.columns if one == name or (not is_exact and one.lower() == name.lower())]
        if len(alike) > 1:
            raise UsageError(
                f"the DataFrame of {what} has {len(alike)} columns that Spark cannot tell apart: {', '.join(alike)}"
            )


def _typed(what: str, name: str, found: DataType, wanted: DataType) -> Column:
    column = F.col(quoted(name))
    if found.simpleString() == wanted.simpleString() or (what in _CHECKED_LATER and _is_wide(found, wanted)):
        return column
    if not _are_whole(found, wanted):
        shown, needed = found.simpleString(), wanted.simpleString()
        raise UsageError(f"column {name!r} of the DataFrame of {what} is {shown}; {needed} is needed")
    return column.cast(wanted).alias(name)


def _are_whole(found: DataType, wanted: DataType) -> bool:
    if isinstance(found, ArrayType) and isinstance(wanted, ArrayType):
        return _are_whole(found.elementType, wanted.elementType)
    return isinstance(found, IntegralType) and isinstance(wanted, IntegralType)


def _is_wide(found: DataType, wanted: DataType) -> bool:
    """Return whether these are whole numbers, or lists of them, that may be too large for the type that is wanted."""
    if isinstance(found, ArrayType) and isinstance(wanted, ArrayType):
        return _is_wide(found.elementType, wanted.elementType)
    narrower = isinstance(wanted, IntegralType) and not isinstance(wanted, LongType | ShortType | ByteType)
    return narrower and isinstance(found, LongType)
