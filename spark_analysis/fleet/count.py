"""Count replicas, leaders and bytes of a simulated cluster by broker, and describe many counted clusters as rows."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from broker.cluster import BROKER_FLAGS, Int32Array, Int64Array
from broker.row_flags import first_in_row
from placement.balance.audit import PartitionStates
from placement.balance.constraints import racks_had_and_needed
from placement.balance.reachable import Classes, Groups, Optimum
from placement.balance.shares import NOT_KNOWN, Held, Quantities
from placement.balance.topic_spread import TopicBests, TopicClasses, TopicRows, best_of_topics, spread_topics
from placement.placers.registry import KAFKAS
from spark_analysis.fleet.generate import NO_RACK, SimulatedCluster
from spark_analysis.fleet.place import topic_ends
from spark_analysis.fleet.views import SIMULATED, cluster_name, simulated_view, topic_names
from spark_analysis.tables import schemas
from spark_analysis.tables.cluster_rows import ClusterRows, Rows, rack_rows
from spark_analysis.tables.columns import Part
from spark_analysis.tables.view_rows import Broken, broken_of, violation_rows


@attrs.frozen(eq=False)
class Layout:
    """Hold the optimum of a cluster whose brokers are not all alike, and the best spreads of its topics.

    With `of_cluster` they follow from the cluster's topics, as no fenced broker holds a replica: every placer has them.
    """

    of_cluster: bool
    optimum: Optimum
    bests: TopicBests | None

    @classmethod
    def of(cls, cluster: SimulatedCluster, rows: Int32Array, *, of_cluster: bool, by_topic: bool) -> Layout:
        """Return the layout, with the best spreads of topics if they are wanted."""
        groups, counts = Groups.make(cluster.rack_index, cluster.fenced), cluster.grown_counts
        if of_cluster:
            classes = Classes.of_factors(cluster.factors, counts, groups, size_bytes=cluster.size_bytes)
            topics = TopicClasses.of_topics(classes, counts)
        else:
            led = np.asarray(((rows >= 0) & ~cluster.fenced[rows]).any(axis=1))
            sizes = None if cluster.size_bytes is None else np.repeat(cluster.size_bytes, counts)
            classes = Classes.of_rows(rows, groups, led, sizes)
            topics = TopicClasses.of_rows(classes, topic_ends(cluster), led)
        return cls(of_cluster, Optimum(groups, classes), best_of_topics(groups, topics) if by_topic else None)


@attrs.frozen(eq=False, kw_only=True)
class Placed:
    """Hold the counts of one cluster as placed by one placer.

    Shapes: `held` int64[3, B]: replicas, leaders and bytes of each broker, bytes -1 where the shape has none; `spread`
    int64[11, T] as `spread_topics` gives it, or None when topics are not listed. `layout` is None where all groups of
    brokers are alike, so that the best spread is that of whole shares.
    """

    cluster: SimulatedCluster
    placer: str
    partition_count: int
    held: Int64Array
    spread: Int64Array | None
    broken: Broken
    layout: Layout | None

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
    layout = _layout(cluster, rows, None if other is None else other.layout, by_topic=by_topic)
    if by_topic:
        groups = Groups.make(cluster.rack_index, cluster.fenced) if layout is None else layout.optimum.groups
        topics = TopicRows(rows, None, topic_ends(cluster))
        spread, held = spread_topics(topics, groups, None if layout is None else layout.bests, cluster.size_bytes)
    else:
        spread, held = None, _held(cluster, rows)
    if cluster.size_bytes is None:
        held[2] = NOT_KNOWN
    unbroken = _cannot_break(cluster, rows, placer)
    return Placed(
        cluster=cluster,
        placer=placer,
        partition_count=rows.shape[0],
        held=held,
        spread=spread,
        layout=layout,
        broken=_unbroken(len(cluster.rack_names))
        if unbroken
        else broken_of(simulated_view(cluster, rows, source), None),
    )


def _layout(cluster: SimulatedCluster, rows: Int32Array, other: Layout | None, *, by_topic: bool) -> Layout | None:
    """Return the layout of a cluster with fenced brokers, or with racks uneven or not everywhere; `other` may fit."""
    fenced = cluster.fenced
    of_cluster = not fenced.any() or not (fenced[rows] & (rows >= 0)).any()
    if of_cluster and other is not None and other.of_cluster:
        return other
    if not fenced.any():
        sizes = np.bincount(cluster.rack_index + 1)
        if not cluster.rack_names or (not sizes[0] and (sizes[1:] == sizes[1]).all()):
            return None
    return Layout.of(cluster, rows, of_cluster=of_cluster, by_topic=by_topic)


def _held(cluster: SimulatedCluster, rows: Int32Array) -> Int64Array:
    """Return replicas, leaders and bytes of each broker, int64[3, B]; the first unfenced replica leads."""
    count = cluster.broker_count
    held = np.zeros((3, count), dtype=np.int64)
    replicas = rows.ravel()
    held[0] = np.bincount(
        replicas[replicas >= 0] if len(cluster.shape.topics.factors) > 1 else replicas, minlength=count
    )
    leader = rows[:, 0]
    if cluster.fenced.any():
        leader = first_in_row(rows, (rows >= 0) & ~cluster.fenced[rows])
        leader = leader[leader >= 0]
    held[1] = np.bincount(leader, minlength=count)
    if cluster.size_bytes is not None:
        size_bytes = np.repeat(cluster.size_bytes, cluster.grown_counts)
        for column in rows.T:
            here = column >= 0
            np.add.at(held[2], column[here], size_bytes[here])
    return held


def _cannot_break(cluster: SimulatedCluster, rows: Int32Array, placer: str) -> bool:
    """Return whether no constraint can be broken: no broker is fenced, and Kafka's own placer placed them."""
    shape = cluster.shape
    if placer not in KAFKAS or cluster.fenced.any() or shape.topics.factor_min <= shape.min_insync_replicas:
        return False
    if not cluster.rack_names:
        return True
    had, needed = racks_had_and_needed(np.append(cluster.rack_index, NO_RACK)[rows], len(cluster.rack_names))
    return not (had < needed).any()


