"""Place every topic of a simulated cluster: created in order, then grown in order, on one generator.

Each placer of a shape places the same topics, with a `java.util.Random` of its own seeded by
derive(fleet seed, cluster, stream, placer's name), as a broker's placer draws from one
generator all its life.

How a topic grows is the caller's business in Kafka, not the placer's. The classic placer's
caller starts at the place of the broker that leads partition 0, and draws nothing
(kafka.zk.AdminZkClient.addPartitions). Every other placer is asked again, for the partitions
from the present count on, as the KRaft controller does.

Where only some brokers have a rack, the classic placer ignores racks, as Kafka's callers do under
`RackAwareMode.Safe`; under `Enforced` it would refuse, and there would be nothing to look at.

The classic placer's topics are placed by one compiled loop (fleet/loops.py), the striped placer's
each by its compiled loop; a test holds both equal to calling the placers themselves. All other
placers are called through the ReplicaPlacer protocol.

Example: place_cluster(cluster, "classic", seed=42) is int32[partitions, widest factor], -1 pads.

Left out: topics that are deleted between creations.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Final

import attrs
import numpy as np

from broker.cluster import PAD, BrokerView, Int32Array, Int64Array
from broker.entropy import JavaRandom, derive
from broker.errors import UsageError
from broker.ids import BrokerId
from placement.broker_columns import BrokerColumns
from placement.classic import ClassicPlacer, ring_of
from placement.spec import PlacementSpec, ReplicaPlacer
from placement.striped import StripedPlacer, striped_positions
from spark_analysis.fleet.generate import NO_RACK, SimulatedCluster
from spark_analysis.fleet.loops import classic_rack_rows, classic_rows, java_draws

CLASSIC: Final = "classic"
STRIPED: Final = "striped"
KAFKAS: Final[dict[str, ReplicaPlacer]] = {CLASSIC: ClassicPlacer(), STRIPED: StripedPlacer()}
PLACER_GROUP: Final = "brokerside.placers"
_PLACER_STREAM: Final = 2


@functools.cache
def load_placer(name: str) -> ReplicaPlacer:
    """Return Kafka's classic or striped placer, or the policy of this name under the entry point `brokerside.placers`.

    Raises UsageError when there is none, or it is no placer.
    """
    if name in KAFKAS:
        return KAFKAS[name]
    found = {entry.name: entry for entry in entry_points(group=PLACER_GROUP)}
    if name not in found:
        raise UsageError(f"no placer is named {name!r}; installed are {', '.join(sorted({*found, *KAFKAS}))}")
    placer = found[name].load()()
    if not isinstance(placer, ReplicaPlacer):
        raise UsageError(f"placer {name!r} has no method `place`")
    return placer


def broker_views(cluster: SimulatedCluster) -> tuple[BrokerView, ...]:
    """Return the cluster's brokers, ascending."""
    racks = [None if code == NO_RACK else cluster.rack_names[code] for code in cluster.rack_index.tolist()]
    return tuple(
        BrokerView(id=BrokerId(number), rack=rack, fenced=fenced)
        for number, (rack, fenced) in enumerate(zip(racks, cluster.fenced.tolist(), strict=True))
    )


def topic_ends(cluster: SimulatedCluster) -> Int64Array:
    """Return the row after the last of each topic, int64[T]."""
    return np.cumsum(cluster.grown_counts, dtype=np.int64)


def placer_seed(cluster: SimulatedCluster, placer: str, *, seed: int) -> int:
    """Return the seed of the generator that `placer` draws from on this cluster of the fleet seeded by `seed`."""
    return derive(seed, cluster.number, _PLACER_STREAM, zlib.crc32(placer.encode("utf-8")))


