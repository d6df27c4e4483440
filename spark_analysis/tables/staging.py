"""Write the rows of each task into one Parquet file per table; Spark receives only the file names.

Goals, most important first: a dump is parsed once and a cluster is placed once, for any number of tables; rows stand in
order of cluster and placer without being sorted; no row per replica anywhere, and no row per broker through the JVM.

How: a `TaskWriter` puts the keys before the rows of clusters and appends them to the task's file of each table
(tables/write.py). It holds the columns of many clusters, some thousands of rows, before it makes one Arrow batch of
them: a small cluster has a few rows of a dozen tables, and a batch costs the same for one row as for a thousand. Shares
of many clusters become measures at once, too (spreads.py).

Example: two calls of `append` of one row each become one batch of two rows when the writer closes.

Left out: the placement itself, which never leaves the executor; the columns (cluster_rows.py, batches.py).
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
from spark_analysis.tables.batches import joined_batch
from spark_analysis.tables.cluster_rows import ClusterRows, Part, Rows, joined_shares
from spark_analysis.tables.columns import Table
from spark_analysis.tables.repeated import repeated
from spark_analysis.tables.spreads import measured
from spark_analysis.tables.write import COUNT_FOLDER, ROW_GROUP_ROWS, PartFile, Written

HELD_ROWS_MAX: Final = 1 << 14  # A megabyte or two of each table.
HELD_CLUSTERS_MAX: Final = 128


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
        self._described: list[tuple[Int64Array, ClusterRows]] = []
        self._described_count = 0
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
        self._described.append((cluster_ids, attrs.evolve(clusters, tables={}, further=())))
        self._described_count += cluster_ids.size
        if self._described_count >= HELD_CLUSTERS_MAX:
            self._measure()

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
        self._measure()
        for held in self._held.values():
            held.flush()
        return [held.file.close() for held in self._held.values()]

    def _measure(self) -> None:
        """Write the facts and measures of the clusters that were added since the last call."""
        if not self._described:
            return
        ids = np.concatenate([each for each, _ in self._described])
        clusters = [each for _, each in self._described]
        placers = list(chain.from_iterable(each.placers for each in clusters))
        shares = clusters[0].shares if len(clusters) == 1 else joined_shares(clusters)
        measure_rows, uneven = measured(ids, placers, shares)
        if measure_rows is not None:
            self._held_of(schemas.MEASURES).append(measure_rows.columns)
        ends = np.cumsum([each.size for each, _ in self._described])
        for (own_ids, own), end in zip(self._described, ends.tolist(), strict=True):
            facts = own.facts | {"placer": own.placers, "uneven": uneven[end - own_ids.size : end]}
            self.append(schemas.FACTS, (own_ids, *(facts.get(name) for name in schemas.FACTS.column_names[1:])))
        self._described, self._described_count = [], 0

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
