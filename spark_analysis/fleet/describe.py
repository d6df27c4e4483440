"""Turn placed clusters of a fleet into rows of the tables: count one cluster at a time, write many at once.

What it decides: the state of a simulated cluster is the one that KRaft's topic creation leaves: the replicas on
unfenced brokers are in sync, and the first of them leads. So a fenced broker leads nothing, and partitions on it are
under-replicated from the start.

How: compiled loops count the replicas, leaders and bytes of brokers and topics straight from the matrix of replicas,
which is then released. Their counts equal those of `placement` for `view_of` the cluster; a test holds both equal.
Constraints are checked only where one can be broken: not where Kafka's own placer and the settings of the shape rule it
out.

Left out: columns that are the same for clusters of any origin (tables/spreads.py, tables/staging.py).

Source: org.apache.kafka.controller.ReplicationControlManager.createTopic, 4.0.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from broker.cluster import PAD, ClusterView, Int32Array, Int64Array, PartitionTable, TopicView
from broker.ids import NO_LEADER
from placement.balance.audit import PartitionStates
from placement.balance.counts_kernel import rack_spread_shortfall
from placement.balance.measures import best_over_brokers, best_over_racks
from placement.balance.reachable import Classes, Groups, Reach
from placement.balance.topic_spread import TopicBests, TopicClasses, TopicRows, best_of_topics, fill_spread
from placement.placers.registry import KAFKAS
from spark_analysis.fleet.generate import NO_RACK, SimulatedCluster
from spark_analysis.fleet.loops import count_brokers
from spark_analysis.fleet.place import broker_views, topic_ends
from spark_analysis.tables import schemas
from spark_analysis.tables.cluster_rows import (
    BOUND,
    FREE,
    NOT_KNOWN,
    QUANTITIES,
    Best,
    ClusterRows,
    Part,
    Rows,
    Shares,
    kind_of,
)
from spark_analysis.tables.view_rows import Broken, best_of_racks, broken_of, rack_sums, reached, violation_rows

SIMULATED: Final = "simulated"
_EMPTY: Final = np.empty(0, dtype=np.int64)
_FIRST_LEADS: Final = np.empty(0, dtype=np.int32)
_COUNTS: Final = (
    "broker_count",
    "fenced_broker_count",
    "unracked_broker_count",
    "rack_count",
    "rack_broker_count_min",
    "rack_broker_count_max",
    "topic_count",
    "partition_count",
)


@attrs.frozen(eq=False)
class Layout:
    """Hold the groups of a cluster whose brokers are not all alike, the classes of its topics, and their best spreads.

    With `of_cluster` they follow from the cluster's topics, as no fenced broker holds a replica: every placer has them.
    """

    of_cluster: bool
    groups: Groups
    topics: TopicClasses
    bests: TopicBests | None

    @classmethod
    def of(cls, groups: Groups, topics: TopicClasses, *, of_cluster: bool, by_topic: bool) -> Layout:
        """Return the layout with the best spreads of topics, if they are wanted and not too many to hold at once."""
        return cls(of_cluster, groups, topics, best_of_topics(groups, topics) if by_topic else None)


@attrs.frozen(eq=False)
class Uneven:
    """Hold the best spreads over brokers and racks of a cluster whose brokers are not all alike."""

    layout: Layout
    over_brokers: tuple[Reach | None, ...]
    over_racks: tuple[Reach | None, ...]


@attrs.frozen(eq=False, kw_only=True)
class Placed:
    """Hold the counts of one cluster as placed by one placer.

    Shapes: `held` int64[3, B]: replicas, leaders and bytes of each broker, bytes -1 where the shape has none; `racks`
    int64[4, R]: brokers, replicas, leaders, bytes of each rack, the brokers without a rack last; `spread` int64[11, T]
    as `fill_spread` does, or None when topics are not listed. `uneven` is None where all groups of brokers are
    alike, so that the best spread is that of whole shares.
    """

    cluster: SimulatedCluster
    placer: str
    partition_count: int
    held: Int64Array
    racks: Int64Array
    spread: Int64Array | None
    broken: Broken
    uneven: Uneven | None

    @property
    def row_count(self) -> int:
        """Return the approximate number of rows of brokers and topics."""
        return self.cluster.broker_count + (0 if self.spread is None else self.cluster.topic_count)


def count_placed(
    cluster: SimulatedCluster,
    rows: Int32Array,
    *,
    placer: str,
    source: str,
    by_topic: bool = True,
    other: Placed | None = None,
) -> Placed:
    """Return the counts of a cluster whose replicas are the matrix `rows`; topics are listed if `by_topic`.

    `other` is the same cluster as placed by another placer, whose best spreads may be the same.
    """
    layout = _layout(cluster, rows, None if other is None else other.uneven, by_topic=by_topic)
    held, spread = _counted(cluster, rows, layout, by_topic=by_topic)
    if cluster.size_bytes is None:
        held[2] = NOT_KNOWN
    return Placed(
        cluster=cluster,
        placer=placer,
        partition_count=rows.shape[0],
        held=held,
        racks=_racks(cluster, held),
        spread=spread,
        uneven=_uneven(cluster, held, layout, None if other is None else other.uneven),
        broken=_calm(len(cluster.rack_names)) if _is_calm(cluster, rows, placer) else _broken(cluster, rows, source),
    )


def _layout(cluster: SimulatedCluster, rows: Int32Array, other: Uneven | None, *, by_topic: bool) -> Layout | None:
    """Return the groups and classes of a cluster with fenced brokers, or with racks uneven or not everywhere."""
    fenced, racks, counts = cluster.fenced, cluster.rack_index, cluster.grown_counts
    of_cluster = not fenced.any() or not (fenced[rows] & (rows >= 0)).any()
    if of_cluster and other is not None and other.layout.of_cluster:
        return other.layout
    if not fenced.any():
        sizes = np.bincount(racks + 1)
        if not cluster.rack_names or (not sizes[0] and (sizes[1:] == sizes[1]).all()):
            return None
    groups = Groups.make(racks, fenced)
    if of_cluster:
        classes = Classes.of_factors(cluster.factors, counts, size_bytes=cluster.size_bytes)
        return Layout.of(groups, TopicClasses.of_topics(classes, counts), of_cluster=True, by_topic=by_topic)
    led = np.asarray(((rows >= 0) & ~fenced[rows]).any(axis=1))
    size_bytes = None if cluster.size_bytes is None else np.repeat(cluster.size_bytes, counts)
    classes = Classes.of_rows(rows, groups, led, size_bytes)
    topics = TopicClasses.of_rows(classes, topic_ends(cluster), led)
    return Layout.of(groups, topics, of_cluster=False, by_topic=by_topic)


def _counted(
    cluster: SimulatedCluster, rows: Int32Array, layout: Layout | None, *, by_topic: bool
) -> tuple[Int64Array, Int64Array | None]:
    """Return what brokers hold, int64[3, B], and the spread of topics, int64[11, T], or None if not `by_topic`."""
    sizes = np.zeros(cluster.topic_count, dtype=np.int64) if cluster.size_bytes is None else cluster.size_bytes
    held = np.zeros((3, cluster.broker_count), dtype=np.int64)
    if not by_topic:
        count_brokers(rows, cluster.fenced, cluster.grown_counts, sizes, held)
        return held, None
    spread = np.empty((11, cluster.topic_count), dtype=np.int64)
    topics = TopicRows(rows, _FIRST_LEADS, topic_ends(cluster), sizes)
    if layout is None:
        fill_spread(topics, Groups.alike(cluster.rack_index), None, held, spread)
    else:
        fill_spread(topics, layout.groups, layout.topics, held, spread, layout.bests)
    return held, spread


def _uneven(cluster: SimulatedCluster, held: Int64Array, layout: Layout | None, other: Uneven | None) -> Uneven | None:
    """Return the best spreads of a cluster with this layout, those of `other` where it has the same."""
    if layout is None or (other is not None and other.layout is layout):
        return other if layout is not None else None
    groups, classes = layout.groups, layout.topics.classes
    known = [None if not one.size or one[0] == NOT_KNOWN else one for one in held]
    by_rack = [None if one is None else rack_sums(groups, one) for one in known]
    live = [None if one is None else one[~cluster.fenced] for one in known]
    return Uneven(
        layout,
        reached(best_over_brokers, groups, classes, live),
        reached(best_over_racks, groups, classes, by_rack),
    )


def _broken(cluster: SimulatedCluster, rows: Int32Array, source: str) -> Broken:
    return broken_of(view_of(cluster, rows, source), None)


def _is_calm(cluster: SimulatedCluster, rows: Int32Array, placer: str) -> bool:
    """Return whether no constraint can be broken: no broker is fenced, and Kafka's own placer placed them."""
    shape = cluster.shape
    if placer not in KAFKAS or cluster.fenced.any() or shape.topics.factor_min <= shape.min_insync_replicas:
        return False
    return not cluster.rack_names or not rack_spread_shortfall(rows, cluster.rack_index, len(cluster.rack_names)).any()


