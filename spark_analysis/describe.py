"""One cluster into rows of tables: what it holds, how it spreads, what is broken.

Two ways in. `describe_view` takes a ClusterView, from a dump, and asks `placement` for every
figure. `describe_simulated` takes a simulated cluster and its placement and counts with compiled
loops; a test holds both equal.

A simulated cluster is looked at as its creation leaves it under KRaft: the replicas on
unfenced brokers are in sync, and the first of them leads. So a fenced broker leads nothing,
and its partitions are under-replicated from the start
(org.apache.kafka.controller.ReplicationControlManager.createTopic, 4.0).

Left out: the rank, which compares clusters, and the measures, which SQL makes of the shares.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from broker.cluster import PAD, BrokerView, ClusterView, Int32Array, Int64Array, PartitionTable, TopicView
from broker.ids import NO_LEADER
from placement.audit import assignment_of, explain_states, partition_states, rack_audit, topic_spread
from placement.constraints import RACK_SPREAD, check
from placement.kernels.counts import rack_spread_shortfall
from placement.loads import GroupLoads, loads
from placement.registry import KAFKAS
from spark_analysis import schemas
from spark_analysis.fleet.generate import NO_RACK, SimulatedCluster
from spark_analysis.fleet.loops import count_brokers, count_shared, count_topics
from spark_analysis.fleet.place import broker_views, topic_ends
from spark_analysis.staging import ClusterRows, Columns, Shares

VIOLATIONS_MAX: Final = 100  # Of each kind and cluster, as the table of violations promises.
PAIR_BROKER_COUNT_MAX: Final = 100  # 4,950 pairs: what a heat map can still show.
DUMP: Final = "dump"
SIMULATED: Final = "simulated"


# --- any view --------------------------------------------------------------------------------------------------------


def describe_view(view: ClusterView, *, min_insync_replicas: int | None = None, pairs: bool = False) -> ClusterRows:
    """Return the rows of one dump's cluster; `min_insync_replicas` holds for topics that do not show theirs.

    With `pairs`, brokers that share partitions are counted, if they are at most 100.
    """
    held = loads(view)
    broken = _broken(view, min_insync_replicas)
    complete = view.partitions_complete
    brokers = held.brokers
    tables = {
        "brokers": Columns(
            len(view.brokers),
            (
                view.broker_ids,
                [broker.rack for broker in view.brokers],
                [broker.fenced for broker in view.brokers],
                *_quantities(brokers),
            ),
        ),
        "violations": broken.rows,
    }
    shares = [_shares(brokers, range(len(view.brokers)))]
    if held.racks is not None:
        tables["racks"] = _racks(held.racks, view.brokers)
        shares.append(_shares(held.racks, [row for row, name in enumerate(held.racks.names) if name is not None]))
    if held.topics is not None:
        by_name = sorted(range(len(view.topics)), key=lambda row: view.topics[row].name)
        tables["topics"] = _topics_of_view(view, np.array(by_name, dtype=np.int64))
        shares.append(_shares(held.topics, by_name))
    if pairs and complete and len(view.brokers) <= PAIR_BROKER_COUNT_MAX:
        tables["pairs"] = count_pairs(view.partitions.replicas, view.broker_ids)
    counts = {
        "topic_count": len(view.topics) if complete else None,
        "partition_count": view.partitions.count if complete else None,
        "replica_count": _total(brokers.replica_count),
        "size_bytes": _total(brokers.size_bytes),
    }
    facts = _identity(view, DUMP) | _racks_facts(view) | counts | broken.counts
    return ClusterRows(facts, tables, tuple(shares))


def _shares(group: GroupLoads, rows: Sequence[int]) -> Shares:
    """Return what these groups hold, in this order."""
    order = np.array(rows, dtype=np.int64)
    replicas, leaders, sizes = (None if column is None else column[order] for column in _quantities(group))
    return Shares(group.scope, [group.names[row] for row in rows], (replicas, leaders, sizes))


def _identity(view: ClusterView, placer: str) -> dict[str, Any]:
    return {
        "placer": placer,
        "cluster": view.name,
        "source": view.source,
        "format": view.format,
        "broker_count": len(view.brokers),
        "fenced_broker_count": sum(broker.fenced for broker in view.brokers),
    }


def _racks_facts(view: ClusterView) -> dict[str, Any]:
    audit = rack_audit(view)
    return {
        "unracked_broker_count": len(audit.unracked_brokers),
        "rack_count": audit.rack_count,
        "rack_broker_count_min": audit.rack_broker_count_min,
        "rack_broker_count_max": audit.rack_broker_count_max,
    }


def _quantities(group: GroupLoads) -> tuple[Int64Array | None, ...]:
    return group.replica_count, group.leader_count, group.size_bytes


def _racks(racks: GroupLoads, brokers: tuple[BrokerView, ...]) -> Columns:
    counts = dict.fromkeys(racks.names, 0)
    for broker in brokers:
        counts[broker.rack] += 1
    return Columns(len(racks.names), (list(racks.names), [counts[name] for name in racks.names], *_quantities(racks)))


def _topics_of_view(view: ClusterView, order: Int64Array) -> Columns:
    """Topics in order of name, so that the first of equals is the same everywhere."""
    spread = topic_spread(view)
    columns = (getattr(spread, name) for name in ("topics", *schemas.TOPICS.column_names[3:]))
    return Columns(order.size, tuple(_reordered(column, order) for column in columns))


def _reordered(column: Any, order: Int64Array) -> Any:
    if isinstance(column, tuple):
        return [column[row] for row in order.tolist()]
    return None if column is None else column[order]


def _total(shares: Int64Array | None) -> int | None:
    return None if shares is None else int(shares.sum())


@attrs.frozen(eq=False)
class _Broken:
    counts: dict[str, int | None]
    rows: Columns


def _broken(view: ClusterView, min_insync_replicas: int | None) -> _Broken:
    """Return the counts of states and of violations, and the first violations of each kind in words."""
    states = partition_states(view, min_insync_replicas=min_insync_replicas)
    broken = check(assignment_of(view), view.brokers)
    spread = next((found.count for found in broken if found.constraint is RACK_SPREAD), 0)
    counts = {f"{field.name}_count": _size(getattr(states, field.name)) for field in attrs.fields(type(states))}
    violation_count = sum(found.count for found in broken) + sum(count or 0 for count in counts.values())
    racks_known = bool(view.racks) and (view.partitions_complete or spread > 0)
    listed = [row for found in broken for row in found.explain(VIOLATIONS_MAX)]
    listed += explain_states(view, states, VIOLATIONS_MAX)
    return _Broken(
        counts | {"fewer_racks_count": spread if racks_known else None, "violation_count": violation_count},
        Columns.of_rows(schemas.VIOLATIONS, listed),
    )


def _size(rows: Int64Array | None) -> int | None:
    return None if rows is None else int(rows.size)


def count_pairs(replicas: Int32Array, broker_ids: Int32Array) -> Columns:
    """Return how many partitions each two brokers share, pairs that share none left out; ids ascend."""
    shared = np.zeros((broker_ids.size, broker_ids.size), dtype=np.int64)
    places = np.where(replicas >= 0, np.searchsorted(broker_ids, replicas), PAD).astype(np.int32)
    count_shared(places, shared)
    lesser, greater = np.nonzero(shared)
    return Columns(lesser.size, (broker_ids[lesser], broker_ids[greater], shared[lesser, greater]))


# --- a simulated cluster ---------------------------------------------------------------------------------------------


def view_of(cluster: SimulatedCluster, rows: Int32Array, source: str) -> ClusterView:
    """Return the placed cluster as KRaft's creation leaves it: unfenced replicas in sync, the first leads."""
    topic_index = np.repeat(np.arange(cluster.topic_count, dtype=np.int32), cluster.grown_counts)
    firsts = topic_ends(cluster) - cluster.grown_counts
    settings = zip(cluster.grown_counts.tolist(), cluster.factors.tolist(), strict=True)
    names: list[Any] = topic_names(cluster.topic_count).to_pylist()
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
    """Return the name that a simulated cluster goes by."""
    return f"cluster-{cluster.number:06d}"


