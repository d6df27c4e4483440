"""Run a job's tasks in this process, one after another, without Spark.

Goals, most important first: the rows and files of the other engine; no pyspark, whose start costs more than a report.

How: a part's files are named by its number, as executors name theirs by number and attempt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_analysis.tables import schemas
from spark_analysis.tables.scan import sorted_rows
from spark_analysis.tables.write import StagedRun, arrow_to_table
from spark_analysis.tasks import Task


@attrs.frozen
class LocalEngine:
    """Run tasks in this process."""

    def run(self, task: Task, parts: Sequence[range]) -> list[dict[str, Any]]:
        """Run the task on each part of the work; return all rows of `RESULT_SCHEMA`."""
        return [row for number, part in enumerate(parts) for row in task(part, f"{number:05d}")]

    def write_pairs(self, run: StagedRun, shown: Sequence[tuple[int, str]], *, overwrite: bool) -> None:
        """Write the kept pairs of brokers of these clusters and placers, sorted, as the table of pairs."""
        rows = run.kept_rows(schemas.PAIRS)
        wanted = np.zeros(rows.num_rows, dtype=np.bool_)
        for placer in sorted({placer for _, placer in shown}):
            numbers: Any = pa.array([number for number, of in shown if of == placer], pa.int64())
            named: Any = pa.scalar(placer)
            of_placer = pc.and_(pc.is_in(rows["cluster_id"], value_set=numbers), pc.equal(rows["placer"], named))
            wanted |= of_placer.to_numpy(zero_copy_only=False)
        rows = sorted_rows(rows.filter(pa.array(wanted)), rows.column_names)
        arrow_to_table(rows, schemas.PAIRS, run.out, overwrite=overwrite)