@functools.cache
def _calm(rack_count: int) -> Broken:
    """Return the counts of violations of a cluster that has none, with `rack_count` racks."""
    states = [field.name for field in attrs.fields(PartitionStates)]
    counts: dict[str, Any] = dict.fromkeys((*(f"{state}_count" for state in states), "violation_count"), 0)
    nobody = {"out_of_sync_brokers": [], "out_of_sync_explained_count": 0}
    return Broken(counts | nobody | {"fewer_racks_count": 0 if rack_count else None}, ())


def _racks(cluster: SimulatedCluster, held: Int64Array) -> Int64Array:
    """Return the racks in the order of their numbers, that of their names; brokers without a rack come last."""
    if not cluster.rack_names:
        return np.empty((4, 0), dtype=np.int64)
    codes = cluster.rack_index % (len(cluster.rack_names) + 1)
    rack_count = int(codes.max()) + 1
    sums = np.zeros((4, rack_count), dtype=np.int64)
    sums[0] = np.bincount(codes, minlength=rack_count)
    for quantity in range(3):
        np.add.at(sums[quantity + 1], codes, held[quantity])
    return sums


# --- a cluster as a view ----------------------------------------------------------------------------------------------


def view_of(cluster: SimulatedCluster, rows: Int32Array, source: str) -> ClusterView:
    """Return the placed cluster as KRaft's topic creation leaves it: unfenced replicas in sync, the first leads."""
    topic_index = np.repeat(np.arange(cluster.topic_count, dtype=np.int32), cluster.grown_counts)
    firsts = topic_ends(cluster) - cluster.grown_counts
    settings = zip(cluster.grown_counts.tolist(), cluster.factors.tolist(), strict=True)
    names: list[Any] = _topic_names(cluster.topic_count).to_pylist()
    isr = in_sync(rows, cluster)
    return ClusterView(
        name=cluster_name(cluster),
        source=source,
        format=SIMULATED,
        brokers=broker_views(cluster),
        topics=tuple(
            TopicView(name, count, factor, cluster.shape.min_insync_replicas)
            for name, (count, factor) in zip(names, settings, strict=True)
        ),
        partitions=PartitionTable(
            topic_index=topic_index,
            partition_ids=np.arange(rows.shape[0]) - np.repeat(firsts, cluster.grown_counts),
            replicas=rows,
            leader=first_in_sync(isr),
            isr=isr,
            size_bytes=None if cluster.size_bytes is None else cluster.size_bytes[topic_index],
        ),
    )


