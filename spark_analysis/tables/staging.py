"""Write the rows that executors compute into one file per task and table; Spark receives only the files' names.

Goals, most important first: a dump is parsed once and a cluster is placed once, for any number of tables; rows stand in
order of cluster and placer without being sorted; no row per replica anywhere, and no row per broker through the JVM.

Constraints: whole numbers are 0 or more; in a column of them that may be null, -1 is an unknown value, written as null.

How: a `ClusterRows` holds some clusters: their facts, their rows of each table and their shares, all as columns, so
that numpy and Arrow are called per column, not per cluster. A `TaskWriter` puts the keys before them and appends them
to the task's file of each table (tables/write.py). The shares of a cluster over its brokers, racks or topics become a
few sums, each made in one order, whatever the number of cores, and these become measures (sums.py) at once: so a
million brokers stay in Arrow, and no second pass reads them.

The best spread that can be reached is that of placement/balance/reachable.py. A `Best` carries it where groups differ;
where they do not (no racks, or even ones, and nobody fenced) it is that of whole shares, made by `fill_best`.

Example: shares 1, 4, 1 have the floor 2, squares 1 + 4 + 1, weighted 1·2 - 2·1 - 3·1 and, at best 2, 2, 2, 2 moves.

Left out: the placement itself, which never leaves the executor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from broker.cluster import Int64Array
from broker.compiled import compiled, compiled_with
from placement.balance.measures import TOLERANCE
from placement.balance.reachable import Reach
from spark_analysis.tables import schemas
from spark_analysis.tables.columns import Table
from spark_analysis.tables.sums import NOTHING_MOVES, Sums, measures
from spark_analysis.tables.write import COUNT_FOLDER, PartFile, Written

Part: TypeAlias = Any
"""The values of one column: a numpy array, an Arrow array, a list, or None for all null."""

NOT_KNOWN: Final = -1
QUANTITIES: Final = ("replicas", "leaders", "bytes")
Float64Array: TypeAlias = NDArray[np.float64]

GIVEN: Final = 1
"""The best spread is given; else it is that of whole shares."""
FREE: Final = 2
"""No rule forbids a move."""
BOUND: Final = 4
"""The best spread is a bound, so moves are one too."""


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
    where not known. `bests` are their best spreads; without them nothing can move.
    """

    scope: str
    counts: Int64Array
    names: Any
    quantities: tuple[Int64Array | None, ...]
    bests: tuple[Best | None, ...] = ()


@attrs.frozen(eq=False)
class Best:
    """Hold the best spread of one quantity of some clusters, one cluster after another.

    `kinds` int64[clusters] adds up `GIVEN`, `FREE` and `BOUND`. The rest is int64[groups], as in `Reach`; `block` and
    `target` are not read of a cluster that is not `GIVEN`.
    """

    kinds: Int64Array
    group: Int64Array
    block: Int64Array
    target: Int64Array

    @classmethod
    def of(cls, reached: Reach) -> Best:
        """Return the best spread of one cluster."""
        return cls(np.array([kind_of(reached)]), reached.group, reached.block, reached.target)


def kind_of(reached: Reach) -> int:
    """Return the sum of `GIVEN`, `FREE` and `BOUND` for a best spread."""
    return GIVEN + FREE * reached.free + BOUND * reached.is_bound


@attrs.frozen(eq=False)
class ClusterRows:
    """Hold some clusters, each as placed by one placer: their facts, their rows of other tables, and their shares.

    `facts` are columns by name, without `cluster_id`, which the whole run numbers; a column that is left out is null.
    `further` are rows of other tables in batches, made while they are written, as they are too many to hold.
    """

    placers: Sequence[str]
    facts: dict[str, Part]
    tables: dict[Table, Rows]
    shares: tuple[Shares, ...]
    further: Iterable[tuple[Table, Rows]] = ()


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
        measure_rows, uneven = measured(cluster_ids, clusters)
        if measure_rows is not None:
            self._append(schemas.MEASURES, measure_rows)
        facts = clusters.facts | {"placer": clusters.placers, "uneven": uneven}
        self.append(schemas.FACTS, (cluster_ids, *(facts.get(name) for name in schemas.FACTS.column_names[1:])))
        for table, rows in chain(clusters.tables.items(), clusters.further):
            self.append(table, (*_keys(cluster_ids, clusters.placers, rows.counts), *rows.parts))

    def add_further(self, cluster_id: int, placer: str, batches: Iterable[tuple[Table, Rows]]) -> None:
        """Write rows of one cluster that come in batches, beside those that `add` writes; raise as `append` does."""
        for table, rows in batches:
            self.append(table, (*_keys(np.array([cluster_id]), [placer], rows.counts), *rows.parts))

    def append(self, table: Table, parts: Sequence[Part]) -> None:
        """Write rows of a table, its columns in order; raise UsageError for a null in a column that may not be null."""
        if len(parts[0]):
            self._append(table, batch_of(table, parts))

    def _append(self, table: Table, batch: pa.RecordBatch) -> None:
        if table.name not in self._files:
            self._files[table.name] = PartFile(self._root, table, self._name)
        self._files[table.name].append(batch)

    def close(self) -> list[Written]:
        """Close all files and return what was written."""
        return [file.close() for file in self._files.values()]


