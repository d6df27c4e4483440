"""Write the rows of each task into one Parquet file per table; Spark receives only the file names.

A dump is parsed once and a cluster is placed once, for any number of tables. A `TaskWriter` puts the keys before the
rows of clusters and holds the columns of many clusters before it makes one Arrow batch of them: a small cluster has a
few rows of a dozen tables, and a batch costs the same for one row as for a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from broker.cluster import Int64Array
from spark_analysis.tables import schemas
from spark_analysis.tables.cluster_rows import ClusterRows, Rows, measure_rows
from spark_analysis.tables.columns import Part, Table, joined_batch
from spark_analysis.tables.lists import repeated
from spark_analysis.tables.write import COUNT_FOLDER, ROW_GROUP_ROWS, PartFile, Written

HELD_ROWS_MAX: Final = 1 << 14  # A megabyte or two of each table.


@attrs.define(eq=False)
class _Held:
    """Collect rows of one table until there are enough for a batch, then write it to the task's file."""

    table: Table
    file: PartFile
    rows: list[Sequence[Part]] = attrs.field(factory=list)
    row_count: int = 0

    def append(self, parts: Sequence[Part]) -> None:
        """Append rows; write whole row groups, so that groups do not depend on the batches."""
        self.rows.append(parts)
        self.row_count += len(parts[0])
        if self.row_count >= min(HELD_ROWS_MAX, ROW_GROUP_ROWS - self.file.waiting_row_count):
            self.flush()

    def flush(self) -> None:
        """Append the rows to the file as one batch."""
        if self.rows:
            self.file.append(joined_batch(self.table, self.rows))
            self.rows, self.row_count = [], 0


class TaskWriter:
    """Write one task's rows to its own files under `root`, one file for each table with rows."""

    def __init__(self, root: Path, name: str) -> None:
        self._root = root
        self._name = name
        self._held: dict[str, _Held] = {}
        self._count_file = (root / COUNT_FOLDER / name).open("wb", buffering=0)

    def __enter__(self) -> TaskWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._count_file.close()

    def tick(self) -> None:
        """Record that one more cluster or dump is done; the driver sees it at once."""
        self._count_file.write(b".")

    def add(self, cluster_ids: Int64Array, clusters: ClusterRows) -> None:
        """Write the rows of these clusters, which arrive in order of number and placer; raise as `append` does."""
        for table, rows in chain(clusters.tables.items(), clusters.further):
            self.append(table, (*_keys(cluster_ids, clusters.placers, rows.counts), *rows.parts))
        measured, uneven = measure_rows(cluster_ids, clusters.placers, clusters.shares)
        if measured is not None:
            self._held_of(schemas.MEASURES).append(measured.columns)
        facts = clusters.facts | {"placer": clusters.placers, "uneven": uneven}
        self.append(schemas.FACTS, (cluster_ids, *(facts.get(name) for name in schemas.FACTS.column_names[1:])))

    def add_further(self, cluster_id: int, placer: str, batches: Iterable[tuple[Table, Rows]]) -> None:
        """Write rows of one cluster that come in batches, beside those that `add` writes; raise as `append` does."""
        for table, rows in batches:
            self.append(table, (*_keys(np.array([cluster_id]), [placer], rows.counts), *rows.parts))

    def append(self, table: Table, parts: Sequence[Part]) -> None:
        """Write rows of a table, its columns in order; raise UsageError for a null in a column that may not be null.

        The rows may wait for others, and the error with them, until `close` at the latest.
        """
        if len(parts[0]):
            self._held_of(table).append(parts)

    def close(self) -> list[Written]:
        """Close all files and return what was written."""
        for held in self._held.values():
            held.flush()
        return [held.file.close() for held in self._held.values()]

    def _held_of(self, table: Table) -> _Held:
        if table.name not in self._held:
            self._held[table.name] = _Held(table, PartFile(self._root, table, self._name))
        return self._held[table.name]


def _keys(cluster_ids: Int64Array, placers: Sequence[str], counts: Sequence[int] | Int64Array) -> tuple[Part, Part]:
    """Return the two key columns of so many rows of each cluster."""
    if cluster_ids.size == 1:
        count = int(counts[0])
        return np.full(count, cluster_ids[0]), repeated(placers[0], count)
    rows = np.repeat(np.arange(cluster_ids.size), counts)
    places: Any = pa.array(rows)
    return cluster_ids[rows], pa.array(placers, type=pa.string()).take(places)
