"""Read the rows of a table's files in batches, those of chosen clusters alone.

A row group's least and largest `cluster_id` stand in its footer; one that holds none of the clusters is not read.
pyarrow's own data sets would do the same, but import much else, 0.15 of 2.4 CPU s of a report on one small dump.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from broker.cluster import Int64Array
from broker.errors import InputError
from spark_analysis.tables.columns import Table

BATCH_ROWS: Final = 16_384
WHOLE_NAME: Final = "_SUCCESS"
"""An empty file that Spark, too, writes into a table's folder when all others are there."""
_CLUSTER: Final = "cluster_id"


def parquet_files(folder: Path) -> list[Path]:
    """Return the files of a table's folder, sorted by name; none where there is no folder.

    Raises InputError for a folder without `_SUCCESS`: it is not whole.
    """
    found = sorted(path for path in folder.glob("*.parquet") if path.name[0] not in "._")
    if found and not (folder / WHOLE_NAME).exists():
        raise InputError("is not whole, as the run that wrote it was interrupted; repeat it", source=str(folder))
    return found


def scan_batches(
    folder: Path, table: Table, *, columns: Sequence[str] | None = None, clusters: Int64Array | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table's files in order: only `columns` and only the rows of `clusters`, if given.

    `clusters` are sorted. Raises `pa.ArrowException` or `OSError` for a file that cannot be read as this table.
    """
    names = list(table.column_names if columns is None else columns)
    schema = table.arrow_schema()
    wanted = pa.schema([schema.field(name) for name in names])
    read = names if clusters is None or _CLUSTER in names else [*names, _CLUSTER]
    chosen: Any = None if clusters is None else pa.array(clusters, schema.field(_CLUSTER).type)
    for path in parquet_files(folder):
        with pq.ParquetFile(path) as file:
            groups = [group for group in range(file.num_row_groups) if _may_hold(file, group, clusters)]
            for batch in file.iter_batches(batch_size=BATCH_ROWS, row_groups=groups, columns=read):
                found = batch if chosen is None else batch.filter(pc.is_in(batch.column(_CLUSTER), value_set=chosen))
                yield pa.RecordBatch.from_arrays([found.column(name) for name in names], schema=wanted)


def row_count(folder: Path) -> int:
    """Return the number of rows in a table's files, as their footers say."""
    return sum(pq.read_metadata(path).num_rows for path in parquet_files(folder))


def scan_table(folder: Path, table: Table, *, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of a table's files in order: only `columns`, if given."""
    schema = table.arrow_schema()
    wanted = pa.schema([schema.field(name) for name in (table.column_names if columns is None else columns)])
    return pa.Table.from_batches(scan_batches(folder, table, columns=columns), schema=wanted)


def sorted_rows(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the rows in rising order of these columns; equals keep their order."""
    keys: Any = [(name, "ascending") for name in names]
    return rows.take(pc.sort_indices(rows, sort_keys=keys))


def _may_hold(file: Any, group: int, clusters: Int64Array | None) -> bool:
    """Return whether a row group may hold rows of the clusters, by the statistics of its first column of that name."""
    if clusters is None:
        return True
    found = file.metadata.row_group(group)
    place = file.schema_arrow.names.index(_CLUSTER)
    statistics = found.column(place).statistics
    if statistics is None or not statistics.has_min_max:
        return True
    first = int(np.searchsorted(clusters, statistics.min))
    return first < clusters.size and int(clusters[first]) <= statistics.max
