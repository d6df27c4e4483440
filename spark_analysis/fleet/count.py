"""Count replicas, leaders and bytes of a simulated cluster by broker, rack and topic, beside their best spread.

How: compiled loops count the replicas, leaders and bytes of brokers and topics straight from the matrix of replicas,
which is then released. Their counts equal those of `placement` for `view_of` the cluster; a test holds both equal.
Constraints are checked only where one can be broken: not where Kafka's own placer and the settings of the shape rule it
out.

Source: ours.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.balance.audit import PartitionStates
from placement.balance.counts_kernel import rack_spread_shortfall
from placement.balance.measures import best_over_brokers, best_over_racks
from placement.balance.reachable import Classes, Groups, Reach
from placement.balance.topic_spread import TopicBests, TopicClasses, TopicRows, best_of_topics, fill_spread
from placement.placers.registry import KAFKAS
from spark_analysis.fleet.generate import SimulatedCluster
from spark_analysis.fleet.loops import count_brokers
from spark_analysis.fleet.place import topic_ends
from spark_analysis.fleet.views import view_of
from spark_analysis.tables.cluster_rows import NOT_KNOWN
from spark_analysis.tables.view_rows import Broken, broken_of, rack_sums, reached

_FIRST_LEADS: Final = np.empty(0, dtype=np.int32)


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
