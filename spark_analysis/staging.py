"""What executors hand over: one row per cluster and placer, its brokers, racks, topics and violations inside.

Goals: a dump is parsed once and a cluster is placed once, whatever number of tables comes
of it; a table is then a `select` and an `inline`; no row per replica anywhere.

How: the nested columns are arrays of structs whose fields are the columns of the table in
schemas.py, without the key. Columns of many clusters are joined into one Arrow batch, so
that Arrow is called per column and batch, not per broker.

The scalar columns are those of the table of clusters, without its rank and with the place
that the cluster has in its input instead of its number, which only the whole run knows.
`topic_leader_counts` are the partitions led of each topic, in the order of `topics`, for
measures; the table of topics does not show them.
`inputs`, `rejects` and `changes` stand on the first cluster of an input. `failure` is set,
and all else is empty, where an input cannot be used: an error crosses to the driver as a
row, not as a Java traceback.

Example: `stage.select("placer", F.inline("brokers"))` is the table of brokers.

Left out: the placement itself, which never leaves the executor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa

from spark_analysis import schemas
from spark_analysis.schemas import Table

Part: TypeAlias = Any
"""One cluster's share of one nested column: a numpy array, an Arrow array, a list, or None for all null."""

KEY_COLUMN_COUNT: Final = 2
NESTED: Final = (schemas.BROKERS, schemas.RACKS, schemas.TOPICS, schemas.VIOLATIONS, schemas.PAIRS)
"""Nested tables that carry the key of their cluster."""
PER_INPUT: Final = (schemas.INPUTS, schemas.REJECTS, schemas.CHANGES)
"""Nested tables of an input; changes are between dumps, and have no key either."""
BATCH_ROW_COUNT_MAX: Final = 64
BATCH_NESTED_COUNT_MAX: Final = 65_536  # Some megabytes: what one batch may hold of brokers or topics.
_NOT_STAGED: Final = frozenset({"cluster_id", "rank"})


def _nested_fields(table: Table) -> list[Any]:
    fields = list(table.arrow_schema())
    # Spark reads arrays back as nullable all the same; nullable from the start spares it a check per row.
    return [field.with_nullable(True).remove_metadata() for field in fields[_key_count(table) :]]


def _key_count(table: Table) -> int:
    return KEY_COLUMN_COUNT if table in NESTED else 0


def _stage_schema() -> pa.Schema:
    scalars = [
        field.with_nullable(True).remove_metadata()
        for field in schemas.CLUSTERS.arrow_schema()
        if field.name not in _NOT_STAGED
    ]
    place = [pa.field("input_index", pa.int64()), pa.field("cluster_index", pa.int64())]
    failure = pa.struct(
        [
            pa.field("what", pa.string()),
            pa.field("source", pa.string()),
            pa.field("line", pa.int64()),
            pa.field("value", pa.string()),
        ]
    )
    nested = [pa.field(table.name, pa.list_(pa.struct(_nested_fields(table)))) for table in (*NESTED, *PER_INPUT)]
    leaders = pa.field("topic_leader_counts", pa.list_(pa.int64()))
    return pa.schema([*place, *scalars, leaders, pa.field("failure", failure), *nested])


STAGE_SCHEMA: Final = _stage_schema()


@attrs.frozen(eq=False)
class Columns:
    """One cluster's rows of one nested table; `parts` are its columns in order, the key left out."""

    row_count: int
    parts: tuple[Part, ...]

    @classmethod
    def of_rows(cls, table: Table, rows: Sequence[Any]) -> Columns:
        """Return the columns of objects that have an attribute for each column of the table."""
        names = table.column_names[_key_count(table) :]
        return cls(len(rows), tuple([getattr(row, name) for row in rows] for name in names))


@attrs.frozen(eq=False)
class StagedRow:
    """One row of the stage: scalar columns by name, nested tables by name; what is left out is null or empty."""

    scalars: dict[str, Any]
    nested: dict[str, Columns]


def batches(rows: Iterable[StagedRow]) -> Iterator[pa.RecordBatch]:
    """Yield the rows as Arrow batches of a bounded size, in order."""
    held: list[StagedRow] = []
    nested_count = 0
    for row in rows:
        held.append(row)
        nested_count += sum(columns.row_count for columns in row.nested.values())
        if len(held) >= BATCH_ROW_COUNT_MAX or nested_count >= BATCH_NESTED_COUNT_MAX:
            yield encode(held)
            held, nested_count = [], 0
    if held:
        yield encode(held)


def encode(rows: Sequence[StagedRow]) -> pa.RecordBatch:
    """Return one Arrow batch of these rows."""
    arrays = []
    nested_names = {table.name for table in (*NESTED, *PER_INPUT)}
    for field in STAGE_SCHEMA:
        if field.name in nested_names:
            arrays.append(_encode_nested(field, [row.nested.get(field.name) for row in rows]))
        else:
            arrays.append(pa.array([row.scalars.get(field.name) for row in rows], type=field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=STAGE_SCHEMA)


def _encode_nested(field: Any, cells: Sequence[Columns | None]) -> Any:
    counts = [0 if cell is None else cell.row_count for cell in cells]
    offsets = np.zeros(len(cells) + 1, dtype=np.int32)
    np.cumsum(counts, out=offsets[1:])
    filled = [cell for cell in cells if cell is not None and cell.row_count]
    struct = field.type.value_type
    values = [
        _encode_column(struct.field(place).type, [(cell.parts[place], cell.row_count) for cell in filled])
        for place in range(struct.num_fields)
    ]
    places: Any = pa.array(offsets)
    return pa.ListArray.from_arrays(places, pa.StructArray.from_arrays(values, fields=list(struct)), type=field.type)


def _encode_column(kind: Any, parts: Sequence[tuple[Part, int]]) -> Any:
    if not parts:
        return pa.nulls(0, kind)
    if all(isinstance(part, np.ndarray) for part, _ in parts):
        return pa.array(np.concatenate([part for part, _ in parts]), type=kind)
    if all(part is None for part, _ in parts):
        return pa.nulls(sum(count for _, count in parts), kind)
    return pa.concat_arrays([_encode_part(kind, part, count) for part, count in parts])


def _encode_part(kind: Any, part: Part, count: int) -> Any:
    if part is None:
        return pa.nulls(count, kind)
    return part if isinstance(part, pa.Array) else pa.array(part, type=kind)
