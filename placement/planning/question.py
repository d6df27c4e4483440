"""State the allowed replica positions, and compute each partition's least cost at given broker prices.

It is the part of a plan's lower bound that depends on the partitions, and shares nothing with the solver. Besides the
replicas that stay, `wanted` ones are placed: former ones that may be chosen, and brokers that receive. If no more are
wanted than racks are open, each open rack holds at most one and the others none; else each open rack holds at least one
and the rest are anywhere. A broker that did not hold the partition costs `fresh`; the former leader saves `lead`.
Candidates are the partition's own brokers and the cheapest ones that receive of the cheapest racks.

Example: prices 0 and -1, fresh 1, one partition on broker 0: min(0, 1 - 1) = 0.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from broker.cluster import PAD, BoolArray, ClusterView, Int32Array, Int64Array
from broker.row_flags import distinct_in_row, members

FAR: Final = 1 << 60
"""Costs more than anything: no broker there can be had."""
_PART_BITS: Final = 30  # Bits of a cost that are added up apart from the higher ones.
_ROWS_AT_ONCE: Final = 1 << 16


@attrs.frozen(kw_only=True, eq=False)
class Question:
    """Hold the allowed placements: `rows` int32[P, W] positions, -1 pads, and the rules' limits for brokers.

    `wanted` int64[P] replicas besides those that stay, 0 where nothing changes; `own` and `stays` bool[P, W] mark the
    replicas that may be chosen, and those that stay; `fresh` bool[P] partitions that may get new ones; `leader`
    int32[P], -1 where none can be lost; `live` bool[B] whose loads count; `pool` bool[B] whose racks are open;
    `base` int64[B] what brokers hold besides; `topic` int32[P]. Loads count replicas, or, where `weights` int64[P] are
    given, bytes: what a replica of each partition adds to a load, and to a cost. `base` is then in bytes too.
    """

    rows: Int32Array
    wanted: Int64Array
    own: BoolArray
    stays: BoolArray
    fresh: BoolArray
    leader: Int32Array
    live: BoolArray
    receives: BoolArray
    pool: BoolArray
    rack: Int64Array
    base: Int64Array
    topic: Int32Array
    weights: Int64Array | None = None

    @classmethod
    def rack_numbers(cls, view: ClusterView) -> Int64Array:
        """Return the number of each broker's rack, a broker without one being a rack of its own."""
        places = view.rack_places
        alone = places < 0
        return np.where(alone, places.max(initial=-1) + np.cumsum(alone), places)

    @property
    def total(self) -> int:
        """Return the sum of all loads of live brokers."""
        placed = self.wanted if self.weights is None else self.wanted * self.weights
        return int(placed.sum() + self.base[self.live].sum())

    def least(self, price: Int64Array, *, fresh: int, lead: int, rows: Int64Array | None = None) -> int:
        """Return the least sum of cost and price over all placements of `rows`, by default of all partitions.

        `fresh` is what a new replica costs, `lead` what a lost leader does; with weights each counts as many times as
        the partition has bytes. Less than 0, far below any sum, is returned where a partition has no place.
        """
        chosen = np.flatnonzero(self.wanted) if rows is None else rows
        costs = self.least_costs(price, fresh=fresh, lead=lead, rows=chosen)
        if (costs >= FAR).any():
            return -FAR * FAR
        costs = costs if self.weights is None else costs * self.weights[chosen]
        return (int((costs >> _PART_BITS).sum()) << _PART_BITS) + int((costs & (1 << _PART_BITS) - 1).sum())

    def least_costs(self, price: Int64Array, *, fresh: int, lead: int, rows: Int64Array) -> Int64Array:
        """Return the least cost of each of `rows`, int64[N]; FAR for one that no set of brokers may hold."""
        costs = np.zeros(rows.size, dtype=np.int64)
        order = np.argsort(price, kind="stable")
        able = order[self.receives[order] & self.live[order]]
        for factor in np.unique(self.wanted[rows][self.wanted[rows] > 0]).tolist():
            places = np.flatnonzero(self.wanted[rows] == factor)
            for part in np.split(places, range(_ROWS_AT_ONCE, places.size, _ROWS_AT_ONCE)):
                chosen = rows[part]
                held, fresh_rows = self.rows[chosen], self.fresh[chosen]
                saved = lead * (held == self.leader[chosen][:, None])
                own = np.where(self.own[chosen], np.append(price, 0)[held] - saved, FAR)
                rack = np.append(self.rack, PAD)[held]
                barred = np.where(self.stays[chosen], rack, PAD)
                open_count = self._open_count(np.where(self.own[chosen], rack, PAD), barred, fresh_rows)
                for asked, needs_all in ((factor <= open_count, False), (factor > open_count, True)):
                    if asked.any():
                        new = _cheapest(able, self.rack, factor + held.shape[1], each=needs_all)
                        taken = (held[asked][:, :, None] == new[None, None, :]).any(axis=1) | ~fresh_rows[asked, None]
                        new_costs = np.where(taken, FAR, (price + fresh)[new])
                        new_racks = np.broadcast_to(self.rack[new], taken.shape)
                        found = _sorted_costs(own[asked], rack[asked], new_costs, new_racks)
                        costs[part[asked]] = _totals(*found, barred[asked], factor, open_count[asked], needs_all)
        return costs

    def _open_count(self, own: Int64Array, barred: Int64Array, fresh: BoolArray) -> Int64Array:
        """Return how many racks are open to each partition, int64[N]; `own` and `barred` are racks, int64[N, W]."""
        in_pool = np.zeros(int(self.rack.max(initial=-1)) + 2, dtype=np.bool_)
        in_pool[self.rack[self.pool]] = True
        lost = distinct_in_row(np.where(in_pool[barred], barred, PAD))
        among_own = distinct_in_row(np.where(members(own, barred), PAD, own))
        return np.where(fresh, np.count_nonzero(in_pool) - lost, among_own).astype(np.int64)


