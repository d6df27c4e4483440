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
   may leave it. So it is a unit of its own that can take no partition but those it has. That a partition then counts
   once for its rack is left out, so with cordoned brokers the optimum is a bound.
5. A broker without a rack is a rack of its own: nothing says that it shares one. Without any rack there is no rule.

Groups and classes. A group is the unfenced brokers of one rack, or one unfenced broker without a rack. A class is the
partitions with the same number f of replicas on unfenced brokers and the same barred groups; a of the groups are open
to them. If f <= a a partition gives an open group at most one replica; else it gives each open group one, and f - a
more go wherever a broker is left. So the loads of groups are those of a flow from classes to groups, and inside a group
any even share is possible.

The optimum. The loads that can be reached form an M-convex set: one of them, sorted, is majorised by all others, so it
has the least maximum, variance and Gini coefficient at once. It is water poured into groups: blocks of groups, each as
even as whole numbers allow (floor and ceiling of units / brokers), a lower block taking all that the rule lets it take.
For replicas and leaders it is exact; bytes are taken as divisible, so theirs is a bound. Each quantity is taken by
itself: a placement that is best for one need not be best for another. Moves are counted in measures.py; so many are
enough (`FREE`) where the rule cannot forbid a move: each group is one broker, or there is one group; for leaders
always, unless a group is barred, because a partition can swap the replica in the new leader's rack for it.

Example: topicmappr's published case "addBroker_rack_1": rack a of brokers 1001 and 1004, b of 1002, c of 1003, and four
partitions of factor 3. The rule puts each partition on b and on c, so the best is 2, 4, 4, 2; not 3, 3, 3, 3:

    >>> groups = Groups.make(np.array([0, 1, 2, 0]), fenced=np.zeros(4, dtype=np.bool_))
    >>> best = reach(groups, Classes.of_factors([3], [4], groups), "replicas")
    >>> best.target.tolist(), best.block.tolist()
    ([2, 4, 4, 2], [0, 1, 1, 0])

Source: the rules: KIP-36 and org.apache.kafka.admin.AdminUtils 4.0, which refuses a partly racked cluster or ignores
its racks, so that 5. is ours. The optimum: Frank & Murota, "Decreasing minimization on M-convex sets", Mathematical
Programming, 2021.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.broker_rows import broker_rows
from broker.cluster import PAD, ClusterView, Int32Array, Int64Array
from broker.row_flags import any_in_row, count_each, count_in_row
from placement.balance.loads import leaders, partition_bytes, racks_by_name, summed_by
from placement.balance.reachable_kernel import FLOW_MAX, fill_levels

FACTOR_BITS: Final = 8
BARRED_MAX: Final = 54  # Groups that can be barred and cordoned brokers, and a factor, in one non-negative int64.
CORDONED_MAX: Final = 12
"""Up to so many cordoned brokers a class distinguishes them: it has thousands of kinds at most."""
FENCED: Final = -1
"""Stands for the group of a broker that is fenced."""
FREE: Final = 2
"""No rule forbids a move."""
BOUND: Final = 4
"""The best spread is a bound, so moves are one too."""


