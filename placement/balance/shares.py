"""Gather what brokers, racks and topics of many clusters hold, and the best spread of each, for measures.py.

`Held` are columns of brokers and topics, one cluster after another; a single cluster is a batch of one. A cluster is
even if nobody is fenced or cordoned, it has no racks or racks of one size, every partition is listed and no factor
exceeds its brokers: its best spreads are those of whole shares, which follow from counts for all clusters at once. Any
other cluster is asked for its optimum (reachable.py). Where that is not known, or is of other units than are held
(bytes of a partition that its replicas share unequally), the best is whole shares, a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs
import numpy as np

from broker.cluster import BoolArray, Int64Array
from broker.clusters import Clusters
from broker.row_flags import count_in_row
from placement.balance.loads import GroupLoads, loads, racks_by_name, summed_by
from placement.balance.reachable import BOUND, FREE, Groups, Optimum, Placed
from placement.balance.reachable_many import GROUPS_MAX, optima_of

QUANTITIES: Final = ("replicas", "leaders", "bytes")
NOT_KNOWN: Final = -1
GIVEN: Final = 1
"""The best spread is given; else it is that of whole shares. Kinds are sums of this, `FREE` and `BOUND`."""

Quantities = tuple[Int64Array | None, Int64Array | None, Int64Array | None]
"""Replicas, leaders and bytes; None, or -1 in all groups of a cluster, where not known."""


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
    def whole(cls, kinds: Int64Array, group: Int64Array) -> Best:
        """Return the best spreads of whole shares."""
        return cls(kinds, group, np.zeros_like(group), np.zeros_like(group))

    def levels(self, counts: Int64Array, total: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return the target of each group, and floor and ceiling of its block; `total` is what each cluster shares."""
        firsts = np.cumsum(counts) - counts
        floor, rest = np.divmod(total, counts)
        inside = np.arange(self.group.size) - np.repeat(firsts, counts)
        low, high = np.repeat(floor, counts), np.repeat(floor + (rest > 0), counts)
        target = low + (inside < np.repeat(rest, counts))
        given = np.repeat(self.kinds & GIVEN > 0, counts)
        if given.any():
            code = np.repeat(firsts, counts)[given] + self.block[given]
            target[given] = self.target[given]
            least, most = np.full(self.group.size, np.iinfo(np.int64).max), np.zeros(self.group.size, np.int64)
            np.minimum.at(least, code, target[given])
            np.maximum.at(most, code, target[given])
            low[given], high[given] = least[code], most[code]
        return target, low, high

    def taken(self, clusters: Int64Array, groups: BoolArray) -> Best:
        """Return the best spreads of these clusters alone, whose groups are marked."""
        return Best(self.kinds[clusters], self.group[groups], self.block[groups], self.target[groups])


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