def first_without_place(question: Question) -> int:
    """Return the first row that no set of brokers may hold, -1 if each has one."""
    rows = np.flatnonzero(question.wanted)
    none = np.zeros(question.live.size, dtype=np.int64)
    bad = rows[question.least_costs(none, fresh=1, lead=0, rows=rows) >= FAR]
    return int(bad[0]) if bad.size else -1


def _cheapest(able: Int64Array, rack: Int64Array, count: int, *, each: bool) -> Int64Array:
    """Return the first `count` of each rack of the brokers `able`, or the first one of each of the first racks."""
    order = np.argsort(rack[able], kind="stable")
    racks = rack[able][order]
    number = np.empty(able.size, dtype=np.int64)
    number[order] = np.arange(able.size) - np.searchsorted(racks, racks)
    return able[number < count] if each else able[number == 0][:count]


def _sorted_costs(
    own: Int64Array, own_racks: Int64Array, new: Int64Array, new_racks: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Return the costs of own and new brokers of each partition and their racks, int64[N, C], the cheapest first."""
    costs = np.concatenate([own, new], axis=1)
    groups = np.concatenate([own_racks, new_racks], axis=1)
    order = np.argsort(costs, axis=1, kind="stable")
    return np.take_along_axis(costs, order, axis=1), np.take_along_axis(groups, order, axis=1)


def _totals(
    costs: Int64Array, racks: Int64Array, barred: Int64Array, factor: int, open_count: Int64Array, needs_all: bool
) -> Int64Array:
    """Return the least cost of each partition, given its candidates, the cheapest first; FAR where it has no place."""
    first = ~(racks[:, :, None] == barred[:, None, :]).any(axis=2) & (costs < FAR)
    for column in range(1, costs.shape[1]):
        first[:, column] &= ~(racks[:, :column] == racks[:, column : column + 1]).any(axis=1)
    if needs_all:
        taken = np.where(first, costs, 0).sum(axis=1)
        left = np.sort(np.where(first, FAR, costs), axis=1)
        counts = np.arange(left.shape[1]) < (factor - open_count)[:, None]
        fits = (first.sum(axis=1) == open_count) & ~(counts & (left >= FAR)).any(axis=1)
        fits &= factor - open_count <= left.shape[1]
        return np.where(fits, taken + np.where(counts & (left < FAR), left, 0).sum(axis=1), FAR)
    chosen = np.sort(np.where(first, costs, FAR), axis=1)[:, :factor]
    fits = (chosen < FAR).sum(axis=1) == factor
    return np.where(fits, np.where(chosen < FAR, chosen, 0).sum(axis=1), FAR)
