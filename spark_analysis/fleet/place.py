"""Place every topic of a simulated cluster, created in order and then grown in order, on one generator.

Each placer of a shape places the same topics, with a `java.util.Random` of its own, whose seed is derived from the
fleet's seed, the cluster and the placer's name. In Kafka the caller of a placer decides how a topic grows: the classic
placer's caller starts at the place of the broker that leads partition 0, and draws nothing; any other placer is asked
again for the partitions from the present count on, as the KRaft controller does. The classic placer is given the
unfenced brokers only, as its callers listed live brokers, and ignores racks where only some brokers have one
(`RackAwareMode.Safe`); others get all.

Example: place_cluster(cluster, "classic", seed=42) is int32[partitions, widest factor], padded with -1.

Source: kafka.zk.AdminZkClient.addPartitions; org.apache.kafka.controller.ReplicationControlManager.createPartitions,
4.0.
"""

from __future__ import annotations

import functools
import zlib
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import PAD, BrokerView, Int32Array, Int64Array
from broker.entropy import JavaRandom, derive
from broker.ids import BrokerId
from placement.placers.broker_columns import BrokerColumns, PlacementCalls
from placement.placers.classic import Ring, ring_of
from placement.placers.classic_kernel import fill_classic
from placement.placers.registry import load_placer
from placement.placers.striped import Stripes, striped_topics
from placement.spec import PlacementSpec, ReplicaPlacer, rows_placed
from spark_analysis.fleet.generate import NO_RACK, SimulatedCluster

CLASSIC: Final = "classic"
STRIPED: Final = "striped"
_JAVA_MASK: Final = np.uint64((1 << 48) - 1)
_PLACER_STREAM: Final = 2


def broker_views(cluster: SimulatedCluster) -> tuple[BrokerView, ...]:
    """Return the cluster's brokers, ids ascending."""
    racks = [None if code == NO_RACK else cluster.rack_names[code] for code in cluster.rack_index.tolist()]
    return tuple(
        BrokerView(id=BrokerId(number), rack=rack, fenced=fenced)
        for number, (rack, fenced) in enumerate(zip(racks, cluster.fenced.tolist(), strict=True))
    )


def topic_ends(cluster: SimulatedCluster) -> Int64Array:
    """Return the row after each topic's last partition, int64[T]."""
    return np.cumsum(cluster.grown_counts, dtype=np.int64)


def placer_random(cluster: SimulatedCluster, placer: str, *, seed: int) -> JavaRandom:
    """Return the generator of `placer` on this cluster of the fleet with `seed`."""
    name = zlib.crc32(placer.encode("utf-8"))
    return JavaRandom(derive(seed, cluster.number, _PLACER_STREAM, name))


def place_cluster(cluster: SimulatedCluster, placer: str, *, seed: int) -> Int32Array:
    """Return the replicas int32[P, W], topics in order, each topic's partitions in order, padded with -1.

    W is the widest factor of the shape. `seed` is the fleet's. Raises UsageError for a placer that is not installed,
    and the errors of the placer itself.
    """
    random = placer_random(cluster, placer, seed=seed)
    if placer == CLASSIC:
        return _place_classic(cluster, random)
    if placer == STRIPED:
        return _place_striped(cluster, random)
    return _place_by_calls(cluster, load_placer(placer), random)


def _place_by_calls(cluster: SimulatedCluster, policy: ReplicaPlacer, random: JavaRandom) -> Int32Array:
    ends, created, grown, factors = topic_ends(cluster), cluster.partition_counts, cluster.grown_counts, cluster.factors
    firsts = ends - grown
    brokers = broker_views(cluster)
    rows = _empty_rows(cluster, int(grown.sum()))
    calls = [(topic, 0, count) for topic, count in enumerate(created.tolist())]
    calls += [(topic, int(created[topic]), int(grown[topic])) for topic in grown_topics(cluster).tolist()]
    for topic, start, end in calls:
        factor = int(factors[topic])
        spec = PlacementSpec(start_partition=start, partition_count=end - start, replication_factor=factor)
        rows[firsts[topic] + start : firsts[topic] + end, :factor] = rows_placed(policy, spec, brokers, random)
    return rows


def grown_topics(cluster: SimulatedCluster) -> Int64Array:
    """Return the topics that grow after their creation, ascending, int64[G]."""
    if cluster.shape.growth is None:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(cluster.grown_counts > cluster.partition_counts).astype(np.int64, copy=False)


def _empty_rows(cluster: SimulatedCluster, count: int) -> Int32Array:
    topics = cluster.shape.topics
    shape = count, topics.factor_max
    # Rows of one and the same factor have no pads.
    return np.empty(shape, dtype=np.int32) if len(topics.factors) == 1 else np.full(shape, PAD, dtype=np.int32)


def _interleaved(cluster: SimulatedCluster, created: Int32Array, grown: Int32Array) -> Int32Array:
    """Return the rows of creations and those of growths, both in order of topics, as each topic's rows in order."""
    if not len(grown):
        return created
    counts = np.column_stack((cluster.partition_counts, cluster.grown_counts - cluster.partition_counts)).ravel()
    is_created = np.repeat(np.tile([True, False], cluster.topic_count), counts)
    rows = np.empty((is_created.size, created.shape[1]), dtype=np.int32)
    rows[is_created] = created
    rows[~is_created] = grown
    return rows


