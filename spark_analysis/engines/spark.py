"""Run a job's tasks on the executors of a Spark session.

How: a DataFrame has a row and a partition for each part of the work, and mapInArrow runs the task on it; what comes
back are names of files. Spark reads back the pairs of brokers of dumps.

Example:
    with spark_session(app_name="fleet") as spark:
        analyse_fleet(SparkEngine(spark), load_recipe("demo"), Path("out"))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from spark_analysis.engines.frames import attempt_name, spark_schema, write_table
from spark_analysis.tables import schemas
from spark_analysis.tables.columns import Table
from spark_analysis.tables.write import StagedRun
from spark_analysis.tasks import RESULT_SCHEMA, Task


@attrs.frozen
class SparkEngine:
    """Run tasks on the executors of a session."""

    session: SparkSession

    def run(self, task: Task, parts: Sequence[range]) -> list[dict[str, Any]]:
        """Run the task on each part of the work; return all rows of `RESULT_SCHEMA`."""
        if not parts:
            return []

        def work(given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in given:
                numbers: Any = batch.column("id")
                for part in numbers.to_pylist():
                    yield pa.RecordBatch.from_pylist(task(parts[part], attempt_name(part)), schema=RESULT_SCHEMA)

        numbers = self.session.range(0, len(parts), 1, len(parts))
        found: list[dict[str, Any]] = numbers.mapInArrow(work, from_arrow_schema(RESULT_SCHEMA)).toArrow().to_pylist()
        return found

    def write_pairs(self, run: StagedRun, shown: Sequence[tuple[int, str]], *, overwrite: bool) -> None:
        """Write the kept pairs of brokers of these clusters and placers, sorted, as the table of pairs."""
        keys = self.session.createDataFrame(list(shown), "cluster_id long, placer string")
        pairs = self._kept(run, schemas.PAIRS).join(F.broadcast(keys), on=list(keys.columns), how="left_semi")
        write_table(pairs.select(*schemas.PAIRS.column_names), schemas.PAIRS, run.out, overwrite=overwrite)

    def _kept(self, run: StagedRun, table: Table) -> DataFrame:
        """Return the rows that tasks have written of a table, in one partition: these tables are small."""
        return self.session.read.schema(spark_schema(table)).parquet(str(run.root / table.name)).coalesce(1)
