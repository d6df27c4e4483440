"""Write the rows that executors compute into one file per task and table; Spark receives only the files' names.

Goals, most important first: a dump is parsed once and a cluster is placed once, for any number of tables; rows stand in
order of cluster and placer without being sorted; no row per replica anywhere, and no row per broker through the JVM.

Constraints: whole numbers are 0 or more; in a column of them that may be null, -1 is an unknown value, written as null.

How: a `ClusterRows` holds some clusters: their facts, their rows of each table and their shares, all as columns, so
that numpy and Arrow are called per column, not per cluster. A `TaskWriter` puts the keys before them and appends them
to the task's file of each table (tables/write.py). The table of sums, from which measures are computed, has one row for
the spread of a cluster over its brokers, racks or topics: so a million brokers stay in Arrow, and Spark's SQL gets the
few sums that its formulas need (balance.py), each made in one order, whatever the number of cores.

Example: shares 1, 4, 1 have the floor 2, squares 1 + 4 + 1, weighted 1·2 - 2·1 - 3·1 and 2 moves.

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
from spark_analysis.tables import schemas
from spark_analysis.tables.schemas import Table
from spark_analysis.tables.write import COUNT_FOLDER, PartFile, Written

Part: TypeAlias = Any
"""The values of one column: a numpy array, an Arrow array, a list, or None for all null."""

NOT_KNOWN: Final = -1
QUANTITIES: Final = ("replicas", "leaders", "bytes")
Float64Array: TypeAlias = NDArray[np.float64]


@attrs.frozen(eq=False)
class Rows:
    """Hold some clusters' rows of one table: the number of rows of each cluster, and the columns without the key."""

    counts: Sequence[int] | Int64Array
    parts: tuple[Part, ...]


@attrs.frozen(eq=False)
class Shares:
    """Hold the shares of the groups of one scope, one cluster after another.

    `counts` int64[clusters] cuts the groups; `names` are the groups' names or numbers, in the order in which equals are
    taken. `quantities` are replicas, leaders and bytes, int64[groups] each; None, or -1 in all groups of a cluster,
    where not known.
    """

    scope: str
    counts: Int64Array
    names: Any
    quantities: tuple[Int64Array | None, ...]


@attrs.frozen(eq=False)
class ClusterRows:
    """Hold some clusters, each as placed by one placer: their facts, their rows of other tables, and their shares.

    `facts` are columns by name, without `cluster_id`, which the whole run numbers; a column that is left out is null.
    """

    placers: Sequence[str]
    facts: dict[str, Part]
    tables: dict[Table, Rows]
    shares: tuple[Shares, ...]