# --- classic ---------------------------------------------------------------------------------------------------------


def classic_starts(cluster: SimulatedCluster, random: JavaRandom) -> Int32Array:
    """Return the start index and the first shift of each topic's creation, int32[T, 2], as Kafka draws them."""
    return java_draws(random, int(np.count_nonzero(~cluster.fenced)), 2 * cluster.topic_count).reshape(-1, 2)


def java_draws(random: JavaRandom, bound: int, count: int) -> Int32Array:
    """Return what java.util.Random.nextInt(bound) gives `count` times.

    The k-th state from now on is a linear function of the present one; a state whose number is refused is passed over.
    """
    found = np.empty(0, dtype=np.int64)
    while found.size < count:
        wanted = count - found.size + 8
        factors, terms = _jumps(wanted.bit_length())
        states = (factors[:wanted] * np.uint64(random.state) + terms[:wanted]) & _JAVA_MASK
        bits = (states >> np.uint64(17)).astype(np.int64)
        if bound & (bound - 1) == 0:
            values, is_taken = (bound * bits) >> 31, np.ones(bits.size, dtype=np.bool_)
        else:
            values = bits % bound
            is_taken = bits - values + (bound - 1) < 1 << 31
        taken = np.flatnonzero(is_taken)[: count - found.size]
        random.state = int(states[taken[-1] if found.size + taken.size == count else -1])
        found = np.concatenate((found, values[taken]))
    return found.astype(np.int32)


@functools.cache
def _jumps(bits: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return factor and term that lead from a state of java.util.Random to each of the next 2^bits, modulo 2^64."""
    factors, terms = np.array([0x5DEECE66D], dtype=np.uint64), np.array([0xB], dtype=np.uint64)
    for _ in range(bits):
        terms = np.concatenate((terms, factors * terms[-1] + terms))
        factors = np.concatenate((factors, factors * factors[-1]))
    return factors, terms


def _place_classic(cluster: SimulatedCluster, random: JavaRandom) -> Int32Array:
    """Sums of indexes stay far below 2^31: a recipe has at most 2,000,000 partitions a cluster."""
    ring = _ring(cluster)
    created = cluster.partition_counts
    rows = _run_classic(cluster, ring, 0, created, cluster.factors, classic_starts(cluster, random))
    topics = grown_topics(cluster)
    if not topics.size:
        return rows
    # The start index is the place of partition 0's first replica among the brokers listed, by ascending id.
    leaders = rows[(np.cumsum(created) - created)[topics], :1]
    starts = np.searchsorted(np.flatnonzero(~cluster.fenced), leaders).astype(np.int32)
    added = (cluster.grown_counts - created)[topics]
    grown = _run_classic(cluster, ring, created[topics], added, cluster.factors[topics], starts)
    return _interleaved(cluster, rows, grown)


def _ring(cluster: SimulatedCluster) -> Ring:
    """Return the ring of the unfenced brokers, its positions being their ids."""
    live = np.flatnonzero(~cluster.fenced).astype(np.int32)
    if not cluster.rack_names or (cluster.rack_index[live] == NO_RACK).any():
        return Ring(positions=live, racks=None, rack_count=1)
    brokers = broker_views(cluster)
    ring = ring_of(BrokerColumns.of([brokers[place] for place in live.tolist()]))
    return attrs.evolve(ring, positions=live[ring.positions])


def _run_classic(
    cluster: SimulatedCluster,
    ring: Ring,
    first: Int32Array | int,
    counts: Int32Array,
    factors: Int32Array,
    starts: Int32Array,
) -> Int32Array:
    """Place `counts` partitions of each topic from partition `first` on; `starts` are start indexes and shifts."""
    rows = _empty_rows(cluster, int(counts.sum()))
    calls = np.empty((counts.size, 5), dtype=np.int32)
    calls[:, 0], calls[:, 1], calls[:, 2], calls[:, 3:] = first, counts, factors, starts
    fill_classic(rows, calls, ring.positions, ring.rack_codes, ring.rack_count)
    return rows


# --- striped ---------------------------------------------------------------------------------------------------------


def _place_striped(cluster: SimulatedCluster, random: JavaRandom) -> Int32Array:
    """Creations and growths are calls of one kind: the controller asks anew for what is added."""
    topics = grown_topics(cluster)
    created, added = cluster.partition_counts, (cluster.grown_counts - cluster.partition_counts)[topics]
    calls = PlacementCalls(
        start_partitions=np.concatenate((np.zeros_like(created), created[topics])),
        partition_counts=np.concatenate((created, added)),
        replication_factors=np.concatenate((cluster.factors, cluster.factors[topics])),
    )
    stripes = Stripes.of(BrokerColumns.of(broker_views(cluster)), np.arange(cluster.broker_count, dtype=np.int32))
    placed = striped_topics(calls, stripes, random)
    rows = _empty_rows(cluster, len(placed))
    rows[:, : placed.shape[1]] = placed
    first_added = int(created.sum())
    return _interleaved(cluster, rows[:first_added], rows[first_added:])
