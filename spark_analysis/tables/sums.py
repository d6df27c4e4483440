"""Compute measures from sums, and the ranks of clusters, in executors and in process alike.

What it decides: for each cluster and placer, how replicas, leaders and bytes are spread over brokers, racks and topics,
beside the best spread that can be reached; and the rank, which cluster to look at first.

How: `Sums` are columns of numbers that a task sums up of the shares of the groups (tables/spreads.py): of the shares x,
those that hold nothing included, with q the floor of their mean, y = x - q and i the rank of a share, 1 holding most.
With n shares of total T and r = T mod n, the y sum to r, so

    n² variance = n Σ y² - r²        n T Gini = (n + 1) r - 2 Σ i y

and the same of the best shares, whose y sum to r too. Σ y² and Σ i y are sums of doubles. They do not cancel: either
the y are small and the sums are whole numbers below 2^53, or the terms taken away are small beside the rest; in Σ i y,
the shares above the mean stand before those below, so that at least a quarter of the sum is left.

A measure needs the sums of one cluster alone, so the task that sums also measures. A rank needs the facts of all
clusters: `ranked` is one function over all their rows, whoever runs it.

Example: shares 4, 1, 1, 1 give stdev 1.299, cv 0.742, Gini 0.321 and 2 moves.

Left out: percentiles over clusters, which the report computes from the tables.

Source: placement/balance/measures.py, which explains the figures and is the oracle of the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from broker.cluster import Int64Array
from spark_analysis.tables.scan import sorted_rows

Float64Array: TypeAlias = NDArray[np.float64]

WORST_FIRST: Final = ("leaderless_count", "under_min_isr_count", "fewer_racks_count", "uneven")
"""What ranks compare, the first that differs; more is worse, and unknown counts as none."""
KEY: Final = ("cluster_id", "placer")
"""Equals stand in this order."""
NOTHING_MOVES: Final = -1


@attrs.frozen(eq=False, kw_only=True)
class Sums:
    """Hold what measures are made of: a value per cluster, scope and quantity in each column.

    `first` is the group that has the largest share; `squares` and `weighted` are Σ y² and Σ i y; those that begin with
    `best` are of the best spread. `moves` is `NOTHING_MOVES` over topics; `moves_exact` then says nothing.
    """

    count: Int64Array
    total: Int64Array
    min: Int64Array
    max: Int64Array
    first: pa.StringArray
    squares: Float64Array
    weighted: Float64Array
    moves: Int64Array
    best_max: Int64Array
    best_squares: Float64Array
    best_weighted: Float64Array
    moves_exact: NDArray[np.bool_]

    @classmethod
    def joined(cls, parts: Sequence[Sums]) -> Sums:
        """Return the rows of all parts, one after another."""
        columns = {name: [getattr(part, name) for part in parts] for name in attrs.fields_dict(cls) if name != "first"}
        first = pa.concat_arrays([part.first for part in parts])
        return cls(first=first, **{name: np.concatenate(arrays) for name, arrays in columns.items()})


def measures(sums: Sums) -> tuple[Any, ...]:
    """Return the columns of the table `measures` after its keys, in order.

    Brokers, racks and topics that hold nothing count; fenced brokers do not. Over topics nothing can move, so `moves`
    is null.
    """
    stays = sums.moves == NOTHING_MOVES
    count, total = sums.count.astype(np.float64), sums.total.astype(np.float64)
    rest = (sums.total % sums.count).astype(np.float64)
    has_any = sums.total > 0

    def over_total(value: Float64Array, empty: float = 0.0) -> Float64Array:
        shares: Float64Array = np.divide(value, total, out=np.full(total.size, empty), where=has_any)
        return shares

    def spread(squares: Float64Array) -> Float64Array:
        root: Float64Array = np.sqrt(count * squares - rest * rest)
        return root

    def gini(weighted: Float64Array) -> Float64Array:
        return over_total((count + 1) * rest - 2 * weighted) / count

    return (
        sums.count,
        sums.total,
        sums.min,
        total / count,
        sums.max,
        sums.first,
        over_total(sums.max * count, 1.0),
        spread(sums.squares) / count,
        over_total(spread(sums.squares)),
        gini(sums.weighted),
        pa.array(sums.moves, mask=stays),
        pa.array(over_total(sums.moves.astype(np.float64)), mask=stays),
        over_total(sums.best_max * count, 1.0),
        spread(sums.best_squares) / count,
        over_total(spread(sums.best_squares)),
        gini(sums.best_weighted),
        pa.array(sums.moves_exact, mask=stays),
    )


def ranked(facts: pa.Table) -> pa.Table:
    """Return the rows in order of cluster and placer, with the rank that says where to look first.

    Clusters are compared by: partitions without a leader; under min-ISR; on fewer racks than possible; then the share
    of replicas plus the share of leaders to move until brokers are at their best, shares up to
    `placement.balance.measures.TOLERANCE` counting as none. More is worse, unknown counts as none, and
    equals stand in order of number and placer.
    """
    rows = sorted_rows(facts, KEY)
    worst_first = np.lexsort([-_known(rows[name]) for name in reversed(WORST_FIRST)])
    rank = np.empty(rows.num_rows, dtype=np.int32)
    rank[worst_first] = np.arange(1, rows.num_rows + 1, dtype=np.int32)
    return rows.append_column("rank", pa.array(rank))


def _known(column: Any) -> Any:
    """Return the values of a column of numbers, 0 where it is null."""
    return pc.fill_null(column, 0).to_numpy()