def measured(cluster_ids: Int64Array, clusters: ClusterRows) -> tuple[pa.RecordBatch | None, Float64Array]:
    """Return the measures, and of each cluster the share of replicas plus that of leaders to move.

    The rows of a cluster stand together, in order of scope and quantity; without any there is no batch.
    """
    uneven = np.zeros(cluster_ids.size)
    places: list[Int64Array] = []
    found: list[Sums] = []
    keys: tuple[list[str], list[str]] = [], []
    for shares in sorted(clusters.shares, key=lambda each: each.scope):
        for quantity, held, best in _by_quantity(shares):
            known, of_shares = _sums_of(shares, held, best)
            places.append(known)
            found.append(of_shares)
            keys[0].extend([shares.scope] * known.size)
            keys[1].extend([quantity] * known.size)
            if shares.scope == "broker" and quantity != "bytes":
                share = of_shares.moves / np.maximum(of_shares.total, 1)
                uneven[known] += np.where(share > TOLERANCE, share, 0)
    of_cluster = np.concatenate(places) if places else np.zeros(0, dtype=np.int64)
    if not of_cluster.size:
        return None, uneven
    placers = [clusters.placers[row] for row in of_cluster.tolist()]
    columns = (cluster_ids[of_cluster], placers, *keys, *measures(Sums.joined(found)))
    order: Any = pa.array(np.argsort(of_cluster, kind="stable"))
    return batch_of(schemas.MEASURES, columns).take(order), uneven


def _by_quantity(shares: Shares) -> list[tuple[str, Int64Array, Best | None]]:
    """Return the quantities whose shares are given, by name, with their shares and best spreads."""
    bests = shares.bests or (None,) * len(QUANTITIES)
    found = zip(QUANTITIES, shares.quantities, bests, strict=True)
    return sorted(((name, held, best) for name, held, best in found if held is not None), key=lambda each: each[0])


def _sums_of(shares: Shares, held: Int64Array, best: Best | None) -> tuple[Int64Array, Sums]:
    """Return the places of the clusters of which these shares are known, and their sums."""
    wholes, reals = sums(held, shares.counts)
    at_best, reals_at_best = best_sums(held, shares.counts, best)
    known = np.flatnonzero(wholes[0] != NOT_KNOWN)
    total, least, most, first = wholes[:, known]
    best_max, moves, exact = at_best[:, known]
    names: Any = pa.array(shares.names)
    return known, Sums(
        count=shares.counts[known],
        total=total,
        min=least,
        max=most,
        first=names.take(pa.array(first)).cast(pa.string()),
        squares=reals[0, known],
        weighted=reals[1, known],
        moves=moves if best is not None else np.full(known.size, NOTHING_MOVES),
        best_max=best_max,
        best_squares=reals_at_best[0, known],
        best_weighted=reals_at_best[1, known],
        moves_exact=exact > 0,
    )


def sums(shares: Int64Array, counts: Int64Array) -> tuple[Int64Array, Float64Array]:
    """Return the sums that `fill_sums` fills for each run of `counts` shares; -1 where a run is empty or unknown."""
    wholes = np.full((4, counts.size), NOT_KNOWN, dtype=np.int64)
    reals = np.zeros((2, counts.size))
    fill_sums(shares, counts, wholes, reals)
    return wholes, reals


def best_sums(shares: Int64Array, counts: Int64Array, best: Best | None) -> tuple[Int64Array, Float64Array]:
    """Return what `fill_best` fills for each run of `counts` shares; without `best`, that of whole shares."""
    wholes = np.full((3, counts.size), NOT_KNOWN, dtype=np.int64)
    reals = np.zeros((2, counts.size))
    if best is None:
        best = Best(np.zeros_like(counts), *(np.zeros_like(shares) for _ in range(3)))
    fill_best(shares, counts, (best.kinds, best.group, best.block, best.target), wholes, reals)
    return wholes, reals


