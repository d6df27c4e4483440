"""Hold the schema of the rows of a study, and write them as Parquet.

Constraints: the columns are `replication.studies.COLUMNS`, in that order; a parameter that a refused run did not have
is null.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from replication.studies import COLUMNS, Row

_TYPES: Final[dict[type, Any]] = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
STUDY_SCHEMA: Final = pa.schema([pa.field(name, _TYPES[kind]) for name, kind in COLUMNS.items()])
"""The columns of a study's table."""


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Return rows as a table; a value of another type than its column's, of a refused run, is null."""
    lists: dict[str, list[object]] = {name: [] for name in COLUMNS}
    for row in rows:
        for name, value in row.cells().items():
            kind = COLUMNS[name]
            is_fitting = isinstance(value, kind) or (kind is float and type(value) is int)
            lists[name].append(value if is_fitting else None)
    arrays = [pa.array(values, STUDY_SCHEMA.field(name).type) for name, values in lists.items()]
    return pa.Table.from_arrays(arrays, schema=STUDY_SCHEMA)


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    """Write rows as one Parquet file."""
    pq.write_table(table_of(rows), path)
