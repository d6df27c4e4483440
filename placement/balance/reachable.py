"""Compute the most even load of brokers that can be reached without breaking a rule of Kafka.

What it decides: for replicas, leaders and bytes, how much each unfenced broker would hold in the most even placement
that the rules allow, and how many units have to move to get there.

Constraints:

1. A broker holds at most one replica of a partition.
2. The rack rule: a partition stands on as many racks as it can. With a factor up to the number of racks, its replicas
   are on different racks; with a greater one, each rack has at least one and the rest are anywhere.
3. A fenced broker receives nothing. What it holds stays, for it may be back in a minute: such a broker and its load are
   left out of the measures, and its rack is barred to the partition's other replicas.
4. A cordoned broker (KIP-1066) receives nothing either, but it is alive: it leads, its load counts, and what it holds
   may leave it. So it holds at best no more than it holds now (reachable_cordoned.py).
5. A broker without a rack is a rack of its own, as nothing says that it shares one. Without any rack there is no rule.

Groups and classes. A group is the live brokers of one rack, or one live broker without a rack. A class is the
partitions with the same number f of replicas on live brokers and the same barred groups; a of the groups are open to
them. If f <= a a partition gives an open group at most one replica; else it gives each open group one, and f - a more
go wherever a broker is left. So the loads of groups are those of a flow from classes to groups, and inside a group any
even share is possible.

The optimum. The loads that can be reached form an M-convex set: one of them, sorted, is majorised by all others, so it
has the least maximum, variance and Gini coefficient at once. It is water poured into groups: blocks of groups, each as
even as whole numbers allow (floor and ceiling of units / brokers), a lower block taking all that the rule lets it take.
With equal factors f <= R and no fenced broker, rack r of n_r brokers holds min(P, λ n_r), the sum being f P.

    replicas  exact: the vector is reached by some placement
    leaders   exact, replicas being free to move: a group leads any partition that it is open to
    bytes     a bound: bytes are taken as divisible, while the exact optimum of whole partitions is NP-hard

Each quantity is taken by itself: a placement that is best for one need not be best for another.

Moves. Let x be the loads, low and high the floor and ceiling of a block with T units. At least

    max( Σ max(x - high, 0), Σ max(low - x, 0) + Σ x - T )

units leave the brokers of each block. So many are enough (`exact`) in two cases: the rule cannot forbid a move (each
group is one broker, or there is one group; for leaders always, unless a group is barred, because a partition can swap
the replica in the new leader's rack for it); or all of them can stay inside their rack, where a move keeps the rule.
Otherwise the number is a lower bound: a unit may need several moves, or a placement that breaks the rule must be mended
first. A spread that is already as even as the optimum, or more (by breaking the rule), needs none.

Example: topicmappr's published case "addBroker_rack_1": rack a of brokers 1001 and 1004, b of 1002, c of 1003, and four
partitions of factor 3. The rule puts each partition on b and on c, so the best is 2, 4, 4, 2; not 3, 3, 3, 3:

    >>> groups = Groups.make(np.array([0, 1, 2, 0]), fenced=np.zeros(4, dtype=np.bool_))
    >>> best = reach(groups, Classes.of_factors([3], [4]), "replicas")
    >>> best.target.tolist(), best.block.tolist()
    ([2, 4, 4, 2], [0, 1, 1, 0])

Left out: the moves themselves; the spread of each topic (topic_spread.py).

Source: the rules: KIP-36 and org.apache.kafka.admin.AdminUtils 4.3, which refuses a partly racked cluster or ignores
its racks, so that 5. is ours. The optimum: Frank & Murota, "Decreasing minimization on M-convex sets", Mathematical
Programming, 2021.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.broker_rows import broker_rows
from broker.cluster import ClusterView, Int32Array, Int64Array
from broker.row_flags import any_in_row, count_in_row
from placement.balance.loads import leaders, partition_bytes
from placement.balance.reachable_cordoned import Flow, Units, blocks_of
from placement.balance.reachable_kernel import BARRED_MAX, FACTOR_BITS, FLOW_MAX, count_classes, fill_blocks

CORDONED_MAX: Final = 12
"""Up to so many cordoned brokers a class tells them apart: it has thousands of kinds at most."""

FENCED: Final = -1
"""Stands for the group of a broker that is fenced."""


@attrs.frozen(eq=False)
class Groups:
    """The live brokers of a cluster, grouped by rack.

    `of` int64[B] is the group of each broker, -1 when it is fenced; `barred_by` int64[B] is the group of a fenced
    broker's rack, -1 where that has no live broker; `sizes` int64[G] are live brokers; `of_rack` int64[R] is the group
    of each rack, -1 where no broker is live. Racks are the first groups. `cordoned` int64[K] are the live brokers that
    receive nothing, ascending.
    """

    of: Int64Array
    barred_by: Int64Array
    sizes: Int64Array
    of_rack: Int64Array
    cordoned: Int64Array

    @classmethod
    def make(
        cls, racks: Int32Array | Int64Array, fenced: NDArray[np.bool_], cordoned: NDArray[np.bool_] | None = None
    ) -> Groups:
        """Return the groups of brokers whose racks are numbered from 0; -1 is no rack."""
        live = ~fenced
        named = np.unique(racks[live & (racks >= 0)])
        by_rack = np.full(int(racks.max(initial=-1)) + 2, FENCED, dtype=np.int64)
        by_rack[named] = np.arange(named.size)
        of = np.where(live, by_rack[racks], FENCED)
        alone = np.flatnonzero(live & (racks < 0))
        of[alone] = named.size + np.arange(alone.size)
        sizes = np.bincount(of[live], minlength=named.size + alone.size).astype(np.int64)
        closed = np.flatnonzero(live & cordoned) if cordoned is not None else np.empty(0, dtype=np.int64)
        return cls(of, np.where(live, FENCED, by_rack[racks]), sizes, by_rack[:-1], closed.astype(np.int64))

    @classmethod
    def alike(cls, racks: Int32Array | Int64Array) -> Groups:
        """Return the groups of live brokers that all have a rack, numbered from 0, or that all have none."""
        none = np.empty(0, dtype=np.int64)
        if racks.size and racks[0] < 0:
            return cls(np.arange(racks.size), none, np.ones(racks.size, dtype=np.int64), none, none)
        return cls(racks.astype(np.int64), none, np.bincount(racks), none, none)

    @classmethod
    def of_view(cls, view: ClusterView) -> Groups:
        """Return the groups of the brokers of `view`; racks are in the order of their names."""
        number = {name: place for place, name in enumerate(sorted(view.racks))}  # By code point, as in `loads`.
        racks = np.array([-1 if one.rack is None else number[one.rack] for one in view.brokers], dtype=np.int64)
        fenced, cordoned = [one.fenced for one in view.brokers], [one.cordoned for one in view.brokers]
        return cls.make(racks, np.array(fenced, dtype=np.bool_), np.array(cordoned, dtype=np.bool_))

    @property
    def rack_count(self) -> int:
        """Return the number of racks with a live broker."""
        return int(np.count_nonzero(self.of_rack >= 0))

    @property
    def units(self) -> tuple[Int64Array, Int64Array]:
        """Return the groups of brokers, each cordoned broker as one of its own after the others, and their sizes."""
        count, cordoned = self.sizes.size, self.cordoned
        unit = self.of.copy()
        unit[cordoned] = count + np.arange(cordoned.size)
        return unit, np.bincount(unit[unit >= 0], minlength=count + cordoned.size).astype(np.int64)

    @property
    def is_even(self) -> bool:
        """Return whether all groups are of one size, so that none is different from the next."""
        return not self.sizes.size or bool((self.sizes == self.sizes[0]).all())

    @property
    def is_ruled(self) -> bool:
        """Return whether the rack rule can forbid a move that constraint 1 allows."""
        return self.sizes.size > 1 and bool((self.sizes > 1).any())


@attrs.frozen(eq=False)
class Classes:
    """The partitions of a cluster by class: `factors` int64[C] and `barred` bool[C, G].

    `replicas`, `leaders` and `bytes`, int64[C], are partitions, led partitions, and the bytes of one replica of each,
    added up; None where the input does not say. `on_cordoned` says the same of each class's partitions that stand on
    each of the cordoned brokers, int64[C, K] by name; `is_exact` that a class tells these apart as far as it matters.
    `of_row` int32[n] is the class of each row they were made of.
    """

    factors: Int64Array
    barred: NDArray[np.bool_]
    replicas: Int64Array
    leaders: Int64Array | None = None
    bytes: Int64Array | None = None
    on_cordoned: Mapping[str, Int64Array] = attrs.field(factory=dict)
    is_exact: bool = True
    of_row: Int32Array | None = None

    @classmethod
    def of_factors(
        cls,
        factors: Sequence[int] | Int32Array,
        counts: Sequence[int] | Int32Array,
        *,
        led: Sequence[int] | Int64Array | None = None,
        size_bytes: Int64Array | None = None,
    ) -> Classes:
        """Return the classes of `counts` partitions of each of `factors`, no group barred.

        `led` are led partitions, all of them if not given; `size_bytes` is the size of one replica of each partition.
        """
        distinct, place = np.unique(np.asarray(factors, dtype=np.int64), return_inverse=True)
        many = np.asarray(counts, dtype=np.int64)
        replicas = _summed(place, many, distinct.size)
        return cls(
            distinct,
            np.zeros((distinct.size, 0), dtype=np.bool_),
            replicas,
            replicas if led is None else _summed(place, np.asarray(led, dtype=np.int64), distinct.size),
            None if size_bytes is None else _summed(place, many * size_bytes, distinct.size),
            of_row=place.astype(np.int32),
        )

    @classmethod
    def of_rows(
        cls, rows: Int32Array, groups: Groups, led: NDArray[np.bool_] | None, size_bytes: Int64Array | None
    ) -> Classes:
        """Return the classes of partitions whose replicas are `rows`, places of brokers, -1 padded.

        `led` tells whether a live broker leads the partition; `size_bytes` is the size of one replica.
        """
        keys, barrable, place, is_exact = _keys_of(rows, groups)
        bits = (keys[:, None] >> (FACTOR_BITS + np.arange(barrable.size))) & 1 > 0
        barred = np.zeros((keys.size, groups.sizes.size), dtype=np.bool_)
        barred[:, barrable] = bits
        units = {"replicas": np.ones(place.size, dtype=np.int64), "leaders": led, "bytes": size_bytes}
        known = {name: values.astype(np.int64) for name, values in units.items() if values is not None}
        there = [np.flatnonzero(any_in_row(rows == position)) for position in groups.cordoned.tolist()]
        summed = {name: _summed(place, values, keys.size) for name, values in known.items()}
        return cls(
            keys & ((1 << FACTOR_BITS) - 1),
            barred,
            summed["replicas"],
            summed.get("leaders"),
            summed.get("bytes"),
            {
                name: np.array([_summed(place[at], values[at], keys.size) for at in there]).T
                for name, values in known.items()
                if there
            },
            is_exact,
            place,
        )

    @classmethod
    def of_view(cls, view: ClusterView, groups: Groups, *, assume_preferred: bool = False) -> Classes | None:
        """Return the classes of the partitions of `view`; None when it does not list them all."""
        if not view.partitions_complete:
            return None
        table, ids = view.partitions, view.broker_ids
        leader = leaders(table, assume_preferred=assume_preferred)
        led = None
        if leader is not None:
            rows = broker_rows(ids, leader)
            led = (rows >= 0) & (groups.of[rows] >= 0) if ids.size else np.zeros(table.count, dtype=np.bool_)
        sizes = partition_bytes(table)
        if sizes is not None:  # The mean of a partition's replicas, so that all together keep their bytes.
            sizes = sizes // np.maximum(count_in_row(table.replicas >= 0), 1)
        places = view.replica_rows
        return cls.of_rows(places, groups, led, sizes)

    def of(self, quantity: str) -> Int64Array | None:
        """Return what each class counts of replicas, leaders or bytes."""
        return {"replicas": self.replicas, "leaders": self.leaders, "bytes": self.bytes}[quantity]

    def rule(self, quantity: str, groups: Groups) -> tuple[Int64Array, NDArray[np.bool_]]:
        """Return how many units a partition of each class has, int64[C], and which groups are barred, bool[C, G]."""
        count, barred = self.factors.size, self.barred
        barred = barred if barred.shape[1] else np.zeros((count, groups.sizes.size), dtype=np.bool_)
        if quantity != "leaders":
            return self.factors, barred
        # A partition with more replicas than open groups may have one, so its leader, in a barred group too.
        on = self.on_cordoned.get("replicas", self.on_cordoned.get("leaders"))
        few = self.factors <= open_groups(groups, barred, on).sum(axis=1)
        return np.minimum(self.factors, 1), barred & few[:, None]


@attrs.frozen(eq=False)
class Reach:
    """The optimum of one quantity over live brokers, or over racks.

    Entry i belongs to the i-th of them: `block` int64[n], `target` int64[n] one optimal load (which broker of a block
    has the floor and which the ceiling is open), `group` int64[n] the group. `free` tells that no rule forbids a move;
    `is_bound` that the optimum is a bound, which may be out of reach.
    """

    block: Int64Array
    target: Int64Array
    group: Int64Array
    free: bool
    is_bound: bool = False

    def of_racks(self, groups: Groups) -> tuple[Int64Array, Int64Array]:
        """Return what a broker of each rack has at best, at least and at most, and of those without a rack last.

        Each is int64[R + 1]; -1 where no such broker is live.
        """
        first = np.full(groups.sizes.size + 1, -1, dtype=np.int64)
        inside = np.flatnonzero(self.group < groups.sizes.size)  # Cordoned brokers are no measure of their rack.
        first[self.group[inside][::-1]] = inside[::-1]
        alone = groups.rack_count if groups.rack_count < groups.sizes.size else -1
        unit = first[np.append(groups.of_rack, alone)]
        low, high = (np.append(column, -1)[unit] for column in self.ranges())
        return low, high

    def ranges(self) -> tuple[Int64Array, Int64Array]:
        """Return the floor and the ceiling of each one's block, int64[n] twice."""
        low = np.full(int(self.block.max(initial=-1)) + 1, np.iinfo(np.int64).max)
        high = np.zeros(low.size, dtype=np.int64)
        np.minimum.at(low, self.block, self.target)
        np.maximum.at(high, self.block, self.target)
        return low[self.block], high[self.block]


