"""Count the partitions and bytes of each flow that cross zones: produce, replication, consume.

A producer sends to the leader, each follower fetches from the leader, and a consumer fetches from the leader, or with
KIP-392 from an in-sync replica in its own zone. If one end has no zone, whether it crosses is unknown.

Source: KIP-392; RackAwareReplicaSelector (4.3.1). The price: 0.01 USD per GB in each direction, as AWS charges for
traffic between availability zones of one region.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import PAD, Int64Array
from broker.units import GIB
from placement.traffic.zones import NO_ZONE, ZonedPartitions

PRICE_PER_GIB: Final = 0.02
"""USD for a GiB that crosses zones: 0.01 out of one zone and 0.01 into the other."""

Float64Array = NDArray[np.float64]


@attrs.frozen(kw_only=True)
class Crossing:
    """Count the sends or fetches of one flow: in total, across zones, with an unknown zone, and in bytes.

    A count is of partitions, times followers or groups that fetch them. Bytes are None where sizes are not known.
    """

    count: float
    crossing_count: float
    unknown_count: float
    size_bytes: float | None
    crossing_bytes: float | None

    def plus(self, other: Crossing) -> Crossing:
        """Return the sum of both."""
        return Crossing(
            count=self.count + other.count,
            crossing_count=self.crossing_count + other.crossing_count,
            unknown_count=self.unknown_count + other.unknown_count,
            size_bytes=_sum(self.size_bytes, other.size_bytes),
            crossing_bytes=_sum(self.crossing_bytes, other.crossing_bytes),
        )

    @classmethod
    def of(
        cls, crosses: Float64Array, unknown: Float64Array, count: Float64Array, sizes: Int64Array | None
    ) -> Crossing:
        """Return the sums over partitions: `count` fetches of each, of which so many cross or are unknown."""
        return cls(
            count=float(count.sum()),
            crossing_count=float(crosses.sum()),
            unknown_count=float(unknown.sum()),
            size_bytes=None if sizes is None else float((count * sizes).sum()),
            crossing_bytes=None if sizes is None else float((crosses * sizes).sum()),
        )


NOTHING: Final = Crossing(count=0.0, crossing_count=0.0, unknown_count=0.0, size_bytes=0.0, crossing_bytes=0.0)


def cost_of(crossing_bytes: float | None, price_per_gib: float = PRICE_PER_GIB) -> float | None:
    """Return the price of so many bytes that cross zones."""
    return None if crossing_bytes is None else crossing_bytes / GIB * price_per_gib


def even_shares(zone_count: int) -> Float64Array:
    """Return float64[Z]: the share of a topic's bytes from each zone, if producers are spread evenly over zones."""
    return np.full(zone_count, 1.0 / max(zone_count, 1))


def produce(partitions: ZonedPartitions, shares: Float64Array) -> Crossing:
    """Return what producers send to leaders; `shares` float64[Z] of it come from each zone."""
    led = partitions.leaders >= 0
    known = led & (partitions.leader_zones != NO_ZONE)
    local = np.concatenate([shares, [0.0]])[partitions.leader_zones]
    crosses = np.where(known, 1.0 - local, 0.0)
    return Crossing.of(crosses, (led & ~known).astype(np.float64), led.astype(np.float64), partitions.sizes)


def replication(partitions: ZonedPartitions) -> Crossing:
    """Return what followers fetch from leaders."""
    leaders = partitions.leaders
    followers = (partitions.replicas != PAD) & (partitions.replicas != leaders[:, None]) & (leaders >= 0)[:, None]
    zones, of_leader = partitions.replica_zones, partitions.leader_zones[:, None]
    known = followers & (zones != NO_ZONE) & (of_leader != NO_ZONE)
    crosses = (known & (zones != of_leader)).sum(axis=1).astype(np.float64)
    unknown = (followers & ~known).sum(axis=1).astype(np.float64)
    return Crossing.of(crosses, unknown, followers.sum(axis=1).astype(np.float64), partitions.sizes)


def fetches_cross(
    reader_zones: NDArray[np.int8], leader_zones: NDArray[np.int8], readable: Int64Array | None
) -> NDArray[np.bool_]:
    """Return bool[P]: whether a fetch crosses zones; with `readable` the closest replica is fetched from, else the
    leader."""
    crosses: NDArray[np.bool_] = (reader_zones != NO_ZONE) & (leader_zones != NO_ZONE)
    if readable is None:
        crosses &= reader_zones != leader_zones
    else:
        crosses &= (readable >> np.maximum(reader_zones, 0).astype(np.int64)) & 1 == 0
    return crosses


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
