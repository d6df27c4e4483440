"""Make the runs of a study on Spark: a row for each run, in no order.

Example: `study_rows(spark, STUDIES["restarts"]).groupBy("restarts").avg("unavailable_ms").show()`

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from replication.studies import COLUMNS, Study

if TYPE_CHECKING:
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
            yield from table_of([study.row(number) for number in batch.column(0).to_numpy().tolist()]).to_batches()

    runs = spark.range(0, study.run_count, 1, tasks or max(1, -(-study.run_count // RUNS_PER_TASK)))
    return runs.mapInArrow(make, from_arrow_schema(STUDY_SCHEMA))


def table_of(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Return rows as a table; an integer in a column of floats, of a refused run, is a float."""
    return pa.Table.from_pylist(list(rows), schema=STUDY_SCHEMA)