def reach(groups: Groups, classes: Classes, quantity: str, *, over_racks: bool = False) -> Reach | None:
    """Return the optimum of replicas, leaders or bytes over live brokers, in their order, or over the racks.

    None when the input does not say, and where sums would pass an int64.
    """
    counts = classes.of(quantity)
    if counts is None or float(counts.sum(dtype=np.float64)) * float(classes.factors.max(initial=1)) >= FLOW_MAX:
        return None
    factors, barred = classes.rule(quantity, groups)
    if groups.cordoned.size and classes.on_cordoned:
        return _with_cordoned(groups, factors, classes, quantity, barred, over_racks=over_racks)
    weights = np.ones_like(groups.sizes) if over_racks else groups.sizes
    group = np.arange(groups.sizes.size) if over_racks else groups.of[groups.of >= 0]
    narrow = bool((factors <= groups.sizes.size).all())
    block, totals = _blocks(groups, factors, counts, barred, weights)
    ruled = not narrow if over_racks else groups.is_ruled and quantity != "leaders"
    return _of_blocks(block[group], totals, group, free=not ruled and not barred.any(), is_bound=quantity == "bytes")


def _blocks(
    groups: Groups, factors: Int64Array, counts: Int64Array, barred: NDArray[np.bool_], weights: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Return the block of each group, and the units of each block."""
    block, totals = np.zeros_like(groups.sizes), np.zeros_like(groups.sizes)
    every, rules = np.arange(counts.size, dtype=np.int32), (factors, barred, groups.sizes)
    count = fill_blocks(every, counts, rules, weights, block, totals) if block.size else 0
    return block, totals[:count]


def open_groups(groups: Groups, barred: NDArray[np.bool_], on: Int64Array | None) -> NDArray[np.bool_]:
    """Return which groups can hold a partition of each class, bool[C, G].

    `on` int64[C, K] are the partitions of each class on each cordoned broker, None where no broker is cordoned.
    """
    if on is None:
        return ~barred
    of_cordoned = groups.of[groups.cordoned]
    free_count = groups.sizes - np.bincount(of_cordoned, minlength=groups.sizes.size)
    held = np.zeros_like(barred, dtype=np.int64)
    np.add.at(held.T, of_cordoned, on.T)
    return ~barred & ((free_count > 0) | (held > 0))


def _with_cordoned(
    groups: Groups,
    factors: Int64Array,
    classes: Classes,
    quantity: str,
    barred: NDArray[np.bool_],
    *,
    over_racks: bool,
) -> Reach:
    """Return the optimum where some live brokers are cordoned; see reachable_cordoned.py."""
    counts, on = classes.of(quantity), classes.on_cordoned[quantity]
    assert counts is not None
    group_count, of_cordoned = groups.sizes.size, groups.of[groups.cordoned]
    free_count = groups.sizes - np.bincount(of_cordoned, minlength=group_count)
    is_open = open_groups(groups, barred, on)
    few = (factors <= is_open.sum(axis=1))[:, None]
    many = counts[:, None]
    free_caps = np.where(few, many * (is_open & (free_count > 0)), many * free_count)
    caps = np.concatenate([free_caps, np.where(few, on * is_open[:, of_cordoned], on)], axis=1)
    unit_group = np.concatenate([np.arange(group_count), of_cordoned])
    unit, brokers = groups.units
    if over_racks:
        summed = np.zeros_like(barred, dtype=np.int64)
        np.add.at(summed.T, unit_group, caps.T)
        caps, unit_group, place = summed, np.arange(group_count), np.arange(group_count)
        weights = np.ones(group_count, dtype=np.int64)
    else:
        place, weights = unit[unit >= 0], brokers
    some = np.flatnonzero(weights > 0)  # A group of cordoned brokers alone has no other unit.
    found = blocks_of(
        Units(tuple(unit_group[some].tolist()), tuple(weights[some].tolist())),
        Flow(
            tuple(np.where(few[:, 0], factors * counts, (factors - is_open.sum(axis=1)) * counts).tolist()),
            _rows(np.where(few, 0, many * is_open)),
            _rows(np.where(few, many * is_open, many * factors[:, None])),
            _rows(caps[:, some]),
        ),
    )
    block = np.full(unit_group.size, -1, dtype=np.int64)
    for number, (members, _) in enumerate(found):
        block[some[list(members)]] = number
    totals = np.array([total for _, total in found], dtype=np.int64)
    is_bound = quantity == "bytes" or not classes.is_exact
    return _of_blocks(block[place], totals, place, free=False, is_bound=is_bound)


def _rows(matrix: NDArray[np.integer]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, matrix.tolist()))


def _of_blocks(unit_block: Int64Array, totals: Int64Array, group: Int64Array, *, free: bool, is_bound: bool) -> Reach:
    """Return the optimum of these blocks; blocks of the same floor become one, as their brokers can be exchanged."""
    brokers = np.bincount(unit_block, minlength=totals.size)
    floors = totals // np.maximum(brokers, 1)
    _, merged = np.unique(floors, return_inverse=True)
    block = merged[unit_block]
    rest = _summed(merged, totals - floors * brokers, floors.size)
    order = np.argsort(block, kind="stable")
    starts = np.searchsorted(block[order], np.arange(floors.size))
    place = np.empty_like(unit_block)
    place[order] = np.arange(block.size) - starts[block[order]]
    target = floors[unit_block] + (place < rest[block])
    return Reach(block, target, group, free, is_bound)


def _keys_of(rows: Int32Array, groups: Groups) -> tuple[Int64Array, Int64Array, Int32Array, bool]:
    """Return the key of each class, the groups that can be barred, the class of each row, and whether they are exact.

    Classes tell apart which cordoned brokers hold a partition, or only of which groups these are if they are many.
    """
    barrable = np.unique(groups.barred_by[groups.barred_by >= 0])
    if barrable.size > BARRED_MAX:
        barrable = barrable[:0]  # More racks with fenced brokers than anyone runs: their rule is left out.
    bit = np.full(groups.sizes.size + 1, -1, dtype=np.int64)
    bit[barrable] = np.arange(barrable.size)
    bits = bit[groups.barred_by]
    is_exact = _number_cordoned(rows, groups, bits, BARRED_MAX - barrable.size)
    place = np.empty(rows.shape[0], dtype=np.int32)
    room = 1 << 10
    while True:
        keys = np.empty(room, dtype=np.int64)
        count = count_classes(rows, groups.of, bits, keys, place)
        if count >= 0:
            return keys[:count], barrable, place, is_exact
        room *= 8


def _number_cordoned(rows: Int32Array, groups: Groups, bits: Int64Array, room: int) -> bool:
    """Give each cordoned broker a bit of `bits` int64[B], or each group of them; return whether that is exact."""
    cordoned = groups.cordoned
    if not cordoned.size:
        return True
    kinds, number = np.unique(groups.of[cordoned], return_inverse=True)
    if cordoned.size <= min(CORDONED_MAX, room):
        number, is_exact = np.arange(cordoned.size), True
    else:
        closed = np.zeros(groups.of.size + 1, dtype=np.bool_)
        closed[cordoned] = True
        is_exact = bool((count_in_row(closed[rows]) <= 1).all()) and kinds.size <= room
    if number.max(initial=-1) < room:
        bits[cordoned] = BARRED_MAX - 1 - number
    return is_exact


def _summed(places: NDArray[np.integer], values: Int64Array, count: int) -> Int64Array:
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, places, values)
    return sums
