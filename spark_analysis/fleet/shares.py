"""Join the counts of brokers and racks of many simulated clusters, and the best spread of each cluster.

What it decides: the best spread of a cluster whose groups of brokers are all alike is that of whole shares, and follows
from counts alone; that of any other was found when the cluster was counted.

Source: ours.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.balance.reachable import Reach
from spark_analysis.fleet.count import Placed
from spark_analysis.tables.cluster_rows import BOUND, FREE, NOT_KNOWN, QUANTITIES, Best, Shares, kind_of
from spark_analysis.tables.view_rows import best_of_racks, rack_sums

_EMPTY: Final = np.empty(0, dtype=np.int64)


def shares_of_brokers(placed: Sequence[Placed], held: Int64Array) -> Shares:
    """Return what live brokers hold, `held`, and their best spreads."""
    live = [np.flatnonzero(~one.cluster.fenced) for one in placed]
    counts = np.array([numbers.size for numbers in live])
    even = [_even_over_brokers(one) for one in placed]
    given = [None if one.uneven is None else one.uneven.over_brokers for one in placed]
    return Shares("broker", counts, np.concatenate(live), tuple(held), _bests(given, even, counts))


def shares_of_racks(placed: Sequence[Placed]) -> Shares:
    """Return what the live brokers of racks hold, and their best spreads; racks without any are left out."""
    names, held = [], []
    for one in placed:
        count = len(one.cluster.rack_names)
        if one.uneven is None:
            names.append(one.cluster.rack_names)
            held.append(one.racks[1:, :count])
        else:
            groups = one.uneven.layout.groups
            names.append(tuple(np.array(one.cluster.rack_names)[groups.of_rack[:count] >= 0].tolist()))
            held.append(np.array([rack_sums(groups, column) for column in one.held]).reshape(3, -1))
    counts = np.array([len(one) for one in names])
    even = [_even_over_racks(one) for one in placed]
    given = [None if one.uneven is None else one.uneven.over_racks for one in placed]
    listed = [name for one in names for name in one]
    return Shares("rack", counts, listed, tuple(np.concatenate(held, axis=1)), _bests(given, even, counts))


def _even_over_brokers(one: Placed) -> tuple[Int64Array, int]:
    """Return the group of each broker where groups are alike, and the kind of best spread of replicas."""
    if not one.cluster.rack_names:
        return broker_numbers(one.cluster.broker_count).astype(np.int64), FREE
    ruled = 1 < len(one.cluster.rack_names) < one.cluster.broker_count
    return one.cluster.rack_index.astype(np.int64), 0 if ruled else FREE


def _even_over_racks(one: Placed) -> tuple[Int64Array, int]:
    count = len(one.cluster.rack_names)
    return np.arange(count), FREE if one.cluster.factors.max(initial=0) <= count else 0


def _bests(
    given: Sequence[tuple[Reach | None, ...] | None], even: Sequence[tuple[Int64Array, int]], counts: Int64Array
) -> tuple[Best, ...]:
    """Return the best spreads, quantity by quantity: those given, and where groups are alike those of whole shares."""
    ends = np.cumsum(counts)
    group = (
        np.concatenate([_EMPTY, *(groups for groups, _ in even)]) if not any(given) else np.zeros(ends[-1], np.int64)
    )
    bests = []
    for place in range(len(QUANTITIES)):
        kinds = np.array([(kind, FREE, BOUND)[place] for _, kind in even], dtype=np.int64)
        best = Best(kinds, group.copy(), np.zeros_like(group), np.zeros_like(group))
        for row, (reaches, (groups, _)) in enumerate(zip(given, even, strict=True)):
            run = slice(ends[row] - counts[row], ends[row])
            if reaches is None:
                best.group[run] = groups
            elif (reach := reaches[place]) is not None:
                kinds[row] = kind_of(reach)
                best.group[run], best.block[run], best.target[run] = reach.group, reach.block, reach.target
        bests.append(best)
    return tuple(bests)


def best_of_each_rack(placed: Sequence[Placed]) -> Int64Array:
    """Return what a broker of each rack holds at best, int64[6, R]: least and most replicas, leaders, bytes."""
    columns = []
    for one in placed:
        count = one.racks.shape[1]
        if one.uneven is not None:
            columns.append(np.array(best_of_racks(one.uneven.layout.groups, one.uneven.over_brokers))[:, :count])
            continue
        totals, brokers = one.held.sum(axis=1), one.cluster.broker_count
        ends = np.repeat(totals // brokers, 2)
        ends[1::2] += totals % brokers > 0
        if one.cluster.size_bytes is None:
            ends[4:] = NOT_KNOWN
        columns.append(np.repeat(ends[:, None], count, axis=1))
    return np.concatenate(columns, axis=1)


@functools.lru_cache(maxsize=64)
def broker_numbers(count: int) -> Int32Array:
    """Return the ids of a simulated cluster's brokers, int32[count]; not to be written to."""
    return np.arange(count, dtype=np.int32)