@compiled
def fill_sums(shares: Int64Array, counts: Int64Array, wholes: Int64Array, reals: Float64Array) -> None:
    """Sum each run of shares; pass over runs that are empty or begin with -1.

    Fills int64[4, runs]: total, min, max, place of the first largest; and float64[2, runs]: squares and rank-weighted
    sum of the differences from the floor.
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
        squares = weighted = 0.0
        ascending = np.sort(shares[first:end])
        for place in range(count):
            centred = ascending[count - 1 - place] - floor
            squares += float(centred) * float(centred)
            weighted += float(centred) * (place + 1)
        wholes[0, run], wholes[1, run], wholes[2, run] = total, ascending[0], ascending[count - 1]
        wholes[3, run] = largest
        reals[0, run], reals[1, run] = squares, weighted


def least_moves(shares: Int64Array, group: Int64Array, block: Int64Array, target: Int64Array) -> tuple[np.int64, bool]:
    """Return the moves of one run, as `placement.balance.measures` counts them, and whether racks allow so many."""
    count = shares.size
    low, high = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
    for place in range(count):
        low[block[place]] = min(low[block[place]], target[place])
        high[block[place]] = max(high[block[place]], target[place])
    excess, lack, surplus = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    size = group.max() + 1
    above, below, over, under = (
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
    )
    for place in range(count):
        of, its, held = block[place], group[place], shares[place]
        excess[of] += max(held - high[of], 0)
        lack[of] += max(low[of] - held, 0)
        surplus[of] += held - target[place]
        above[its] += max(held - high[of], 0)
        below[its] += max(low[of] - held, 0)
        over[its] += held - high[of]
        under[its] += low[of] - held
    moves = inside = np.int64(0)
    fits = True
    for place in range(count):
        moves += max(excess[place], lack[place] + surplus[place])
        fits = fits and surplus[place] == 0
    for place in range(size):
        inside += max(above[place], below[place])
        fits = fits and over[place] <= 0 and under[place] <= 0
    return moves, bool(fits and inside == moves)


@compiled_with(least_moves)
def fill_best(
    shares: Int64Array,
    counts: Int64Array,
    best: tuple[Int64Array, Int64Array, Int64Array, Int64Array],
    wholes: Int64Array,
    reals: Float64Array,
) -> None:
    """Sum the best spread of each run, `best` being the columns of a `Best`; pass over runs as `fill_sums` does.

    Fills int64[3, runs]: max, moves, 1 if they are enough; and float64[2, runs]: squares and rank-weighted sum of the
    best shares' differences from the floor of the mean.
    """
    kinds, groups, blocks, targets = best
    end = 0
    for run in range(counts.shape[0]):
        count = counts[run]
        first, end = end, end + count
        if count == 0 or shares[first] < 0:
            continue
        total = shares[first:end].sum()
        floor = total // count
        if kinds[run] & GIVEN:
            target, block = targets[first:end], blocks[first:end]
        else:
            target, block = np.full(count, floor), np.zeros(count, np.int64)
            target[: total % count] += 1
        squares = weighted = squares_now = 0.0
        ascending, held = np.sort(target), np.sort(shares[first:end])
        for place in range(count):
            centred = ascending[count - 1 - place] - floor
            squares += float(centred) * float(centred)
            weighted += float(centred) * (place + 1)
            squares_now += float(held[count - 1 - place] - floor) * float(held[count - 1 - place] - floor)
        moves, exact = np.int64(0), True
        if squares_now > squares:
            moves, exact = least_moves(shares[first:end], groups[first:end], block, target)
            exact = (exact or kinds[run] & FREE > 0) and kinds[run] & BOUND == 0
        wholes[0, run], wholes[1, run], wholes[2, run] = ascending[count - 1], moves, exact
        reals[0, run], reals[1, run] = squares, weighted


def _keys(cluster_ids: Int64Array, placers: Sequence[str], counts: Sequence[int] | Int64Array) -> tuple[Part, Part]:
    """Return the two key columns of so many rows of each cluster."""
    rows = np.repeat(np.arange(cluster_ids.size), counts)
    places: Any = pa.array(rows)
    return cluster_ids[rows], pa.array(placers, type=pa.string()).take(places)


def batch_of(table: Table, parts: Sequence[Part]) -> pa.RecordBatch:
    """Return rows of a table, its columns in order."""
    schema = table.arrow_schema()
    arrays = [_array(field, part, len(parts[0])) for field, part in zip(schema, parts, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(field: Any, part: Part, count: int) -> Any:
    """Return one Arrow array of this field's type."""
    if part is None:
        return pa.nulls(count, field.type)
    if isinstance(part, pa.Array):
        return part
    absent = part < 0 if field.nullable and isinstance(part, np.ndarray) and part.dtype.kind == "i" else None
    return pa.array(part, type=field.type, mask=absent)