@functools.lru_cache(maxsize=64)
def topic_names(count: int) -> Any:
    """Return the names of a simulated cluster's topics, an Arrow array of strings."""
    return pa.array([f"topic-{number:06d}" for number in range(count)], type=pa.string())


def in_sync(rows: Int32Array, cluster: SimulatedCluster) -> Int32Array:
    """Return the replicas that stand on unfenced brokers, each in its column, -1 elsewhere."""
    if not cluster.fenced.any():
        return rows
    return np.where((rows >= 0) & ~cluster.fenced[rows], rows, PAD).astype(np.int32)


def first_in_sync(isr: Int32Array) -> Int32Array:
    """Return the first member of each row, int32[P], -1 where there is none."""
    if not isr.size:
        return np.full(isr.shape[0], NO_LEADER, dtype=np.int32)
    first = np.argmax(isr >= 0, axis=1)
    return np.ascontiguousarray(isr[np.arange(isr.shape[0]), first])


def describe_simulated(
    cluster: SimulatedCluster, rows: Int32Array, *, placer: str, source: str, by_topic: bool = True
) -> ClusterRows:
    """Return the rows of a simulated cluster, placed as `rows` say; topics are listed if `by_topic`."""
    fenced_count = int(np.count_nonzero(cluster.fenced))
    held = np.zeros((3, cluster.broker_count), dtype=np.int64)
    known = cluster.size_bytes is not None
    spread = _count(cluster, rows, held, by_topic)
    quantities = held[0], held[1], held[2] if known else None
    brokers = (broker_numbers(cluster.broker_count), _rack_column(cluster), cluster.fenced, *quantities)
    tables = {"brokers": Columns(cluster.broker_count, brokers)}
    shares = [Shares("broker", broker_names(cluster.broker_count), quantities)]
    racks = _simulated_racks(cluster, held, known) if cluster.rack_names else None
    if racks is not None:
        tables["racks"] = racks
        count = len(cluster.rack_names)  # Without the row that gathers brokers of no rack.
        of_racks = [None if column is None else column[:count] for column in racks.parts[2:]]
        shares.append(Shares("rack", cluster.rack_names, (of_racks[0], of_racks[1], of_racks[2])))
    if spread is not None:
        topics = _topics(cluster, spread)
        tables["topics"] = topics
        shares.append(Shares("topic", topics.parts[0], (spread[0], spread[4], topics.parts[5])))
    facts = {
        "placer": placer,
        "cluster": cluster_name(cluster),
        "source": source,
        "format": SIMULATED,
        "shape": cluster.shape.name,
        "broker_count": cluster.broker_count,
        "fenced_broker_count": fenced_count,
        "topic_count": cluster.topic_count,
        "partition_count": rows.shape[0],
        "replica_count": int(held[0].sum()),
        "size_bytes": int(held[2].sum()) if known else None,
    }
    if placer in KAFKAS and not fenced_count and _is_calm(cluster, rows):
        return ClusterRows(facts | _calm_facts(cluster, racks), tables, tuple(shares))
    view = view_of(cluster, rows, source)
    broken = _broken(view, None)
    tables["violations"] = broken.rows
    return ClusterRows(facts | _racks_facts(view) | broken.counts, tables, tuple(shares))


