"""Define what a job asks of the engine that runs it.

What it decides: where a job is cut. Tasks depend on their own numbers alone and run anywhere, in any order; one table
needs rows of all tasks, the pairs of brokers of the clusters that rank first.

Constraints: the rows and the files, byte for byte, are the same on every engine, for any number of cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from spark_analysis.tables.write import StagedRun
from spark_analysis.tasks import Task


class Engine(Protocol):
    """Run the tasks of a job, and write the table of pairs."""

    def run(self, task: Task, parts: Sequence[range]) -> list[dict[str, Any]]:
        """Run the task on each part of the work; return all rows of `RESULT_SCHEMA`."""

    def write_pairs(self, run: StagedRun, shown: Sequence[tuple[int, str]], *, overwrite: bool) -> None:
        """Write the kept pairs of brokers of these clusters and placers, sorted, as the table of pairs."""
