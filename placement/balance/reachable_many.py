"""Find the optima of many small clusters at once, as reachable.py finds that of one.

A call of numpy costs as much for the six brokers of one cluster as for those of a thousand. So classes of partitions
of all clusters are counted together, their groups stand side by side in rows as wide as the most groups of a cluster,
and the kernel fills the levels of all. Left to reachable.py: clusters of more than `GROUPS_MAX` groups, whose rows
would be wide for all others, and those with cordoned brokers.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from broker.cluster import BoolArray, Int64Array
from broker.row_flags import count_in_row
from placement.balance.loads import summed_by
from placement.balance.reachable import (
    BOUND,
    FACTOR_BITS,
    FENCED,
    FREE,
    Classes,
    Groups,
    Optimum,
    Placed,
    Reach,
    Rules,
    shared_out,
)
from placement.balance.reachable_kernel import FLOW_MAX

GROUPS_MAX: Final = 16
_KEY_BITS: Final = FACTOR_BITS + GROUPS_MAX
_NONE: Final = np.empty(0, np.int64)


@attrs.frozen(eq=False)
class _Sizes:
    """Hold the sizes int64[C, G] of the groups of each class's cluster, 0 for those that it lacks."""

    sizes: Int64Array
    cordoned_groups: Int64Array = _NONE

    @property
    def free_sizes(self) -> Int64Array:
        """Return the sizes, as nobody is cordoned."""
        return self.sizes


