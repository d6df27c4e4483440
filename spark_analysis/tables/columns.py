"""Define what a table is: a name, a grain, and columns with a type, a unit and a meaning.

What it decides: the key that every table of clusters begins with, and the Arrow type of each short name of a type.

Example: Table("pairs", "one row per pair", (*KEY, Column("broker_id", "int", "One broker"))).arrow_schema().

Left out: the tables themselves (schemas.py, advice_schemas.py).
"""

from __future__ import annotations

import functools
from typing import Final

import attrs
import pyarrow as pa

_TYPES: Final = {
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "ints": pa.list_(pa.int32()),
    "longs": pa.list_(pa.int64()),
    "strings": pa.list_(pa.string()),
    "short": pa.int16(),
    "bytes": pa.binary(),
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


def state(name: str, comment: str) -> Column:
    """Return a column that counts partitions in a state; it is null when the input does not say."""
    return Column(name, "long", comment + "; null when the input does not say", "partitions", nullable=True)


KEY: Final = (
    Column("cluster_id", "long", "Number of the cluster in this run, from 0; numbers of dumps may have gaps"),
    Column("placer", "string", "Placement policy, or 'dump' for what a real cluster's dump says"),
)
