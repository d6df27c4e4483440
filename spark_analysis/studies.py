"""Make the runs of a study on Spark: a row for each run, in no order.

Example: `study_rows(spark, STUDIES["restarts"]).groupBy("restarts").avg("unavailable_ms").show()`

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from replication.studies import COLUMNS, Row, Study, make_run

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

RUNS_PER_TASK: Final = 16
_TYPES: Final[dict[type, Any]] = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
STUDY_SCHEMA: Final = pa.schema([pa.field(name, _TYPES[kind]) for name, kind in COLUMNS.items()])
"""The columns of a study's table."""


def study_rows(spark: SparkSession, study: Study, *, tasks: int | None = None) -> DataFrame:
    """Return a DataFrame with a row for each run of a study, in `tasks` tasks (default: one for RUNS_PER_TASK runs)."""
    from pyspark.sql.pandas.types import from_arrow_schema

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            places: list[int] = batch.column(0).to_numpy().tolist()
            runs = islice(study.runs(), min(places), max(places) + 1)
            yield from table_of([make_run(run) for run in runs]).to_batches()

    partitions = tasks or max(1, -(-study.run_count // RUNS_PER_TASK))
    runs = spark.range(0, study.run_count, 1, partitions)
    return runs.mapInArrow(make, from_arrow_schema(STUDY_SCHEMA))


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Return rows as a table; a value of another type than its column's, of a refused run, is null."""
    lists: dict[str, list[object]] = {name: [] for name in COLUMNS}
    for row in rows:
        for name, value in row.cells().items():
            kind = COLUMNS[name]
            is_fitting = isinstance(value, kind) or (kind is float and type(value) is int)
            lists[name].append(value if is_fitting else None)
    arrays = [pa.array(values, STUDY_SCHEMA.field(name).type) for name, values in lists.items()]
    return pa.Table.from_arrays(arrays, schema=STUDY_SCHEMA)


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    """Write rows as one Parquet file."""
    pq.write_table(table_of(rows), path)
