"""What executors hand over: files of flat rows, one per task and table; to Spark only their names.

Goals, most important first: a dump is parsed once and a cluster is placed once, whatever number
of tables comes of it; rows stand in order of cluster and placer without being sorted; no row
per replica anywhere, and no row per broker through the JVM.

How: what is known of a cluster is a `ClusterRows`: its facts by name, its rows of each table as
columns, and its shares. A `TaskWriter` joins the columns of many clusters into one Arrow
batch, so that Arrow is called per column and batch, not per broker, and appends it to the task's
file of that table (tables.py). The table of sums, which measures are made of, has one row for what a
cluster spreads over its brokers, racks or topics: so a million brokers stay in Arrow, and Spark's SQL
gets the few sums that its formulas need (balance.py), each made in one order, whatever the number of cores.

Example: shares 1, 4, 1 have the floor 2, squares 1 + 4 + 1 and weighted 1·2 - 2·1 - 3·1.

Left out: the placement itself, which never leaves the executor.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from broker.cluster import Int64Array
from broker.compiled import compiled
from spark_analysis import schemas
from spark_analysis.schemas import Table
from spark_analysis.tables import TALLY_FOLDER, PartFile, Written

Part: TypeAlias = Any
"""One cluster's share of one column: a numpy array, an Arrow array, a list, or None for all null."""

KEYED: Final = (schemas.BROKERS, schemas.RACKS, schemas.TOPICS, schemas.VIOLATIONS, schemas.PAIRS)
"""Tables whose rows begin with the key of their cluster."""
PER_INPUT: Final = (schemas.INPUTS, schemas.REJECTS, schemas.CHANGES)
"""Tables of an input; changes are between dumps, and have no key either."""
KEY_COLUMN_COUNT: Final = 2
HELD_CLUSTER_COUNT_MAX: Final = 128
HELD_ROW_COUNT_MAX: Final = 65_536  # Some megabytes: what a task holds of brokers or topics before it writes.
QUANTITIES: Final = ("replicas", "leaders", "bytes")
Float64Array: TypeAlias = NDArray[np.float64]


@attrs.frozen(eq=False)
class Columns:
    """Some rows of one table; `parts` are its columns in order, the key left out."""

    row_count: int
    parts: tuple[Part, ...]

    @classmethod
    def of_rows(cls, table: Table, rows: Sequence[Any]) -> Columns:
        """Return the columns of objects that have an attribute for each column of the table."""
        names = table.column_names[_key_count(table) :]
        return cls(len(rows), tuple([getattr(row, name) for row in rows] for name in names))


@attrs.frozen(eq=False)
class Shares:
    """What each group of one scope holds: replicas, leaders and bytes, int64[groups] each, or None where unknown.

    `names` are strings, an Arrow array or a sequence. Groups stand in the order in which equals are taken.
    """

    scope: str
    names: Any
    quantities: tuple[Int64Array | None, Int64Array | None, Int64Array | None]


@attrs.frozen(eq=False)
class ClusterRows:
    """One cluster as placed by one placer: its row of facts, its rows of other tables, what it spreads.

    A fact that is left out is null. `facts` do without `cluster_id`, which the whole run knows.
    """

    facts: dict[str, Any]
    tables: dict[str, Columns]
    shares: tuple[Shares, ...]


def _key_count(table: Table) -> int:
    return KEY_COLUMN_COUNT if table in KEYED else 0


class TaskWriter:
    """Writes one task's rows to its own files under `root`, one for each table that has any."""

    def __init__(self, root: Path, name: str) -> None:
        self._root = root
        self._name = name
        self._files: dict[str, PartFile] = {}
        self._held: list[tuple[int, ClusterRows]] = []
        self._held_row_count = 0
        self._tally = (root / TALLY_FOLDER / name).open("wb", buffering=0)

    def __enter__(self) -> TaskWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._tally.close()

    def tick(self) -> None:
        """Say that one more thing is done; the driver sees it at once."""
        self._tally.write(b".")

    def add(self, cluster_id: int, cluster: ClusterRows) -> None:
        """Take the rows of one cluster; clusters come in order of their number and placer."""
        self._held.append((cluster_id, cluster))
        self._held_row_count += sum(columns.row_count for columns in cluster.tables.values())
        if len(self._held) >= HELD_CLUSTER_COUNT_MAX or self._held_row_count >= HELD_ROW_COUNT_MAX:
            self._write_held()

    def append(self, table: Table, columns: Columns) -> None:
        """Write rows of a table without key."""
        fields = table.arrow_schema()
        arrays = [
            column_of(field.type, [(part, columns.row_count)])
            for field, part in zip(fields, columns.parts, strict=True)
        ]
        self._append(table, arrays)

    def close(self) -> list[Written]:
        """Write what is still held and close the files; raise UsageError for a null where none may stand."""
        self._write_held()
        return [file.close() for file in self._files.values()]

    def _append(self, table: Table, arrays: Sequence[Any]) -> None:
        if not len(arrays[0]):
            return
        if table.name not in self._files:
            self._files[table.name] = PartFile(self._root, table, self._name)
        self._files[table.name].append(pa.RecordBatch.from_arrays(list(arrays), schema=table.arrow_schema()))

    def _write_held(self) -> None:
        held, self._held, self._held_row_count = self._held, [], 0
        if not held:
            return
        self._append(schemas.FACTS, facts_arrays(held))
        self._append(schemas.SUMS, sums_arrays(held))
        for table in KEYED:
            cells = [
                (key, cluster, cluster.tables[table.name]) for key, cluster in held if table.name in cluster.tables
            ]
            fields = list(table.arrow_schema())[KEY_COLUMN_COUNT:]
            keys = _keys([(key, cluster.facts["placer"], columns.row_count) for key, cluster, columns in cells])
            rest = [
                column_of(field.type, [(columns.parts[place], columns.row_count) for _, _, columns in cells])
                for place, field in enumerate(fields)
            ]
            self._append(table, [*keys, *rest])