@attrs.frozen(eq=False)
class Groups:
    """The unfenced brokers of a cluster, grouped by rack.

    `of` int64[B] is the group of each broker, -1 when it is fenced; `barred_by` int64[B] is the group of a fenced
    broker's rack, -1 where that has no unfenced broker; `sizes` int64[G] are unfenced brokers; `of_rack` int64[R] is
    the group of each rack, -1 where no broker is unfenced. Racks are the first groups. `cordoned` int64[K] are the
    unfenced brokers that receive nothing, ascending.
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
        unfenced = ~fenced
        named = np.unique(racks[unfenced & (racks >= 0)])
        by_rack = np.full(int(racks.max(initial=-1)) + 2, FENCED, dtype=np.int64)
        by_rack[named] = np.arange(named.size)
        of = np.where(unfenced, by_rack[racks], FENCED)
        alone = np.flatnonzero(unfenced & (racks < 0))
        of[alone] = named.size + np.arange(alone.size)
        sizes = np.bincount(of[unfenced], minlength=named.size + alone.size).astype(np.int64)
        closed = np.flatnonzero(unfenced & cordoned) if cordoned is not None else np.empty(0, dtype=np.int64)
        return cls(of, np.where(unfenced, FENCED, by_rack[racks]), sizes, by_rack[:-1], closed.astype(np.int64))

    @classmethod
    def of_view(cls, view: ClusterView) -> Groups:
        """Return the groups of the brokers of `view`; racks are in the order of their names."""
        return cls.make(racks_by_name(view)[1], ~view.alive, view.flag("cordoned"))

    @property
    def rack_count(self) -> int:
        """Return the number of racks with an unfenced broker."""
        return int(np.count_nonzero(self.of_rack >= 0))

    @functools.cached_property
    def unit_of(self) -> Int64Array:
        """Return the unit of each broker, -1 when it is fenced: its group, or if it is cordoned one of its own."""
        unit = self.of.copy()
        unit[self.cordoned] = self.sizes.size + np.arange(self.cordoned.size)
        return unit

    @functools.cached_property
    def unit_sizes(self) -> Int64Array:
        """Return the brokers of each unit: the groups without cordoned brokers, then the cordoned ones."""
        return count_each(self.unit_of, self.sizes.size + self.cordoned.size)

    @property
    def free_sizes(self) -> Int64Array:
        """Return the brokers of each group that are not cordoned."""
        return self.unit_sizes[: self.sizes.size]

    @property
    def cordoned_groups(self) -> Int64Array:
        """Return the group of each cordoned broker."""
        return self.of[self.cordoned]

    @property
    def is_even(self) -> bool:
        """Return whether all groups are of one size, no rack is barred and no broker cordoned."""
        alike = not self.sizes.size or bool((self.sizes == self.sizes[0]).all())
        return alike and not self.cordoned.size and not bool((self.barred_by >= 0).any())

    @property
    def is_ruled(self) -> bool:
        """Return whether the rack rule can forbid a move that constraint 1 allows."""
        return self.sizes.size > 1 and bool((self.sizes > 1).any())


@attrs.frozen(eq=False)
class Classes:
    """The partitions of a cluster by class: `factors` int64[C] and `barred` bool[C, G].

    `replicas`, `leaders` and `bytes`, int64[C], are partitions, led partitions, and the bytes of one replica of each,
    added up; None where the input does not say. `stands` bool[C, K] marks the cordoned brokers hold a partition of
    the class. `of_row` int32[n] is the class of each row they were made of.
    """

    factors: Int64Array
    barred: NDArray[np.bool_]
    stands: NDArray[np.bool_]
    of_row: Int32Array
    replicas: Int64Array
    leaders: Int64Array | None = None
    bytes: Int64Array | None = None

    @classmethod
    def of_factors(
        cls,
        factors: Sequence[int] | Int32Array,
        counts: Sequence[int] | Int32Array,
        groups: Groups,
        *,
        size_bytes: Int64Array | None = None,
    ) -> Classes:
        """Return the classes of `counts` partitions of each of `factors`, all led, no group barred or cordoned.

        `size_bytes` is the size of one replica of each partition.
        """
        distinct, place = np.unique(np.asarray(factors, dtype=np.int64), return_inverse=True)
        many = np.asarray(counts, dtype=np.int64)
        replicas = summed_by(place, many, distinct.size)
        barred = np.zeros((distinct.size, groups.sizes.size), dtype=np.bool_)
        sizes = None if size_bytes is None else summed_by(place, many * size_bytes, distinct.size)
        return cls(distinct, barred, barred[:, :0], place.astype(np.int32), replicas, replicas, sizes)

    @classmethod
    def of_rows(
        cls, rows: Int32Array, groups: Groups, led: NDArray[np.bool_] | None, size_bytes: Int64Array | None
    ) -> Classes:
        """Return the classes of partitions whose replicas are `rows`, places of brokers, -1 padded.

        `led` marks partitions led by an unfenced broker; `size_bytes` is the size of one replica.
        """
        barrable = np.unique(groups.barred_by[groups.barred_by >= 0])
        if barrable.size > BARRED_MAX - CORDONED_MAX:
            barrable = barrable[:0]  # More racks with fenced brokers than anyone runs: their rule is left out.
        bits = np.zeros(groups.of.size + 1, dtype=np.int64)
        closed = np.flatnonzero(np.isin(groups.barred_by, barrable) & (groups.barred_by >= 0))
        bits[closed] = 1 << (FACTOR_BITS + np.searchsorted(barrable, groups.barred_by[closed]))
        if groups.cordoned.size <= CORDONED_MAX:
            bits[groups.cordoned] = 1 << (FACTOR_BITS + BARRED_MAX - 1 - np.arange(groups.cordoned.size))
        unfenced = np.append(groups.of >= 0, np.False_)
        keys = count_in_row(unfenced[rows]).astype(np.int64)
        if bits.any():
            keys |= np.bitwise_or.reduce(bits[rows], axis=1)
        distinct, place = _distinct(keys)
        barred = np.zeros((distinct.size, groups.sizes.size), dtype=np.bool_)
        barred[:, barrable] = (distinct[:, None] >> (FACTOR_BITS + np.arange(barrable.size))) & 1 > 0
        stands = np.zeros((distinct.size, groups.cordoned.size), dtype=np.bool_)
        for number, position in enumerate(groups.cordoned.tolist()):
            stands[place[any_in_row(rows == position)], number] = True
        units = np.ones(place.size, dtype=np.int64), led, size_bytes
        summed = (None if one is None else summed_by(place, one.astype(np.int64), distinct.size) for one in units)
        factors = distinct & ((1 << FACTOR_BITS) - 1)
        return cls(factors, barred, stands, place.astype(np.int32), *summed)  # type: ignore[arg-type]  # A generator of three.

    @classmethod
    def of_view(cls, view: ClusterView, groups: Groups, *, assume_preferred: bool = False) -> Classes | None:
        """Return the classes of the partitions of `view`; None when it does not list them all."""
        placed = Placed.of(view, assume_preferred=assume_preferred)
        return None if placed is None else placed.classes(groups, slice(None), 0)

    def of(self, quantity: str) -> Int64Array | None:
        """Return what each class counts of replicas, leaders or bytes."""
        return {"replicas": self.replicas, "leaders": self.leaders, "bytes": self.bytes}[quantity]


@attrs.frozen(eq=False)
class Placed:
    """The partitions of a view, which may be of many clusters, as `Classes` count them.

    `replicas` int32[P, W] and `leader` int64[P] are places of brokers, -1 for none; `size_bytes` int64[P] is the mean
    of a partition's replicas, so that all together keep their bytes. The last two are None where not known.
    """

    replicas: Int32Array
    leader: Int64Array | None
    size_bytes: Int64Array | None

    @classmethod
    def of(cls, view: ClusterView, *, assume_preferred: bool = False) -> Placed | None:
        """Return the partitions of `view`; None when it does not list them all."""
        if not view.partitions_complete:
            return None
        table = view.partitions
        leader, sizes = leaders(table, assume_preferred=assume_preferred), partition_bytes(table)
        if sizes is not None:
            sizes = sizes // np.maximum(count_in_row(table.replicas >= 0), 1)
        return cls(view.replica_rows, None if leader is None else broker_rows(view.broker_ids, leader), sizes)

    def classes(self, groups: Groups, rows: slice, first: int) -> Classes:
        """Return the classes of the partitions of one cluster: their rows, and the place of its first broker."""
        replicas, led, sizes = self.replicas[rows], None, None
        if self.leader is not None:
            leader = self.leader[rows]
            of = np.append(groups.of, FENCED)
            led = of[np.where(leader >= 0, leader - first, groups.of.size)] >= 0
        if self.size_bytes is not None:
            sizes = self.size_bytes[rows]
        return Classes.of_rows(np.where(replicas >= 0, replicas - first, PAD).astype(np.int32), groups, led, sizes)


class GroupSizes(Protocol):
    """Hold what rules ask of groups, of one cluster or a row for each class; `Groups` says what each is."""

    @property
    def sizes(self) -> Int64Array:
        """Return the brokers of each group."""

    @property
    def free_sizes(self) -> Int64Array:
        """Return those of them that are not cordoned."""

    @property
    def cordoned_groups(self) -> Int64Array:
        """Return the group of each cordoned broker."""


@attrs.frozen(eq=False)
class Rules:
    """Shares that one partition of each class can give to each unit of alike brokers.

    `supply` int64[C] goes to the units that have room for it, at most `caps` int64[C, U]; `base` int64[C, U] is given
    in any case. `kinds` uint8[C] adds up `FREE` and `BOUND`.
    """

    supply: Int64Array
    caps: Int64Array
    base: Int64Array
    kinds: NDArray[np.uint8]

    @classmethod
    def of(cls, groups: GroupSizes, classes: Classes, quantity: str, *, over_racks: bool = False) -> Rules:
        """Return the rules of replicas, leaders or bytes over brokers, or over whole groups."""
        sizes, free, cordoned = np.atleast_2d(groups.sizes), np.atleast_2d(groups.free_sizes), groups.cordoned_groups
        kept = classes.stands @ (cordoned[:, None] == np.arange(sizes.shape[1]))
        can_hold, factors, barred = (free > 0) | kept, classes.factors, classes.barred
        if quantity == "leaders":
            # A partition with more replicas than open groups may have one, so its leader, in a barred group too.
            barred = barred & (factors <= (~barred & can_hold).sum(axis=1))[:, None]
            factors = np.minimum(factors, 1)
        is_open = ~barred & can_hold
        few = (factors <= is_open.sum(axis=1))[:, None]
        if over_racks:
            base = np.where(few, 0, is_open)
            caps = np.where(few, is_open, np.minimum(sizes - is_open, factors[:, None]))
        else:
            base = np.where(few, 0, is_open & (free > 0) & ~kept)
            caps = np.where(few, is_open & (free > 0), np.minimum(free - base, factors[:, None]))
            if cordoned.size:
                own = classes.stands & (is_open[:, cordoned] | ~few)
                caps, base = np.hstack((caps, own)), np.hstack((base, np.zeros_like(own)))
        supply = np.minimum(factors - base.sum(axis=1), caps.sum(axis=1))
        group_counts = (sizes > 0).sum(axis=1)
        can_forbid = (group_counts > 1) & (sizes > 1).any(axis=1) & (quantity != "leaders")
        ruled = factors > group_counts if over_racks else can_forbid
        kinds = np.where(barred.any(axis=1) | ruled, 0, FREE) | (BOUND if cordoned.size or quantity == "bytes" else 0)
        return cls(supply.astype(np.int64), caps.astype(np.int64), base.astype(np.int64), kinds.astype(np.uint8))

    def levels(self, weights: Int64Array, ends: Int64Array, classes: Int32Array, counts: Int64Array) -> Int64Array:
        """Return the levels int64[K, 4, U] of K sets of partitions, as `fill_levels` fills them.

        `weights` int64[U], or [K, U], are the brokers of each unit; a unit without any is in block 0.
        """
        weights = np.atleast_2d(weights)
        levels = np.zeros((ends.size, 4, weights.shape[1]), dtype=np.int64)
        caps, base = np.ascontiguousarray(self.caps), np.ascontiguousarray(self.base)
        fill_levels(ends, classes, counts, self.supply, caps, base, weights, levels)
        return levels


@attrs.frozen(eq=False)
class Reach:
    """The optimum of one quantity over unfenced brokers, or over racks.

    Entry i belongs to the i-th of them: `block` int64[n], `target` int64[n] one optimal load (which broker of a block
    has the floor and which the ceiling is open), `group` int64[n] the group. `kind` adds up `FREE` and `BOUND`.
    """

    block: Int64Array
    target: Int64Array
    group: Int64Array
    kind: int


def reach(groups: Groups, classes: Classes, quantity: str, *, over_racks: bool = False) -> Reach | None:
    """Return the optimum of replicas, leaders or bytes over unfenced brokers, in their order, or over the racks.

    None when the input does not say, and where sums would pass an int64.
    """
    counts = classes.of(quantity)
    if counts is None or float(counts.sum(dtype=np.float64)) * float(classes.factors.max(initial=1)) >= FLOW_MAX:
        return None
    rules = Rules.of(groups, classes, quantity, over_racks=over_racks)
    unit = np.arange(groups.sizes.size) if over_racks else groups.unit_of[groups.of >= 0]
    weights = np.ones_like(groups.sizes) if over_racks else groups.unit_sizes
    levels = rules.levels(weights, np.array([counts.size]), np.arange(counts.size, dtype=np.int32), counts)
    block, target = shared_out(levels, np.zeros_like(unit), unit)
    group = unit if over_racks else groups.of[groups.of >= 0]
    kind = int(np.bitwise_and.reduce(rules.kinds & FREE, initial=FREE) | np.bitwise_or.reduce(rules.kinds & BOUND))
    return Reach(block, target, group, kind | (BOUND if groups.cordoned.size or quantity == "bytes" else 0))


def shared_out(levels: Int64Array, key: Int64Array, unit: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the block and an optimal load of each broker, given its key and unit; the first of a block have more."""
    block = levels[key, 0, unit]
    codes = key * levels.shape[2] + block
    order = np.argsort(codes, kind="stable")
    place = np.empty_like(block)
    place[order] = np.arange(block.size) - np.searchsorted(codes[order], codes[order])
    return block, levels[key, 1, block] + (place < levels[key, 2, block])


@attrs.frozen(eq=False)
class Optimum:
    """The optima of one cluster, each found once."""

    groups: Groups
    classes: Classes | None
    _found: dict[tuple[str, bool], Reach | None] = attrs.field(factory=dict)

    def reach(self, quantity: str, *, over_racks: bool = False) -> Reach | None:
        """Return what `reach` does; None too where not every partition is known, and over racks that lack a broker."""
        key = quantity, over_racks
        if key not in self._found:
            if self.classes is None or (over_racks and self.groups.rack_count < self.groups.sizes.size):
                return None
            self._found[key] = reach(self.groups, self.classes, quantity, over_racks=over_racks)
        return self._found[key]


def _distinct(keys: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the distinct keys, ascending, and the place of each key among them."""
    if int(keys.max(initial=0)) >> FACTOR_BITS:
        distinct, place = np.unique(keys, return_inverse=True)
        return distinct, place.ravel()
    distinct = np.flatnonzero(np.bincount(keys)).astype(np.int64)
    return distinct, np.searchsorted(distinct, keys)
