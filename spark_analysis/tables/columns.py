"""Define what a table is: a name, a grain, and columns with a type, a unit and a meaning.

It gives the key that every table of clusters begins with, and the Arrow type of each short name of a type."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa

Part: TypeAlias = Any
"""The values of one column: a numpy array, an Arrow array, a list, or None for all null."""

_TYPES: Final = {
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "ints": pa.list_(pa.int32()),
    "longs": pa.list_(pa.int64()),
    "strings": pa.list_(pa.string()),
    "byte": pa.int8(),
    "short": pa.int16(),
    "uint": pa.uint32(),
    "bytes": pa.binary(),
    "name_values": pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())])),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}


@attrs.frozen
class Column:
    """Define one column: the short name of its type, its meaning, its unit, and whether it may be null."""

    name: str
    type: str
    comment: str
    unit: str = ""
    nullable: bool = False


@attrs.frozen(cache_hash=True)
class Table:
    """Define one table; `grain` says what one row stands for."""

    name: str
    grain: str
    columns: tuple[Column, ...]

    @functools.cache  # noqa: B019 - tables are constants; executors ask once a batch.
    def arrow_schema(self) -> pa.Schema:
        """Return the Arrow schema, comments and units as field metadata under `comment` and `unit`."""
        return pa.schema(
            [
                pa.field(column.name, _TYPES[column.type], nullable=column.nullable, metadata=_metadata(column))
                for column in self.columns
            ]
        )

    @property
    def column_names(self) -> tuple[str, ...]:
        """Return the names of the columns, in order."""
        return tuple(column.name for column in self.columns)


def _metadata(column: Column) -> dict[str, str]:
    return {"comment": column.comment} | ({"unit": column.unit} if column.unit else {})


KEY: Final = (
    Column("cluster_id", "long", "Number of the cluster in this run, from 0; numbers of dumps may have gaps"),
    Column("placer", "string", "Placement policy, or 'dump' for what a real cluster's dump says"),
)

IN_BATCH: Final = "cluster_id"
"""The column of an answer that says which cluster of the batch a row is about."""


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