def facts_arrays(held: Sequence[tuple[int, ClusterRows]]) -> list[Any]:
    """Return the columns of the table of facts."""
    fields = list(schemas.FACTS.arrow_schema())
    ids = pa.array([key for key, _ in held], type=pa.int64())
    facts = [cluster.facts for _, cluster in held]
    return [ids, *(pa.array([row.get(field.name) for row in facts], type=field.type) for field in fields[1:])]


def sums_arrays(held: Sequence[tuple[int, ClusterRows]]) -> list[Any]:
    """Return the columns of the table of sums; scopes without any group and unknown quantities are left out."""
    cells = [
        (key, cluster.facts["placer"], spread, quantity, shares)
        for key, cluster in held
        for spread in cluster.shares
        if len(spread.names)
        for quantity, shares in zip(QUANTITIES, spread.quantities, strict=True)
        if shares is not None
    ]
    counts = np.array([shares.size for *_, shares in cells], dtype=np.int64)
    wholes = np.empty((len(cells), 6), dtype=np.int64)
    reals = np.empty((len(cells), 2), dtype=np.float64)
    if cells:
        every = np.concatenate([shares for *_, shares in cells]).astype(np.int64, copy=False)
        sum_groups(every, np.cumsum(counts), wholes, reals)
    total, least, most, above, above_count, place = wholes.T
    firsts = [str(spread.names[row]) for (_, _, spread, _, _), row in zip(cells, place.tolist(), strict=True)]
    columns: tuple[Any, ...] = (
        [key for key, *_ in cells],
        [placer for _, placer, *_ in cells],
        [spread.scope for _, _, spread, _, _ in cells],
        [quantity for *_, quantity, _ in cells],
        counts.astype(np.int32),
        total,
        least,
        most,
        firsts,
        reals[:, 0],
        reals[:, 1],
        above,
        above_count,
    )
    fields = schemas.SUMS.arrow_schema()
    return [pa.array(column, type=field.type) for column, field in zip(columns, fields, strict=True)]


@compiled
def sum_groups(shares: Int64Array, ends: Int64Array, wholes: Int64Array, reals: Float64Array) -> None:
    """Sum each run of shares up to `ends`.

    Fills int64[runs, 6]: total, min, max, above the floor, shares above it, place of the first largest; and
    float64[runs, 2]: squares and rank-weighted sum of what is above and below the floor.
    """
    first = 0
    for run in range(ends.shape[0]):
        end = ends[run]
        count = end - first
        total = np.int64(0)
        largest = first
        for place in range(first, end):
            total += shares[place]
            if shares[place] > shares[largest]:
                largest = place
        floor = total // count
        above = above_count = np.int64(0)
        squares = weighted = 0.0
        ascending = np.sort(shares[first:end])
        for place in range(count):
            centred = ascending[count - 1 - place] - floor
            squares += float(centred) * float(centred)
            weighted += float(centred) * (place + 1)
            if centred > 0:
                above += centred
                above_count += 1
        wholes[run, 0], wholes[run, 1], wholes[run, 2] = total, ascending[0], ascending[count - 1]
        wholes[run, 3], wholes[run, 4], wholes[run, 5] = above, above_count, largest - first
        reals[run, 0], reals[run, 1] = squares, weighted
        first = end


def _keys(cells: Sequence[tuple[int, str, int]]) -> list[Any]:
    """Return the two key columns for cells of (cluster, placer, rows)."""
    counts = [count for _, _, count in cells]
    ids = np.repeat(np.array([key for key, _, _ in cells], dtype=np.int64), counts)
    return [pa.array(ids), _repeated([placer for _, placer, _ in cells], counts)]


def _repeated(names: Sequence[str | None], counts: Sequence[int]) -> Any:
    """Return each name as often as its count says."""
    places: Any = pa.array(np.repeat(np.arange(len(names), dtype=np.int32), counts))
    return pa.array(names, type=pa.string()).take(places)


def column_of(kind: Any, parts: Sequence[tuple[Part, int]]) -> Any:
    """Return one Arrow array of this type: each part, of so many rows, after the one before."""
    if not parts:
        return pa.nulls(0, kind)
    if all(isinstance(part, np.ndarray) for part, _ in parts):
        return pa.array(np.concatenate([part for part, _ in parts]), type=kind)
    if all(part is None for part, _ in parts):
        return pa.nulls(sum(count for _, count in parts), kind)
    return pa.concat_arrays([_part(kind, part, count) for part, count in parts])


def _part(kind: Any, part: Part, count: int) -> Any:
    if part is None:
        return pa.nulls(count, kind)
    return part if isinstance(part, pa.Array) else pa.array(part, type=kind)
