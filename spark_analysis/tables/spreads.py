"""Sum up the shares of clusters over their brokers, racks or topics, and the best spread of each.

What it decides: the sums that become measures (sums.py): each made in one order, whatever the number of cores. A task
makes them of the shares at once: so a million brokers stay in Arrow, and no second pass reads them.

How: compiled loops, a run of shares a cluster. Where a `Best` is not given, the best spread is that of whole shares.

Example: shares 1, 4, 1 have the floor 2, squares 1 + 4 + 1, weighted 1·2 - 2·1 - 3·1 and, at best 2, 2, 2, 2 moves.

Left out: the measures themselves; the shares, which view_rows.py and fleet/count.py count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from broker.cluster import Int64Array
from broker.compiled import compiled_with
from placement.balance.measures import TOLERANCE
from spark_analysis.tables import schemas
from spark_analysis.tables.batches import batch_of
from spark_analysis.tables.cluster_rows import BOUND, FREE, GIVEN, NOT_KNOWN, QUANTITIES, Best, Shares
from spark_analysis.tables.sums import NOTHING_MOVES, Sums, measures

Float64Array: TypeAlias = NDArray[np.float64]


def measured(
    cluster_ids: Int64Array, placers: Sequence[str], of_scopes: Iterable[Shares]
) -> tuple[pa.RecordBatch | None, Float64Array]:
    """Return the measures, and of each cluster the share of replicas plus that of leaders to move.

    The rows of a cluster stand together, in order of scope and quantity; without any there is no batch.
    """
    uneven = np.zeros(cluster_ids.size)
    places: list[Int64Array] = []
    found: list[Sums] = []
    keys: tuple[list[str], list[str]] = [], []
    for shares in sorted(of_scopes, key=lambda each: each.scope):
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
    of_rows = [placers[row] for row in of_cluster.tolist()]
    columns = (cluster_ids[of_cluster], of_rows, *keys, *measures(Sums.joined(found)))
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


def differences(ascending: Int64Array, floor: np.int64) -> tuple[float, float]:
    """Return the squares, and the sum weighted by rank, of the differences of sorted shares from the floor."""
    squares = weighted = 0.0
    for place in range(ascending.size):
        centred = float(ascending[ascending.size - 1 - place] - floor)
        squares += centred * centred
        weighted += centred * (place + 1)
    return squares, weighted


@compiled_with(differences)
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
        ascending = np.sort(shares[first:end])
        wholes[0, run], wholes[1, run], wholes[2, run] = total, ascending[0], ascending[count - 1]
        wholes[3, run] = largest
        reals[0, run], reals[1, run] = differences(ascending, total // count)


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


@compiled_with(differences, least_moves)
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
        ascending = np.sort(target)
        squares, weighted = differences(ascending, floor)
        moves, exact = np.int64(0), True
        if differences(np.sort(shares[first:end]), floor)[0] > squares:
            moves, exact = least_moves(shares[first:end], groups[first:end], block, target)
            exact = (exact or kinds[run] & FREE > 0) and kinds[run] & BOUND == 0
        wholes[0, run], wholes[1, run], wholes[2, run] = ascending[count - 1], moves, exact
        reals[0, run], reals[1, run] = squares, weighted
