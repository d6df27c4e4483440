"""Make the runs of a study on Spark: a row for each run.

What it decides: the runs are spread over as many tasks as Spark has cores, a few times; each row is the one that
`replication.studies` makes in a process, with the same columns.

Constraints: nothing is collected; rows come in no order. A task that is repeated makes the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
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

    schema = from_arrow_schema(STUDY_SCHEMA)
    count = study.run_count
    partitions = tasks or max(1, -(-count // RUNS_PER_TASK))

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers: list[int] = batch.column(0).to_numpy().tolist()
            yield from table_of([make_run(study.run_at(number)) for number in numbers]).to_batches()

    return spark.range(0, count, 1, partitions).mapInArrow(make, schema)
