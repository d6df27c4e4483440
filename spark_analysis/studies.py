"""Make the runs of a study on Spark: a row for each run, in no order.

Example: `study_rows(spark, STUDIES["restarts"]).groupBy("restarts").avg("unavailable_ms").show()`

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from replication.studies import Study, make_run
from spark_analysis.tables.study_rows import STUDY_SCHEMA, table_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

RUNS_PER_TASK: Final = 16


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
