"""Run the tasks of a job, on the executors of a Spark session or in this process, with the same rows and files.

Tasks depend on their own numbers alone and write files (tasks.py), so they run anywhere, in any order; the job joins
what they wrote (jobs.py). What tasks and Spark need is imported only where it runs.

Example:
    with spark_session(app_name="fleet") as spark:
        analyse_fleet(SparkEngine(spark), load_recipe("demo"), Path("out"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import attrs
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Task: TypeAlias = Callable[[Sequence[int], str], list[dict[str, Any]]]
"""Work on the given numbers, write files of the given name, and return rows of `RESULT_SCHEMA`."""
FAILURE: Final[Any] = pa.struct(
    [
        pa.field("input_index", pa.int64()),
        pa.field("is_fatal", pa.bool_()),
        pa.field("what", pa.string()),
        pa.field("source", pa.string()),
        pa.field("line", pa.int64()),
        pa.field("value", pa.string()),
    ]
)
RESULT_SCHEMA: Final = pa.schema(
    {"table": pa.string(), "file": pa.string(), "row_count": pa.int64(), "fault": pa.string(), "failure": FAILURE}
)


class Engine(Protocol):
    """Run the tasks of a job."""

    def run(self, task: Task, parts: Sequence[range]) -> list[dict[str, Any]]:
        """Run the task on each part of the work; return all rows of `RESULT_SCHEMA`."""


@attrs.frozen
class LocalEngine:
    """Run tasks in this process."""

    def run(self, task: Task, parts: Sequence[range]) -> list[dict[str, Any]]:
        """Run the task on each part of the work; return all rows of `RESULT_SCHEMA`."""
        return [row for number, part in enumerate(parts) for row in task(part, f"{number:05d}")]


@attrs.frozen
class SparkEngine:
    """Run tasks on the executors of a session: a row and a partition of a DataFrame for each part of the work."""

    session: SparkSession

    def run(self, task: Task, parts: Sequence[range]) -> list[dict[str, Any]]:
        """Run the task on each part of the work; return all rows of `RESULT_SCHEMA`."""
        from pyspark.sql.pandas.types import from_arrow_schema

        if not parts:
            return []

        def work(given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None, "Spark calls this in a task"
            for batch in given:
                numbers: Any = batch.column("id")
                for part in numbers.to_pylist():
                    # A name that no other attempt uses; names sort by part.
                    rows = task(parts[part], f"{part:05d}-{context.taskAttemptId()}")
                    yield pa.RecordBatch.from_pylist(rows, schema=RESULT_SCHEMA)

        numbers = self.session.range(0, len(parts), 1, len(parts))
        found: list[dict[str, Any]] = numbers.mapInArrow(work, from_arrow_schema(RESULT_SCHEMA)).toArrow().to_pylist()
        return found