@attrs.frozen(eq=False, kw_only=True)
class Held:
    """Hold what the brokers and topics of K clusters hold, one cluster after another.

    `broker_counts`, `rack_counts` and `topic_counts` int64[K] cut the brokers, racks and topics, the last two in the
    order in which equals are taken. `rack` int64[B] is the place of a broker's rack in its cluster, -1 for none.
    `widest` int64[K] are the replicas of the widest partition, -1 where not every partition is listed. `optima` gives
    the optima of clusters by their places; it is asked about clusters that are not even alone.
    """

    broker_counts: Int64Array
    broker_names: Any
    rack: Int64Array
    fenced: BoolArray
    cordoned: BoolArray
    brokers: Quantities
    rack_counts: Int64Array
    rack_names: Any
    topic_counts: Int64Array
    topic_names: Any
    topics: Quantities
    widest: Int64Array
    optima: Callable[[Int64Array], dict[int, Optimum]]

    @classmethod
    def of(cls, clusters: Clusters, *, assume_preferred: bool = False) -> Held:
        """Return what clusters hold; `assume_preferred` as in `loads`."""
        view, of_topic = clusters.view, clusters.of_topic
        found = loads(view, assume_preferred=assume_preferred)
        labels, rack = racks_by_name(view)
        of_rack = np.zeros(len(labels), dtype=np.int64)
        of_rack[rack[rack >= 0]] = clusters.of_broker[rack >= 0]
        rack_counts = clusters.counted(of_rack)
        firsts = np.cumsum(rack_counts) - rack_counts
        listed = view.partitions_complete
        names = [topic.name for topic in view.topics]
        by_name = sorted(range(len(names)), key=lambda row: (of_topic[row], names[row])) if listed else []
        rows = np.array(by_name, dtype=np.int64)
        widest = np.full(clusters.count, 0 if listed else NOT_KNOWN)
        if listed:
            np.maximum.at(widest, clusters.of_partition, count_in_row(view.partitions.replicas >= 0))
        rack = np.where(rack >= 0, rack - firsts[clusters.of_broker], -1) if labels else rack
        fenced, cordoned = ~view.alive, view.flag("cordoned")
        placed = Placed.of(view, assume_preferred=assume_preferred)

        def optimum(place: int) -> Optimum:
            brokers = clusters.brokers_of(place)
            groups = Groups.make(rack[brokers], fenced[brokers], cordoned[brokers])
            classes = None if placed is None else placed.classes(groups, clusters.rows_of(place), brokers.start)
            return Optimum(groups, classes)

        def optima(places: Int64Array) -> dict[int, Optimum]:
            wide = (rack_counts + clusters.counted(clusters.of_broker[rack < 0]) > GROUPS_MAX)[places]
            wide |= (clusters.counted(clusters.of_broker[cordoned]) > 0)[places]
            many = optima_of(places[~wide], (clusters.of_broker, rack, fenced), clusters.of_partition, placed)
            return many | {place: optimum(place) for place in places[wide].tolist()}

        return cls(
            broker_counts=clusters.counted(clusters.of_broker),
            broker_names=clusters.ids,
            rack=rack,
            fenced=fenced,
            cordoned=cordoned,
            brokers=_columns(found.brokers),
            rack_counts=rack_counts,
            rack_names=tuple(map(clusters.rack_name, labels)),
            topic_counts=clusters.counted(of_topic[rows]),
            topic_names=[names[row] for row in by_name],
            topics=_columns(found.topics, rows),
            widest=widest,
            optima=optima,
        )

    @property
    def cluster_of(self) -> Int64Array:
        """Return the cluster of each broker."""
        return np.repeat(np.arange(self.broker_counts.size), self.broker_counts)

    @property
    def rack_of(self) -> Int64Array:
        """Return the place of each broker's rack among those of all clusters; -1 for none."""
        firsts = np.cumsum(self.rack_counts) - self.rack_counts
        return np.where(self.rack >= 0, firsts[self.cluster_of] + self.rack, -1)

    def shares(self) -> tuple[Shares, ...]:
        """Return the shares of unfenced brokers, of racks with an unfenced broker, and of topics."""
        even = _are_even(self)
        found = self.optima(np.flatnonzero(~even))
        topics = Shares("topic", self.topic_counts, self.topic_names, self.topics)
        return _over_brokers(self, even, found), _over_racks(self, even, found), topics


def _columns(groups: GroupLoads | None, rows: Int64Array | None = None) -> Quantities:
    if groups is None:
        return None, None, None
    replicas, leaders, sizes = (
        None if one is None else one if rows is None else one[rows]
        for one in (groups.replica_count, groups.leader_count, groups.size_bytes)
    )
    return replicas, leaders, sizes


def best_of_racks(held: Held, over_brokers: Shares) -> Int64Array:
    """Return int64[6, R + K]: floor and ceiling of a broker of each rack at best, of replicas, leaders and bytes.

    The racks of a cluster are followed by its brokers without a rack; -1 where not known or none of them is unfenced.
    """
    unfenced = ~held.fenced
    rack_counts = held.rack_counts + 1
    ends = np.cumsum(rack_counts)
    of_rack = np.where(held.rack >= 0, held.rack, held.rack_counts[held.cluster_of])
    place = ((ends - rack_counts)[held.cluster_of] + of_rack)[unfenced]
    first = np.flatnonzero(~held.cordoned[unfenced])[::-1]  # A cordoned broker is no measure of its rack.
    found = np.full((6, int(rack_counts.sum())), NOT_KNOWN, dtype=np.int64)
    counts = over_brokers.counts
    some = np.flatnonzero(counts)
    firsts = np.cumsum(counts[some]) - counts[some]
    for row, (shares, best) in enumerate(zip(over_brokers.quantities, over_brokers.bests, strict=True)):
        if shares is None or best is None or not some.size:
            continue
        known = best.taken(some, np.ones(shares.size, dtype=np.bool_))
        _, *levels = known.levels(counts[some], np.add.reduceat(shares, firsts))
        is_known = np.repeat(shares[firsts] != NOT_KNOWN, counts[some])
        for end, level in enumerate(levels):
            found[2 * row + end, place[first]] = np.where(is_known, level, NOT_KNOWN)[first]
    return found


def _are_even(held: Held) -> BoolArray:
    """Return which clusters have best spreads that follow from counts."""
    count, of = held.broker_counts.size, held.cluster_of
    odd = np.bincount(of[held.fenced | held.cordoned], minlength=count) > 0
    racked = np.bincount(of[held.rack >= 0], minlength=count)
    odd |= (racked > 0) & (racked < held.broker_counts)
    odd |= (held.widest < 0) | (held.widest > held.broker_counts)
    sizes = np.bincount(held.rack_of[held.rack >= 0], minlength=int(held.rack_counts.sum()))
    of_rack = np.repeat(np.arange(count), held.rack_counts)
    largest = np.zeros(count, dtype=np.int64)
    np.maximum.at(largest, of_rack, sizes)
    odd |= np.bincount(of_rack[sizes != largest[of_rack]], minlength=count) > 0
    return np.asarray(~odd)


