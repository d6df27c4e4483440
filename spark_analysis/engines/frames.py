"""Write a DataFrame as a table of ours.

What it decides: a small table that Spark makes is one file, sorted by all columns.

Constraints: its columns are those of the schema, names, types and order; a null stands only where one may.

How: one task sorts the rows and writes them with pyarrow (tables/write.py), under a name of its attempt; the driver
renames the file of the attempt that counted.

Source: Spark 4.3.0 DataFrame.mapInArrow and TaskContext.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from broker.errors import UsageError
from spark_analysis.tables.columns import Table
from spark_analysis.tables.write import Written, spark_schema_json, staged_run, write_part

_RESULT_COLUMNS: Final = "file string, row_count long, fault string"


def spark_schema(table: Table) -> StructType:
    """Return Spark's schema of `table`: types and nulls, comment and unit as column metadata."""
    return StructType.fromJson(json.loads(spark_schema_json(table)))


def write_table(frame: DataFrame, table: Table, out: Path, *, overwrite: bool = False) -> int:
    """Write `frame` as `table` under `out`; return the number of rows.

    Raises `UsageError` when columns differ from the schema, when a null stands in a column that may not be null, or
    when the place is taken: by something else, or by an earlier run without `overwrite`. One task sorts all rows by all
    columns and writes them: small tables only.
    """
    found, wanted = _shown(frame.schema), _shown(spark_schema(table))
    if found != wanted:
        raise UsageError(f"table {table.name} has the columns {wanted}; not {found}")
    rows = frame.coalesce(1).sortWithinPartitions(*frame.columns)
    with staged_run((table,), (), out, overwrite=overwrite, name=f".{table.name}") as run:
        results = rows.mapInArrow(_partition_writer(str(run.root), table), _RESULT_COLUMNS).toArrow().to_pylist()
        faults = sorted(one["fault"] for one in results if one["fault"])
        if faults:
            raise UsageError(faults[0])
        written = (Written(table.name, one["file"], one["row_count"]) for one in results if one["row_count"])
        row_count = run.keep(table, written)
        run.publish(table)
    return row_count


def attempt_name(part: int = 0) -> str:
    """Return a file name for a part of the work that no other attempt uses; names sort by part."""
    context = TaskContext.get()
    return f"{part:05d}" if context is None else f"{part:05d}-{context.taskAttemptId()}"


def _shown(schema: StructType) -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)


def _partition_writer(root: str, table: Table) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function that writes one partition to a file and tells the file's name and rows."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        name, fault, row_count = attempt_name(), "", 0
        try:
            row_count = write_part(Path(root), table, name, batches).row_count
        except UsageError as error:
            fault = str(error)
        yield pa.RecordBatch.from_pydict({"file": [name], "row_count": [row_count], "fault": [fault]})

    return write
