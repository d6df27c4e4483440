"""Make Arrow columns of the outages' arrays; pyarrow is imported when the first column is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from broker.cluster import PAD, BoolArray, ClusterView, Int32Array, Int64Array

if TYPE_CHECKING:
    import pyarrow as pa


def table_of(columns: dict[str, Any]) -> pa.Table:
    """Return a table of arrays or Arrow columns."""
    import pyarrow as pa  # Late: only tables need it.

    table: pa.Table = pa.table({name: column_of(values) for name, values in columns.items()})
    return table


def column_of(values: Any, *, absent: Any = None) -> Any:
    """Return an Arrow column of an array, null where the array `absent` is true."""
    import pyarrow as pa  # Late: only tables need it.

    return pa.array(values, mask=absent) if isinstance(values, np.ndarray) else values


def unknown_column(count: int) -> Any:
    """Return a column of whole numbers of which none is known."""
    import pyarrow as pa  # Late: only tables need it.

    return pa.nulls(count, pa.int64())


def names_column(names: Sequence[str | None], places: Int32Array | Int64Array) -> Any:
    """Return a column with the name at each place."""
    import pyarrow as pa  # Late: only tables need it.

    listed: Any = pa.array(list(names), pa.string())
    return listed.take(pa.array(places))


def lists_column(matrix: Int32Array | Int64Array, held: BoolArray | None = None) -> Any:
    """Return a column with the values of each row as a list, without the padding.

    With `held` each row has as many values as are marked there, null where they are -1.
    """
    import pyarrow as pa  # Late: only tables need it.

    kept = matrix != PAD if held is None else held
    ends: Any = pa.array(np.concatenate(([0], np.cumsum(kept.sum(axis=1)))).astype(np.int32))
    values: Any = pa.array(matrix[kept], mask=None if held is None else matrix[kept] == PAD)
    return pa.ListArray.from_arrays(ends, values)


def partition_columns(view: ClusterView, rows: Int64Array) -> dict[str, Any]:
    """Return the columns that name the partitions in these rows of `view.partitions`."""
    table = view.partitions
    topics = names_column([topic.name for topic in view.topics], table.topic_index[rows])
    return {"topic": topics, "partition": table.partition_ids[rows]}