@functools.cache
def _unbroken(rack_count: int) -> Broken:
    """Return the counts of violations of a cluster that has none, with `rack_count` racks."""
    states = [field.name for field in attrs.fields(PartitionStates)]
    counts: dict[str, Any] = dict.fromkeys((*(f"{state}_count" for state in states), "violation_count"), 0)
    nobody = {"out_of_sync_brokers": [], "out_of_sync_explained_count": 0}
    return Broken(counts | nobody | {"fewer_racks_count": 0 if rack_count else None}, ())


def describe_placed(placed: Sequence[Placed], source: str) -> ClusterRows:
    """Return the rows of the tables for these counted clusters of the recipe named `source`."""
    clusters = [one.cluster for one in placed]
    held = _all_held(placed)
    fenced, of_brokers = held.fenced, held.brokers
    tables = {}
    if any(one.spread is not None for one in placed):
        tables[schemas.TOPICS], topics = _topics(placed)
        held = attrs.evolve(held, topic_counts=np.asarray(tables[schemas.TOPICS].counts), topics=topics)
    shares = held.shares()
    missing = np.where(fenced, of_brokers[0], 0)  # type: ignore[arg-type]  # Replicas are always known.
    others = (np.zeros_like(fenced),) * len(BROKER_FLAGS[1:])  # No recipe sets another flag.
    columns = (held.broker_names, _racks_of_brokers(held), fenced, *of_brokers, missing, *others)
    tables[schemas.BROKERS] = Rows(held.broker_counts, columns)
    tables[schemas.RACKS] = rack_rows(held, shares[0])
    tables[schemas.VIOLATIONS] = violation_rows([one.broken.listed for one in placed])
    names = {
        "cluster": [cluster_name(cluster) for cluster in clusters],
        "source": [source] * len(clusters),
        "format": [SIMULATED] * len(clusters),
        "shape": [cluster.shape.name for cluster in clusters],
    }
    broken = {name: [one.broken.counts[name] for one in placed] for name in placed[0].broken.counts}
    return ClusterRows([one.placer for one in placed], names | _counts(placed, held) | broken, tables, shares)


