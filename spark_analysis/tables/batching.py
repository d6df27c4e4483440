"""Collect what kernels find into Arrow batches of each table.

A dump is parsed once and a cluster is placed once, for any number of tables. `TableBatches` puts the keys before the
rows of clusters and holds the columns of many clusters before it makes one Arrow batch of them: a small cluster has a
few rows of a dozen tables, and a batch costs the same for one row as for a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa

from broker.cluster import Int64Array
from broker.errors import UsageError
from spark_analysis.tables import schemas
from spark_analysis.tables.cluster_rows import ClusterRows, Rows, measure_rows
from spark_analysis.tables.columns import Part, Table, joined_batch
from spark_analysis.tables.lists import repeated

HELD_ROWS_MAX: Final = 1 << 14  # A megabyte or two of each table.
TableBatch: TypeAlias = tuple[Table, pa.RecordBatch]


@attrs.define(eq=False)
class _Held:
    """Collect rows of one table until there are enough for a batch."""

    table: Table
    rows: list[Sequence[Part]] = attrs.field(factory=list)
    row_count: int = 0


class TableBatches:
    """Hold rows of tables, and give them out as batches."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._full: list[TableBatch] = []

    def add(self, cluster_ids: Int64Array, clusters: ClusterRows) -> None:
        """Take the rows of these clusters, which arrive in order of number and placer; raise as `append` does."""
        for table, rows in chain(clusters.tables.items(), clusters.further):
            self.append(table, (*_keys(cluster_ids, clusters.placers, rows.counts), *rows.parts))
        measured, uneven = measure_rows(cluster_ids, clusters.placers, clusters.shares)
        if measured is not None:
            self.append(schemas.MEASURES, measured.columns)
        facts = clusters.facts | {"placer": clusters.placers, "uneven": uneven}
        self.append(schemas.FACTS, (cluster_ids, *(facts.get(name) for name in schemas.FACTS.column_names[1:])))

    def add_further(self, cluster_id: int, placer: str, batches: Iterable[tuple[Table, Rows]]) -> None:
        """Take rows of one cluster that come in batches, beside those that `add` takes; raise as `append` does."""
        for table, rows in batches:
            self.append(table, (*_keys(np.array([cluster_id]), [placer], rows.counts), *rows.parts))

    def append(self, table: Table, parts: Sequence[Part]) -> None:
        """Take rows of a table, its columns in order; raise UsageError for a null in a column that may not be null.

        The rows may wait for others, and the error with them, until `rest` at the latest.
        """
        if len(parts[0]):
            held = self._held.setdefault(table.name, _Held(table))
            held.rows.append(parts)
            held.row_count += len(parts[0])
            if held.row_count >= HELD_ROWS_MAX:
                self._flush(held)

    def full(self) -> Iterator[TableBatch]:
        """Yield the batches that are large enough, and hold them no more."""
        yield from self._full
        self._full.clear()

    def rest(self) -> Iterator[TableBatch]:
        """Yield all rows that are still held."""
        for held in self._held.values():
            self._flush(held)
        yield from self.full()

    def _flush(self, held: _Held) -> None:
        if held.rows:
            batch = joined_batch(held.table, held.rows)
            refuse_nulls(held.table, batch)
            self._full.append((held.table, batch))
            held.rows, held.row_count = [], 0


def refuse_nulls(table: Table, rows: pa.RecordBatch | pa.Table) -> None:
    """Raise UsageError for a null in a column that may not be null."""
    arrays: list[Any] = rows.columns
    for column, values in zip(table.columns, arrays, strict=True):
        if values.null_count and not column.nullable:
            raise UsageError(f"table {table.name}: column {column.name} may not be null")


def _keys(cluster_ids: Int64Array, placers: Sequence[str], counts: Sequence[int] | Int64Array) -> tuple[Part, Part]:
    """Return the two key columns of so many rows of each cluster."""
    if cluster_ids.size == 1:
        count = int(counts[0])
        return np.full(count, cluster_ids[0]), repeated(placers[0], count)
    rows = np.repeat(np.arange(cluster_ids.size), counts)
    places: Any = pa.array(rows)
    return cluster_ids[rows], pa.array(placers, type=pa.string()).take(places)