def _count(cluster: SimulatedCluster, rows: Int32Array, held: Int64Array, by_topic: bool) -> Int64Array | None:
    """Fill `held` with what each broker holds; return what each topic does, if `by_topic`."""
    sizes = cluster.size_bytes if cluster.size_bytes is not None else np.zeros(cluster.topic_count, dtype=np.int64)
    if not by_topic:
        count_brokers(rows, cluster.fenced, topic_ends(cluster), sizes, held)
        return None
    topics = np.zeros((7, cluster.topic_count), dtype=np.int64)
    count_topics(rows, cluster.fenced, topic_ends(cluster), sizes, held, topics)
    return topics


@functools.lru_cache(maxsize=64)
def broker_numbers(count: int) -> Int32Array:
    """Return the ids of a simulated cluster's brokers, int32[count]; not to be written to."""
    return np.arange(count, dtype=np.int32)


@functools.lru_cache(maxsize=64)
def broker_names(count: int) -> Any:
    """Return the same as an Arrow array of strings."""
    return pa.array([str(number) for number in range(count)], type=pa.string())


def _is_calm(cluster: SimulatedCluster, rows: Int32Array) -> bool:
    """Whether nothing is broken when nobody is fenced, and a placer of Kafka's gave each partition its brokers."""
    if cluster.factors.size and int(cluster.factors.min()) <= cluster.shape.min_insync_replicas:
        return False
    return not cluster.rack_names or not rack_spread_shortfall(rows, cluster.rack_index, len(cluster.rack_names)).any()


def _calm_facts(cluster: SimulatedCluster, racks: Columns | None) -> dict[str, Any]:
    states = ("leaderless", "under_min_isr", "at_min_isr", "under_replicated", "not_preferred_leader")
    facts: dict[str, Any] = {f"{state}_count": 0 for state in states}
    rack_count = len(cluster.rack_names)
    facts |= {"unracked_broker_count": cluster.broker_count, "rack_count": rack_count, "violation_count": 0}
    if racks is None:
        return facts
    sizes = racks.parts[1][:rack_count]
    return facts | {
        "unracked_broker_count": cluster.broker_count - int(sizes.sum()),
        "rack_broker_count_min": int(sizes.min()),
        "rack_broker_count_max": int(sizes.max()),
        "fewer_racks_count": 0,
    }


def _rack_column(cluster: SimulatedCluster) -> Any:
    if not cluster.rack_names:
        return None
    absent = cluster.rack_index == NO_RACK
    places: Any = pa.array(cluster.rack_index, mask=absent)
    return pa.array(cluster.rack_names, type=pa.string()).take(places)


def _simulated_racks(cluster: SimulatedCluster, held: Int64Array, known: bool) -> Columns:
    """Racks in order of name, which is that of their numbers; the brokers without one last, under a null."""
    codes = cluster.rack_index
    names: list[str | None] = list(cluster.rack_names)
    if (codes == NO_RACK).any():
        names.append(None)
        codes = np.where(codes == NO_RACK, len(names) - 1, codes)
    sums = np.zeros((3, len(names)), dtype=np.int64)
    for quantity in range(3):
        np.add.at(sums[quantity], codes, held[quantity])
    counts = np.bincount(codes, minlength=len(names)).astype(np.int32)
    return Columns(len(names), (names, counts, sums[0], sums[1], sums[2] if known else None))


def _topics(cluster: SimulatedCluster, counted: Int64Array) -> Columns:
    replicas, holders, most, moves, _, leader_most, leader_moves = counted
    sizes = None if cluster.size_bytes is None else cluster.size_bytes * replicas
    least = np.full(cluster.topic_count, cluster.shape.min_insync_replicas, dtype=np.int32)
    return Columns(
        cluster.topic_count,
        (
            topic_names(cluster.topic_count),
            cluster.grown_counts,
            cluster.factors,
            least,
            replicas,
            sizes,
            holders,
            most,
            moves,
            leader_most,
            leader_moves,
        ),
    )