def _over_brokers(held: Held, even: BoolArray, found: dict[int, Optimum]) -> Shares:
    of, unfenced = held.cluster_of, ~held.fenced
    firsts = np.cumsum(held.broker_counts) - held.broker_counts
    inside = np.arange(of.size) - firsts[of]
    ruled = (held.rack_counts > 1) & (held.rack_counts < held.broker_counts)
    kinds = np.where(even & ~ruled, FREE, 0), np.full(even.size, FREE), np.full(even.size, BOUND)
    group = np.where(even[of] & (held.rack >= 0), held.rack, inside)[unfenced]
    counts = np.bincount(of[unfenced], minlength=even.size).astype(np.int64)
    for place, optimum in found.items():
        kinds[0][place] = kinds[1][place] = 0 if optimum.groups.is_ruled else FREE
    is_odd = ~even[of[unfenced]]
    group[is_odd] = (np.arange(of[unfenced].size) - (np.cumsum(counts) - counts)[of[unfenced]])[is_odd]
    quantities = tuple(None if one is None else one[unfenced] for one in held.brokers)
    names = held.broker_names[unfenced] if isinstance(held.broker_names, np.ndarray) else held.broker_names
    bests = _bests(quantities, counts, (group, kinds), found, over_racks=False)
    return Shares("broker", counts, names, quantities, bests)


def _over_racks(held: Held, even: BoolArray, found: dict[int, Optimum]) -> Shares:
    count, of_broker = int(held.rack_counts.sum()), held.rack_of
    unfenced = np.flatnonzero(~held.fenced & (held.rack >= 0))
    kept = np.bincount(of_broker[unfenced], minlength=count) > 0
    of_rack = np.repeat(np.arange(even.size), held.rack_counts)
    counts = np.bincount(of_rack[kept], minlength=even.size).astype(np.int64)
    quantities: list[Int64Array | None] = []
    for column in held.brokers:
        if column is None:
            quantities.append(None)
            continue
        sums = summed_by(of_broker[unfenced], column[unfenced], count)
        sums[np.isin(of_rack, np.unique(held.cluster_of[column == NOT_KNOWN]))] = NOT_KNOWN
        quantities.append(sums[kept])
    names = [name for name, is_kept in zip(held.rack_names, kept.tolist(), strict=True) if is_kept]
    narrow = np.where(held.widest <= held.rack_counts, FREE, 0)
    kinds = np.where(even, narrow, BOUND), np.where(even, FREE, BOUND), np.full(even.size, BOUND)
    group = np.arange(len(names)) - np.repeat(np.cumsum(counts) - counts, counts)
    bests = _bests(tuple(quantities), counts, (group, kinds), found, over_racks=True)
    return Shares("rack", counts, names, tuple(quantities), bests)


def _bests(
    shares: tuple[Int64Array | None, ...],
    counts: Int64Array,
    whole: tuple[Int64Array, tuple[Int64Array, ...]],
    optima: dict[int, Optimum],
    *,
    over_racks: bool,
) -> tuple[Best | None, ...]:
    """Return the best spreads: those of whole shares, and where they are known the optima of the others."""
    group, kinds = whole
    ends = np.cumsum(counts)
    bests: list[Best | None] = []
    for quantity, held, kind in zip(QUANTITIES, shares, kinds, strict=True):
        if held is None:
            bests.append(None)
            continue
        best = Best.whole(kind.astype(np.int64), group.copy())
        for place, optimum in optima.items():
            run = slice(int(ends[place] - counts[place]), int(ends[place]))
            if run.start == run.stop or held[run.start] == NOT_KNOWN:
                continue
            found = optimum.reach(quantity, over_racks=over_racks)
            if found is not None and int(found.target.sum()) == int(held[run].sum()):
                best.kinds[place] = GIVEN | found.kind
                best.group[run], best.block[run], best.target[run] = found.group, found.block, found.target
        bests.append(best)
    return tuple(bests)


def best_over_brokers(optimum: Optimum, quantity: str, held: Int64Array) -> Best:
    """Return the best spread of what the unfenced brokers of one cluster hold."""
    kind = BOUND if quantity == "bytes" else 0 if optimum.groups.is_ruled else FREE
    place = QUANTITIES.index(quantity)
    shares = tuple(held if row == place else None for row in range(3))
    whole = np.arange(held.size), (np.array([kind]),) * 3
    found = _bests(shares, np.array([held.size]), whole, {0: optimum}, over_racks=False)[place]
    assert found is not None
    return found
