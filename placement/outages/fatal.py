"""List the fatal sets of brokers, and count exactly how many sets of one, two and three brokers are fatal.

A set of brokers is fatal if losing all of it leaves a partition without a live replica that has every committed record
(`at_risk_count` of lost.py); partitions that are so already make no set fatal. With n live brokers, f fatal single
ones, n' = n - f others, m2 and m3 minimal pairs and triples, d the degrees of the graph of minimal pairs and t its
triangles, fatal are

    of one    f
    of two    C(n, 2) - C(n', 2) + m2
    of three  C(n, 3) - C(n', 3) + m2 (n' - 2) - sum of C(d, 2) + t + m3
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import PAD, ClusterView, Int32Array, Int64Array
from broker.errors import UsageError
from placement.outages.arrow import lists_column, table_of, unknown_column
from placement.outages.succession import Successions, successions

if TYPE_CHECKING:
    import pyarrow as pa

SIZE_MAX: Final = 3
_PAIRS_AT_ONCE: Final = 1 << 14
_BROKERS_MAX: Final = 2_097_151  # Three of their rows fit into 63 bits.


@attrs.frozen(kw_only=True)
class FatalCount:
    """Count the sets of `size` brokers: all, those that are fatal, and those that are minimal."""

    size: int
    set_count: int
    fatal_count: int
    minimal_count: int

    @property
    def loss_probability(self) -> float | None:
        """Return the share of these sets that is fatal; None if there is no set of this size."""
        return self.fatal_count / self.set_count if self.set_count else None


@attrs.frozen(kw_only=True, eq=False)
class FatalSets:
    """Hold the minimal fatal sets in columns, most partitions first, and the counts by size.

    `brokers` int32[N, size_max] are ids, ascending, -1 pads; `partition_count` int64[N] the partitions that are at risk
    once this set is lost, `size_bytes` int64[N] their bytes, None unless all sizes are known.
    """

    sizes: tuple[FatalCount, ...]
    brokers: Int32Array
    partition_count: Int64Array
    size_bytes: Int64Array | None


def fatal_sets(view: ClusterView, *, size_max: int | None = None) -> FatalSets:
    """Return the fatal sets of up to `size_max` brokers of `view`; without it, min(largest factor, 3)."""
    found = successions(view)
    largest = int(np.count_nonzero(view.partitions.replicas >= 0, axis=1).max(initial=1))
    limit = min(largest, SIZE_MAX) if size_max is None else size_max
    if not 1 <= limit <= SIZE_MAX:
        raise UsageError(f"fatal sets of up to {limit} brokers are asked; allowed are 1 to {SIZE_MAX}")
    if len(view.brokers) > _BROKERS_MAX:
        raise UsageError(f"{len(view.brokers)} brokers; fatal sets are counted of at most {_BROKERS_MAX}")
    broker_count = len(view.brokers)
    live_count = int(np.count_nonzero(found.live))
    minimal = _minimal(found, broker_count, limit)
    parts = [_counted(found, rows, broker_count) for rows in minimal]
    widened = [np.pad(rows, ((0, 0), (0, limit - rows.shape[1])), constant_values=PAD) for rows in minimal]
    brokers = np.append(view.broker_ids, np.int32(PAD))[np.concatenate(widened)]
    counts = np.concatenate([each[0] for each in parts])
    sizes = None if found.size_bytes is None else np.concatenate([each[1] for each in parts])
    order = np.lexsort([*brokers.T[::-1], -counts])
    return FatalSets(
        sizes=tuple(_counts(minimal, live_count, broker_count)),
        brokers=brokers[order],
        partition_count=counts[order],
        size_bytes=None if sizes is None else sizes[order],
    )


def _sets_of_size(found: Successions, size: int) -> Int32Array:
    """Return the clean members of each partition that has `size` of them, as ascending rows of brokers."""
    return np.sort(found.order[found.clean_count == size][:, :size], axis=1)


def _key(rows: Int32Array, broker_count: int) -> Int64Array:
    """Return a distinct number for each distinct set of brokers."""
    key = np.zeros(rows.shape[0], dtype=np.int64)
    for column in rows.T:
        key = key * broker_count + column
    return key


def _minimal(found: Successions, broker_count: int, limit: int) -> list[Int32Array]:
    """Return the minimal fatal sets of each size, int32[N, size], without those that hold a smaller one."""
    minimal: list[Int32Array] = []
    for size in range(1, limit + 1):
        rows = _sets_of_size(found, size) if size <= found.order.shape[1] else np.zeros((0, size), dtype=np.int32)
        _, first = np.unique(_key(rows, broker_count), return_index=True)
        rows = rows[first]
        held = np.zeros(rows.shape[0], dtype=np.bool_)
        if size > 1:
            held |= np.isin(rows, minimal[0][:, 0]).any(axis=1)
        if size > 2:
            pairs = _key(minimal[1], broker_count)
            for chosen in ([0, 1], [0, 2], [1, 2]):
                held |= np.isin(_key(rows[:, chosen], broker_count), pairs)
        minimal.append(rows[~held])
    return minimal


def _counted(found: Successions, rows: Int32Array, broker_count: int) -> tuple[Int64Array, Int64Array]:
    """Return the partitions whose clean members are each of these sets, and their bytes (0 where not known)."""
    size = rows.shape[1]
    if not rows.size:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    keys = _key(rows, broker_count)
    order = np.argsort(keys)
    of_size = found.clean_count == size
    theirs = _key(np.sort(found.order[of_size][:, :size], axis=1), broker_count)
    place = np.minimum(np.searchsorted(keys[order], theirs), keys.size - 1)
    matches = keys[order][place] == theirs
    counts, sums = np.zeros(keys.size, dtype=np.int64), np.zeros(keys.size, dtype=np.int64)
    np.add.at(counts, order[place[matches]], 1)
    if found.size_bytes is not None:
        np.add.at(sums, order[place[matches]], found.size_bytes[of_size][matches])
    return counts, sums


def _counts(minimal: list[Int32Array], live_count: int, broker_count: int) -> list[FatalCount]:
    """Return the exact number of fatal sets of each size, from the minimal ones."""
    others = live_count - minimal[0].shape[0]
    fatal = [minimal[0].shape[0]]
    if len(minimal) > 1:
        fatal.append(comb(live_count, 2) - comb(others, 2) + minimal[1].shape[0])
    if len(minimal) > 2:
        pairs = minimal[1]
        degrees = np.bincount(pairs.ravel(), minlength=broker_count).astype(np.int64)
        with_pair = pairs.shape[0] * (others - 2) - int((degrees * (degrees - 1) // 2).sum())
        with_pair += triangle_count(pairs, broker_count)
        fatal.append(comb(live_count, 3) - comb(others, 3) + with_pair + minimal[2].shape[0])
    return [
        FatalCount(size=size, set_count=comb(live_count, size), fatal_count=count, minimal_count=rows.shape[0])
        for size, (count, rows) in enumerate(zip(fatal, minimal, strict=True), start=1)
    ]


def triangle_count(pairs: Int32Array, broker_count: int) -> int:
    """Return the number of triangles of a graph. Memory: a bit a pair of brokers. Cost: O(pairs x brokers / 64)."""
    adjacent = np.zeros((broker_count, -(-broker_count // 64)), dtype=np.uint64)
    for one, other in ((0, 1), (1, 0)):
        bits = np.uint64(1) << (pairs[:, other] % 64).astype(np.uint64)
        np.bitwise_or.at(adjacent, (pairs[:, one], pairs[:, other] // 64), bits)
    return common_neighbour_count(adjacent, pairs) // 3


def common_neighbour_count(adjacent: NDArray[np.uint64], pairs: Int32Array) -> int:
    """Return the sum over the pairs of the brokers adjacent to both, given rows of bits."""
    total = 0
    for start in range(0, pairs.shape[0], _PAIRS_AT_ONCE):
        one, other = pairs[start : start + _PAIRS_AT_ONCE].T
        both = np.ascontiguousarray(adjacent[one] & adjacent[other])
        total += int(np.unpackbits(both.view(np.uint8)).sum())
    return total


def fatal_table(found: FatalSets) -> pa.Table:
    """Return one row for each minimal fatal set, as an Arrow table."""
    size_bytes = unknown_column(found.partition_count.size) if found.size_bytes is None else found.size_bytes
    return table_of(
        {
            "broker_ids": lists_column(found.brokers),
            "broker_count": np.count_nonzero(found.brokers != PAD, axis=1),
            "partition_count": found.partition_count,
            "size_bytes": size_bytes,
        }
    )