def cluster_name(cluster: SimulatedCluster) -> str:
    """Return the name of a simulated cluster in the tables, such as "cluster-000007"."""
    return f"cluster-{cluster.number:06d}"


def in_sync(rows: Int32Array, cluster: SimulatedCluster) -> Int32Array:
    """Return the replicas on unfenced brokers in their columns, with -1 in place of the others."""
    if not cluster.fenced.any():
        return rows
    return np.where((rows >= 0) & ~cluster.fenced[rows], rows, PAD).astype(np.int32)


def first_in_sync(isr: Int32Array) -> Int32Array:
    """Return the first replica of each row that is not -1, int32[P]; -1 for a row without one."""
    if not isr.size:
        return np.full(isr.shape[0], NO_LEADER, dtype=np.int32)
    first = np.argmax(isr >= 0, axis=1)
    return np.ascontiguousarray(isr[np.arange(isr.shape[0]), first])


# --- rows ------------------------------------------------------------------------------------------------------------


def describe_placed(placed: Sequence[Placed], source: str) -> ClusterRows:
    """Return the rows of the tables for these counted clusters of the recipe named `source`."""
    held = np.concatenate([one.held for one in placed], axis=1)
    racks = np.concatenate([one.racks for one in placed], axis=1)
    broker_counts = np.array([one.cluster.broker_count for one in placed])
    brokers = np.concatenate([_numbers(count) for count in broker_counts.tolist()])
    fenced = np.concatenate([one.cluster.fenced for one in placed])
    never = np.zeros(fenced.size, dtype=np.bool_)  # No recipe cordons or stops brokers.
    rack_names = [name for one in placed for name in _rack_names(one)]
    tables = {
        schemas.BROKERS: Rows(
            broker_counts,
            (brokers, _racks_of_brokers(placed), fenced, *held, np.where(fenced, held[0], 0), never, never),
        ),
        schemas.RACKS: Rows([one.racks.shape[1] for one in placed], (rack_names, *racks, *_best_of_racks(placed))),
        schemas.VIOLATIONS: violation_rows([one.broken.listed for one in placed]),
    }
    shares = [_over_brokers(placed, held[:, ~fenced]), _over_racks(placed)]
    spreads = [one.spread for one in placed if one.spread is not None]
    if spreads:
        rows, spread_shares = _topics(placed, np.concatenate(spreads, axis=1))
        tables[schemas.TOPICS] = rows
        shares += [spread_shares]
    firsts = np.cumsum(broker_counts) - broker_counts
    totals = {"replica_count": np.add.reduceat(held[0], firsts), "size_bytes": np.add.reduceat(held[2], firsts)}
    return ClusterRows([one.placer for one in placed], _facts(placed, source) | totals, tables, tuple(shares))


