"""Make Arrow batches of a table from columns: numpy arrays, Arrow arrays or lists.

Constraints: whole numbers are 0 or more; in a column of them that may be null, -1 is an unknown value, written as null.

Example: batch_of(PAIRS, ([0], ["dump"], np.array([1]), np.array([2]), np.array([30]))) has one row.

Left out: the keys of rows, and where the batches go (staging.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from spark_analysis.tables.cluster_rows import Part
from spark_analysis.tables.columns import Table


def batch_of(table: Table, parts: Sequence[Part]) -> pa.RecordBatch:
    """Return one batch of a table; `columns` are in the order of its schema."""
    schema = table.arrow_schema()
    arrays = [_array(field, part, len(parts[0])) for field, part in zip(schema, parts, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def joined_batch(table: Table, rows: Sequence[Sequence[Part]]) -> pa.RecordBatch:
    """Join several sets of columns, each as `batch_of` takes it, into one batch."""
    if len(rows) == 1:
        return batch_of(table, rows[0])
    schema, counts = table.arrow_schema(), [len(parts[0]) for parts in rows]
    columns = zip(*rows, strict=True)
    arrays = [_joined(field, column, counts) for field, column in zip(schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _joined(field: Any, parts: Sequence[Part], counts: Sequence[int]) -> Any:
    """Join the parts of one column into one Arrow array."""
    kinds = {type(part) for part in parts}
    if kinds == {list}:
        return _array(field, list(chain.from_iterable(parts)), sum(counts))
    if kinds == {np.ndarray}:
        return _array(field, np.concatenate(parts), sum(counts))
    if kinds == {type(None)}:
        return _array(field, None, sum(counts))
    arrays = (_array(field, part, count) for part, count in zip(parts, counts, strict=True))
    return pa.concat_arrays([array.cast(field.type) for array in arrays])


def _array(field: Any, part: Part, count: int) -> Any:
    """Return one Arrow array of this field's type."""
    if part is None:
        return pa.nulls(count, field.type)
    if isinstance(part, pa.Array):
        return part
    absent = part < 0 if field.nullable and isinstance(part, np.ndarray) and part.dtype.kind == "i" else None
    return pa.array(part, type=field.type, mask=absent)