class TaskWriter:
    """Write one task's rows to its own files under `root`, one file for each table with rows."""

    def __init__(self, root: Path, name: str) -> None:
        self._root = root
        self._name = name
        self._files: dict[str, PartFile] = {}
        self._count_file = (root / COUNT_FOLDER / name).open("wb", buffering=0)

    def __enter__(self) -> TaskWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._count_file.close()

    def tick(self) -> None:
        """Record that one more cluster or dump is done; the driver sees it at once."""
        self._count_file.write(b".")

    def add(self, cluster_ids: Int64Array, clusters: ClusterRows) -> None:
        """Write the rows of these clusters, which arrive in order of number and placer; raise as `append` does."""
        facts = clusters.facts | {"placer": clusters.placers, "uneven": self._add_sums(cluster_ids, clusters)}
        self.append(schemas.FACTS, (cluster_ids, *(facts.get(name) for name in schemas.FACTS.column_names[1:])))
        for table, rows in clusters.tables.items():
            self.append(table, (*_keys(cluster_ids, clusters.placers, rows.counts), *rows.parts))

    def append(self, table: Table, parts: Sequence[Part]) -> None:
        """Write rows of a table, its columns in order; raise UsageError for a null in a column that may not be null."""
        schema = table.arrow_schema()
        if not len(parts[0]):
            return
        arrays = [_array(field, part, len(parts[0])) for field, part in zip(schema, parts, strict=True)]
        if table.name not in self._files:
            self._files[table.name] = PartFile(self._root, table, self._name)
        self._files[table.name].append(pa.RecordBatch.from_arrays(arrays, schema=schema))

    def close(self) -> list[Written]:
        """Close all files and return what was written."""
        return [file.close() for file in self._files.values()]

    def _add_sums(self, cluster_ids: Int64Array, clusters: ClusterRows) -> Float64Array:
        """Write the sums; return of each cluster the share of replicas plus that of leaders to move between brokers."""
        uneven = np.zeros(cluster_ids.size)
        for shares in clusters.shares:
            for quantity, held in zip(QUANTITIES, shares.quantities, strict=True):
                if held is None:
                    continue
                wholes, reals = sums(held, shares.counts)
                known = np.flatnonzero(wholes[0] != NOT_KNOWN)
                total, least, most, moves, first = wholes[:, known]
                self.append(
                    schemas.SUMS,
                    (
                        cluster_ids[known],
                        [clusters.placers[row] for row in known.tolist()],
                        [shares.scope] * known.size,
                        [quantity] * known.size,
                        shares.counts[known],
                        total,
                        least,
                        most,
                        pa.array(shares.names).take(pa.array(first)).cast(pa.string()),
                        *reals[:, known],
                        moves,
                    ),
                )
                if shares.scope == "broker" and quantity != "bytes":
                    uneven[known] += moves / np.maximum(total, 1)
        return uneven


def sums(shares: Int64Array, counts: Int64Array) -> tuple[Int64Array, Float64Array]:
    """Return the sums that `fill_sums` fills for each run of `counts` shares; -1 where a run is empty or unknown."""
    wholes = np.full((5, counts.size), NOT_KNOWN, dtype=np.int64)
    reals = np.zeros((2, counts.size))
    fill_sums(shares, counts, wholes, reals)
    return wholes, reals


@compiled
def fill_sums(shares: Int64Array, counts: Int64Array, wholes: Int64Array, reals: Float64Array) -> None:
    """Sum each run of shares; pass over runs that are empty or begin with -1.

    Fills int64[5, runs]: total, min, max, moves until each is floor or ceiling, place of the first largest; and
    float64[2, runs]: squares and rank-weighted sum of the differences from the floor.
    """
    end = 0
    for run in range(counts.shape[0]):
        count = counts[run]
        first, end = end, end + count
        if count == 0 or shares[first] < 0:
            continue
        total = np.int64(0)
        largest = first
        for place in range(first, end):
            total += shares[place]
            if shares[place] > shares[largest]:
                largest = place
        floor = total // count
        step = np.int64(total % count > 0)
        excess = lack = np.int64(0)
        squares = weighted = 0.0
        ascending = np.sort(shares[first:end])
        for place in range(count):
            centred = ascending[count - 1 - place] - floor
            squares += float(centred) * float(centred)
            weighted += float(centred) * (place + 1)
            excess += max(centred - step, 0)
            lack += max(-centred, 0)
        wholes[0, run], wholes[1, run], wholes[2, run] = total, ascending[0], ascending[count - 1]
        wholes[3, run], wholes[4, run] = max(excess, lack), largest
        reals[0, run], reals[1, run] = squares, weighted


def _keys(cluster_ids: Int64Array, placers: Sequence[str], counts: Sequence[int] | Int64Array) -> tuple[Part, Part]:
    """Return the two key columns of so many rows of each cluster."""
    rows = np.repeat(np.arange(cluster_ids.size), counts)
    places: Any = pa.array(rows)
    return cluster_ids[rows], pa.array(placers, type=pa.string()).take(places)


def _array(field: Any, part: Part, count: int) -> Any:
    """Return one Arrow array of this field's type."""
    if part is None:
        return pa.nulls(count, field.type)
    if isinstance(part, pa.Array):
        return part
    absent = part < 0 if field.nullable and isinstance(part, np.ndarray) and part.dtype.kind == "i" else None
    return pa.array(part, type=field.type, mask=absent)
