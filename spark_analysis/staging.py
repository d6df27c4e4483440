"""What executors hand over: files of flat rows, one per task and table; to Spark only their names.

Goals, most important first: a dump is parsed once and a cluster is placed once, whatever number
of tables comes of it; rows stand in order of cluster and placer without being sorted; no row
per replica anywhere, and no row per broker through the JVM.

How: what is known of a cluster is a `ClusterRows`: its facts by name, its rows of each table as
columns, and its shares. A `TaskWriter` joins the columns of many clusters into one Arrow
batch, so that Arrow is called per column and batch, not per broker, and appends it to the task's
file of that table (tables.py). The table of shares, which measures are made of, holds for each
broker, rack and topic what it has of each quantity, its rank by that, the floor of the mean and who holds
most: with those, measures are sums that need neither a sort nor a second pass (balance.py).

A batch holds whole clusters and becomes part of one row group, so one task of Spark's sums a cluster's
shares in one order, whatever the number of cores.

Example: shares 1, 4, 1 have the floor 2 and the ranks 2, 1, 3.

Left out: the placement itself, which never leaves the executor.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa

from broker.cluster import Int32Array, Int64Array
from placement.kernels.compiled import compiled
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
QUANTITY_COUNT: Final = 3


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
        self._append(schemas.SHARES, shares_arrays(held))
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


def shares_arrays(held: Sequence[tuple[int, ClusterRows]]) -> list[Any]:
    """Return the columns of the table of shares, scopes without any group left out."""
    cells = [
        (key, cluster.facts["placer"], spread, len(spread.names))
        for key, cluster in held
        for spread in cluster.shares
        if len(spread.names)
    ]
    counts = [count for _, _, _, count in cells]
    ends = np.cumsum(np.array(counts, dtype=np.int64))
    arrays = [
        *_keys([(key, placer, count) for key, placer, _, count in cells]),
        _repeated([spread.scope for _, _, spread, _ in cells], counts),
    ]
    for quantity in range(QUANTITY_COUNT):
        parts = [(spread.quantities[quantity], spread.names, count) for _, _, spread, count in cells]
        arrays += _ranked(parts, ends)
    return arrays


def _ranked(parts: Sequence[tuple[Int64Array | None, Any, int]], ends: Int64Array) -> list[Any]:
    """Return one quantity's shares, floors and ranks, and who is first."""
    counts = [count for _, _, count in parts]
    if all(part is None for part, _, _ in parts):
        return [pa.nulls(sum(counts), kind) for kind in (pa.int64(), pa.int64(), pa.int32(), pa.string())]
    known = [np.zeros(count, dtype=np.int64) if part is None else part for part, _, count in parts]
    shares = np.concatenate(known).astype(np.int64, copy=False)
    floors, ranks = np.empty(shares.size, dtype=np.int64), np.empty(shares.size, dtype=np.int32)
    rank_groups(shares, ends, floors, ranks)
    absent = None
    if any(part is None for part, _, _ in parts):
        absent = np.repeat([part is None for part, _, _ in parts], counts)
    largest = (np.flatnonzero(ranks == 1) - (ends - counts)).tolist()
    firsts = [
        None if part is None else str(names[place]) for (part, names, _), place in zip(parts, largest, strict=True)
    ]
    return [*(pa.array(values, mask=absent) for values in (shares, floors, ranks)), _repeated(firsts, counts)]


@compiled
def rank_groups(shares: Int64Array, ends: Int64Array, floors: Int64Array, ranks: Int32Array) -> None:
    """Fill floor of the mean and rank (1 for the most, of equals the first) within each run of shares up to `ends`."""
    first = 0
    for end in ends:
        total = np.int64(0)
        for place in range(first, end):
            total += shares[place]
        floor = total // (end - first)
        order = np.argsort(-shares[first:end], kind="mergesort")
        for rank in range(end - first):
            ranks[first + order[rank]] = rank + 1
        for place in range(first, end):
            floors[place] = floor
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