def place_cluster(cluster: SimulatedCluster, placer: str, *, seed: int) -> Int32Array:
    """Return who holds what: int32[P, W], topics in order, each topic's partitions in order; -1 pads.

    `seed` is the fleet's. Raises UsageError for a placer that is not installed, and what it refuses.
    """
    ends = topic_ends(cluster)
    width = cluster.shape.topics.factor_max
    rows = np.full((int(ends[-1]) if ends.size else 0, width), PAD, dtype=np.int32)
    random = JavaRandom(placer_seed(cluster, placer, seed=seed))
    firsts = ends - cluster.grown_counts
    if placer == CLASSIC:
        _place_classic(cluster, rows, firsts, random)
        return rows
    brokers = broker_views(cluster)
    if placer == STRIPED:
        # Ids are positions, and the columns are made once for all topics.
        columns = BrokerColumns.of(brokers)
        _place_by_calls(cluster, rows, firsts, lambda spec: striped_positions(spec, columns, random))
    else:
        policy = load_placer(placer)
        _place_by_calls(cluster, rows, firsts, lambda spec: policy.place(spec, brokers, random))
    return rows


def _place_by_calls(
    cluster: SimulatedCluster, rows: Int32Array, firsts: Int64Array, place: Callable[[PlacementSpec], Int32Array]
) -> None:
    created, grown, factors = cluster.partition_counts, cluster.grown_counts, cluster.factors
    calls = [(topic, 0, count) for topic, count in enumerate(created.tolist())]
    calls += [(topic, int(created[topic]), int(grown[topic])) for topic in np.flatnonzero(grown > created).tolist()]
    for topic, start, end in calls:
        factor = int(factors[topic])
        spec = PlacementSpec(start_partition=start, partition_count=end - start, replication_factor=factor)
        rows[firsts[topic] + start : firsts[topic] + end, :factor] = place(spec)


@attrs.frozen(eq=False)
class _ClassicRing:
    """The ring that leaders go round, as positions; `racks` is None where racks are ignored."""

    positions: Int32Array
    racks: Int32Array | None
    rack_count: int


def _ring(cluster: SimulatedCluster) -> _ClassicRing:
    if (cluster.rack_index == NO_RACK).any():
        return _ClassicRing(np.arange(cluster.broker_count, dtype=np.int32), None, 0)
    ring = ring_of(BrokerColumns.of(broker_views(cluster)))
    return _ClassicRing(ring.positions, ring.racks, ring.rack_count)


def classic_draws(cluster: SimulatedCluster, random: JavaRandom) -> tuple[Int32Array, Int32Array]:
    """Return the start index and the first shift of each topic's creation, int32[T] each, as Kafka draws them."""
    drawn = np.empty(2 * cluster.topic_count, dtype=np.int32)
    random.state = int(java_draws(random.state, np.full(drawn.size, cluster.broker_count, dtype=np.int32), drawn))
    return np.ascontiguousarray(drawn[0::2]), np.ascontiguousarray(drawn[1::2])


def _place_classic(cluster: SimulatedCluster, rows: Int32Array, firsts: Int64Array, random: JavaRandom) -> None:
    ring = _ring(cluster)
    starts, shifts = classic_draws(cluster, random)
    created = cluster.partition_counts
    _run_classic(ring, rows, firsts, np.zeros_like(created), created, cluster.factors, starts, shifts)
    topics = np.flatnonzero(cluster.grown_counts > created)
    if topics.size:
        # Broker ids are their places by ascending id, so the first replica of partition 0 is the start index.
        starts = np.ascontiguousarray(rows[firsts[topics], 0])
        added = cluster.grown_counts[topics] - created[topics]
        first_added = firsts[topics] + created[topics]
        _run_classic(ring, rows, first_added, created[topics], added, cluster.factors[topics], starts, starts)


def _run_classic(ring: _ClassicRing, rows: Int32Array, firsts: Int64Array, *calls: Int32Array) -> None:
    """Place one batch of calls: start partitions, counts, factors, starts, shifts, int32[calls] each."""
    if ring.racks is None:
        classic_rows(rows, len(ring.positions), firsts, *calls)
    else:
        classic_rack_rows(rows, ring.positions, ring.racks, ring.rack_count, firsts, *calls)