def _over_brokers(placed: Sequence[Placed], held: Int64Array) -> Shares:
    """Return what live brokers hold, `held`, and their best spreads."""
    live = [np.flatnonzero(~one.cluster.fenced) for one in placed]
    counts = np.array([numbers.size for numbers in live])
    even = [_even_over_brokers(one) for one in placed]
    given = [None if one.uneven is None else one.uneven.over_brokers for one in placed]
    return Shares("broker", counts, np.concatenate(live), tuple(held), _bests(given, even, counts))


def _over_racks(placed: Sequence[Placed]) -> Shares:
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
        return _numbers(one.cluster.broker_count).astype(np.int64), FREE
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


def _best_of_racks(placed: Sequence[Placed]) -> Int64Array:
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


def _facts(placed: Sequence[Placed], source: str) -> dict[str, Part]:
    clusters = [one.cluster for one in placed]
    counts = np.array([_counts(one) for one in placed]).T
    counted = dict(zip(_COUNTS, counts, strict=True))
    broken = {name: [one.broken.counts[name] for one in placed] for name in placed[0].broken.counts}
    names = {
        "cluster": [cluster_name(cluster) for cluster in clusters],
        "source": [source] * len(clusters),
        "format": [SIMULATED] * len(clusters),
        "shape": [cluster.shape.name for cluster in clusters],
    }
    return names | counted | broken


def _counts(one: Placed) -> tuple[int, ...]:
    """Return one cluster's counts, as `_COUNTS` names them."""
    cluster, sizes = one.cluster, one.racks[0, : len(one.cluster.rack_names)].tolist()
    return (
        cluster.broker_count,
        int(np.count_nonzero(cluster.fenced)),
        cluster.broker_count - sum(sizes),
        len(sizes),
        min(sizes, default=NOT_KNOWN),
        max(sizes, default=NOT_KNOWN),
        cluster.topic_count,
        one.partition_count,
    )


def _rack_names(one: Placed) -> tuple[str | None, ...]:
    """Return the names of the racks that `one.racks` counts."""
    names = one.cluster.rack_names
    return (*names, None) if one.racks.shape[1] > len(names) else names


def _racks_of_brokers(placed: Sequence[Placed]) -> Part:
    """Return the name of each broker's rack, null where it has none."""
    names = [name for one in placed for name in one.cluster.rack_names]
    if not names:
        return None
    counts = np.array([len(one.cluster.rack_names) for one in placed])
    codes = np.concatenate([one.cluster.rack_index for one in placed])
    before = np.repeat(np.cumsum(counts) - counts, [one.cluster.broker_count for one in placed])
    places: Any = pa.array(codes + before, mask=codes == NO_RACK)
    return pa.array(names, type=pa.string()).take(places)


def _topics(placed: Sequence[Placed], spread: Int64Array) -> tuple[Rows, Shares]:
    """Return the rows of topics, and what topics hold."""
    clusters = [one.cluster for one in placed]
    counts = np.array([cluster.topic_count for cluster in clusters])
    replicas, holders, *of_replicas, led = spread[:7]
    unknown = [np.full(count, NOT_KNOWN, dtype=np.int64) for count in counts.tolist()]
    size_bytes = np.concatenate(
        [
            none if cluster.size_bytes is None else cluster.size_bytes
            for cluster, none in zip(clusters, unknown, strict=True)
        ]
    )
    sizes = np.where(size_bytes >= 0, size_bytes * replicas, NOT_KNOWN)
    names = pa.concat_arrays([_topic_names(count) for count in counts.tolist()])
    settings = (
        np.concatenate([cluster.grown_counts for cluster in clusters]),
        np.concatenate([cluster.factors for cluster in clusters]),
        np.repeat([cluster.shape.min_insync_replicas for cluster in clusters], counts),
    )
    of_replicas[-1], of_leaders = of_replicas[-1] > 0, [*spread[7:10], spread[10] > 0]
    rows = Rows(counts, (names, *settings, replicas, sizes, holders, *of_replicas, *of_leaders))
    return rows, Shares("topic", counts, names, (replicas, led, sizes))


@functools.lru_cache(maxsize=64)
def _topic_names(count: int) -> Any:
    """Return the names of a simulated cluster's topics, an Arrow array of strings."""
    return pa.array([f"topic-{number:06d}" for number in range(count)], type=pa.string())


@functools.lru_cache(maxsize=64)
def _numbers(count: int) -> Int32Array:
    """Return the ids of a simulated cluster's brokers, int32[count]; not to be written to."""
    return np.arange(count, dtype=np.int32)