@attrs.frozen(eq=False)
class _Groups:
    """Hold the groups of K clusters as `Groups` holds those of one: `cluster` int64[B] is the cluster of each broker.

    `named_counts` and `counts` int64[K] are the groups that are racks, and all; `sizes` is int64[K, G].
    """

    cluster: Int64Array
    of: Int64Array
    barred_by: Int64Array
    named_counts: Int64Array
    counts: Int64Array
    sizes: Int64Array

    @classmethod
    def make(cls, count: int, cluster: Int64Array, racks: Int64Array, fenced: BoolArray) -> _Groups:
        """Return the groups of brokers, in order of cluster, whose racks are numbered in each from 0; -1 is no rack."""
        width = int(racks.max(initial=-1)) + 1
        codes, racked = cluster * width + np.maximum(racks, 0), racks >= 0
        named = np.unique(codes[~fenced & racked])
        named_counts = np.bincount(named // max(width, 1), minlength=count)
        by_rack = np.full(count * width + 1, FENCED)
        by_rack[named] = _inside(named_counts)
        of_rack = np.where(racked, by_rack[codes], FENCED)
        of = np.where(fenced, FENCED, of_rack)
        alone = ~fenced & ~racked
        alone_counts = np.bincount(cluster[alone], minlength=count)
        of[alone] = named_counts[cluster[alone]] + _inside(alone_counts)
        counts = named_counts + alone_counts
        most = int(counts.max(initial=0))
        sizes = np.bincount((cluster * most + of)[~fenced], minlength=count * most).reshape(count, most)
        return cls(cluster, of, np.where(fenced, of_rack, FENCED), named_counts, counts, sizes.astype(np.int64))

    def each(self) -> list[Groups]:
        """Return the groups of each cluster."""
        cuts = np.searchsorted(self.cluster, np.arange(self.counts.size + 1)).tolist()
        names = [np.arange(count) for count in range(int(self.named_counts.max(initial=0)) + 1)]
        return [
            Groups(self.of[start:end], self.barred_by[start:end], sizes[:count], names[named], _NONE)
            for start, end, sizes, count, named in zip(
                cuts, cuts[1:], self.sizes, self.counts.tolist(), self.named_counts.tolist(), strict=False
            )
        ]


def optima_of(
    clusters: Int64Array,
    brokers: tuple[Int64Array, Int64Array, BoolArray],
    of_partition: Int64Array,
    placed: Placed | None,
) -> dict[int, Optimum]:
    """Return the optima of some of the clusters, ascending, without cordoned brokers, of up to `GROUPS_MAX` groups.

    `brokers` are the cluster of each broker of all clusters, the number of its rack in its cluster, -1 for none, and
    whether it is fenced. Without `placed`, where partitions are not listed, no optimum is known.
    """
    cluster, racks, fenced = brokers
    held, rows = (np.flatnonzero(np.isin(of, clusters)) for of in (cluster, of_partition))
    if not clusters.size:
        return {}
    groups = _Groups.make(clusters.size, np.searchsorted(clusters, cluster[held]), racks[held], fenced[held])
    if placed is None:
        return {number: Optimum(one, None) for number, one in zip(clusters.tolist(), groups.each(), strict=True)}
    bits = np.zeros(cluster.size + 1, np.int64)
    bits[held] = np.where(groups.barred_by >= 0, 1 << (FACTOR_BITS + np.maximum(groups.barred_by, 0)), 0)
    classes, of_class = _classes(np.searchsorted(clusters, of_partition[rows]), rows, bits, ~fenced, placed)
    classes = attrs.evolve(classes, barred=classes.barred[:, : groups.sizes.shape[1]])
    found: list[dict[tuple[str, bool], Reach | None]] = [{} for _ in range(clusters.size)]
    for quantity in ("replicas", "leaders", "bytes"):
        for over_racks in (False, True):
            for place, one in enumerate(_reaches(groups, classes, of_class, quantity, over_racks=over_racks)):
                found[place][quantity, over_racks] = one
    listed = zip(clusters.tolist(), groups.each(), found, strict=True)
    return {number: Optimum(one, None, reached) for number, one, reached in listed}


def _classes(
    cluster: Int64Array, rows: Int64Array, bits: Int64Array, live: BoolArray, placed: Placed
) -> tuple[Classes, Int64Array]:
    """Return the classes of the partitions in rows, each of this cluster, and the cluster of each class."""
    replicas = placed.replicas[rows]
    keys = count_in_row(np.append(live, np.False_)[replicas]).astype(np.int64)
    if bits.any():
        keys |= np.bitwise_or.reduce(bits[replicas], axis=1)
    codes, place = np.unique((cluster << _KEY_BITS) | keys, return_inverse=True)
    led = None if placed.leader is None else np.append(live, np.False_)[np.maximum(placed.leader[rows], -1)]
    sizes = None if placed.size_bytes is None else placed.size_bytes[rows]
    summed = [
        None if one is None else summed_by(place.ravel(), one.astype(np.int64), codes.size)
        for one in (np.ones(rows.size, np.int64), led, sizes)
    ]
    barred = (codes[:, None] >> (FACTOR_BITS + np.arange(GROUPS_MAX))) & 1 > 0
    stands = np.zeros((codes.size, 0), np.bool_)
    factors = codes & ((1 << FACTOR_BITS) - 1)
    counted, led_counts, size_bytes = summed
    assert counted is not None
    found = Classes(factors, barred, stands, place.ravel().astype(np.int32), counted, led_counts, size_bytes)
    return found, codes >> _KEY_BITS


def _reaches(
    groups: _Groups, classes: Classes, of_class: Int64Array, quantity: str, *, over_racks: bool
) -> list[Reach | None]:
    """Return the optimum of each cluster, as `reach` does, and None over racks where a broker has none."""
    count, counts = groups.counts.size, classes.of(quantity)
    if counts is None:
        return [None] * count
    widest = np.ones(count, np.int64)
    np.maximum.at(widest, of_class, classes.factors)
    known = np.bincount(of_class, counts, minlength=count) * widest < FLOW_MAX
    rules = Rules.of(_Sizes(groups.sizes[of_class]), classes, quantity, over_racks=over_racks)
    weights = (groups.sizes > 0).astype(np.int64) if over_racks else groups.sizes
    ends = np.cumsum(np.bincount(of_class, minlength=count))
    every = np.arange(counts.size, dtype=np.int32)
    levels = rules.levels(weights, ends, every, np.where(known[of_class], counts, 0))
    if over_racks:
        known &= groups.named_counts == groups.counts
        cluster, unit = np.repeat(np.arange(count), groups.counts), _inside(groups.counts)
    else:
        cluster, unit = (column[groups.of >= 0] for column in (groups.cluster, groups.of))
    block, target = shared_out(levels, cluster, unit)
    ruled = np.bincount(of_class[rules.kinds & FREE == 0], minlength=count) > 0
    kinds = np.where(ruled, 0, FREE) | (BOUND if quantity == "bytes" else 0)
    cuts = np.searchsorted(cluster, np.arange(count + 1)).tolist()
    return [
        Reach(block[start:end], target[start:end], unit[start:end], kind) if is_known else None
        for start, end, kind, is_known in zip(cuts, cuts[1:], kinds.tolist(), known.tolist(), strict=False)
    ]


def _inside(counts: Int64Array) -> Int64Array:
    """Return the place of each in its cluster, for clusters of so many."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


__all__ = ("GROUPS_MAX", "optima_of")