def _all_held(placed: Sequence[Placed]) -> Held:
    """Return what the brokers of all these clusters hold."""
    clusters = [one.cluster for one in placed]
    counts = np.array([cluster.broker_count for cluster in clusters])
    fenced = np.concatenate([cluster.fenced for cluster in clusters])
    replicas, leaders, sizes = np.concatenate([one.held for one in placed], axis=1)
    named = [topic_names(0 if one.spread is None else one.cluster.topic_count) for one in placed]

    def optima(places: Int64Array) -> dict[int, Optimum]:
        layouts = {place: placed[place].layout for place in places.tolist()}
        assert None not in layouts.values(), "clusters whose brokers are alike have no layout"
        return {place: layout.optimum for place, layout in layouts.items() if layout is not None}

    return Held(
        broker_counts=counts,
        broker_names=np.arange(fenced.size) - np.repeat(np.cumsum(counts) - counts, counts),
        rack=np.concatenate([cluster.rack_index for cluster in clusters]).astype(np.int64),
        fenced=fenced,
        cordoned=np.zeros(fenced.size, dtype=np.bool_),  # No recipe cordons or stops brokers.
        brokers=(replicas, leaders, sizes),
        rack_counts=np.array([len(cluster.rack_names) for cluster in clusters]),
        rack_names=[name for cluster in clusters for name in cluster.rack_names],
        topic_counts=np.zeros(counts.size, dtype=np.int64),
        topic_names=pa.concat_arrays(named),
        topics=(None, None, None),
        widest=np.array([cluster.factors.max(initial=0) for cluster in clusters]),
        optima=optima,
    )


def _counts(placed: Sequence[Placed], held: Held) -> dict[str, Part]:
    """Return the facts of each cluster that are counts."""
    replicas, _, sizes = held.brokers
    assert replicas is not None
    assert sizes is not None
    count, of = held.broker_counts.size, held.cluster_of
    of_rack = np.bincount(held.rack_of[held.rack >= 0], minlength=int(held.rack_counts.sum()))
    least, most = np.full(count, np.iinfo(np.int64).max), np.full(count, NOT_KNOWN)
    cluster = np.repeat(np.arange(count), held.rack_counts)
    np.minimum.at(least, cluster, of_rack)
    np.maximum.at(most, cluster, of_rack)
    firsts = np.cumsum(held.broker_counts) - held.broker_counts
    return {
        "broker_count": held.broker_counts,
        "fenced_broker_count": np.bincount(of[held.fenced], minlength=count),
        "unracked_broker_count": np.bincount(of[held.rack < 0], minlength=count),
        "rack_count": held.rack_counts,
        "rack_broker_count_min": np.where(held.rack_counts > 0, least, NOT_KNOWN),
        "rack_broker_count_max": most,
        "topic_count": np.array([one.cluster.topic_count for one in placed]),
        "partition_count": np.array([one.partition_count for one in placed]),
        "replica_count": np.add.reduceat(replicas, firsts),
        "size_bytes": np.add.reduceat(sizes, firsts),
    }


def _racks_of_brokers(held: Held) -> Part:
    """Return the name of each broker's rack, null where it has none."""
    if not held.rack_names:
        return None
    places: Any = pa.array(held.rack_of, mask=held.rack < 0)
    return pa.array(held.rack_names, type=pa.string()).take(places)


def _topics(placed: Sequence[Placed]) -> tuple[Rows, Quantities]:
    """Return the rows of topics, and what topics hold."""
    clusters = [one.cluster for one in placed if one.spread is not None]
    counts = np.array([0 if one.spread is None else one.cluster.topic_count for one in placed])
    spread = np.concatenate([one.spread for one in placed if one.spread is not None], axis=1)
    replicas, holders, *of_replicas, led = spread[:7]
    unknown = [np.full(cluster.topic_count, NOT_KNOWN, dtype=np.int64) for cluster in clusters]
    known = zip(clusters, unknown, strict=True)
    size_bytes = np.concatenate([none if one.size_bytes is None else one.size_bytes for one, none in known])
    size_bytes = np.where(size_bytes >= 0, size_bytes * replicas, NOT_KNOWN)
    names = pa.concat_arrays([topic_names(cluster.topic_count) for cluster in clusters])
    least = [cluster.shape.min_insync_replicas for cluster in clusters]
    settings = (
        np.concatenate([cluster.grown_counts for cluster in clusters]),
        np.concatenate([cluster.factors for cluster in clusters]),
        np.repeat(least, [cluster.topic_count for cluster in clusters]),
    )
    of_replicas[-1], of_leaders = of_replicas[-1] > 0, [*spread[7:10], spread[10] > 0]
    rows = Rows(counts, (names, *settings, replicas, size_bytes, holders, *of_replicas, *of_leaders))
    return rows, (replicas, led, size_bytes)
