"""Count a group's cross-zone fetches with the current and other assignors, and the least possible.

A partition must be fetched across zones only if no subscriber of its topic stands in a zone from which it can be read.

Source: KIP-392, KIP-881; placement/consumer.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array
from broker.releases import NEWEST, Release
from broker.row_flags import count_each
from placement.traffic.consumers import NOW, Consumers
from placement.traffic.crossing import Crossing, fetches_cross
from placement.traffic.zones import NO_ZONE, ZonedPartitions


@attrs.frozen(eq=False, kw_only=True)
class GroupTraffic:
    """Hold one assignment of a group: its name (an assignor's, or `now`), fetches, sizes, and what moves to it."""

    assignor: str
    leader: Crossing
    closest: Crossing
    size_min: int
    size_max: int
    moved_count: int | None
    reader_zones: NDArray[np.int8]
    is_read: NDArray[np.bool_]


def group_traffic(
    partitions: ZonedPartitions, consumers: Consumers, assignor: str, *, release: Release = NEWEST
) -> GroupTraffic:
    """Return what the group fetches with this assignor; `now` is the assignment that its members hold.

    Raises UsageError for an unknown assignor and for `now` where it is not known what members hold, and RefusedError
    where Kafka's would throw.
    """
    owners = consumers.held if assignor == NOW else consumers.assigned(assignor, release=release)
    zones = consumers.reader_zones(owners)
    sizes = count_each(owners, len(consumers.zones))
    return GroupTraffic(
        assignor=assignor,
        leader=_fetches(partitions, consumers, owners, zones, closest=False),
        closest=_fetches(partitions, consumers, owners, zones, closest=True),
        size_min=int(sizes.min()) if len(sizes) else 0,
        size_max=int(sizes.max(initial=0)),
        moved_count=consumers.moved_count(owners),
        reader_zones=zones,
        is_read=owners >= 0,
    )


def _fetches(
    partitions: ZonedPartitions, consumers: Consumers, owners: Int32Array, zones: NDArray[np.int8], *, closest: bool
) -> Crossing:
    rows = consumers.rows
    leader_zones = partitions.leader_zones[rows]
    fetched = (owners >= 0) & (partitions.leaders[rows] >= 0)
    known = fetched & (zones != NO_ZONE) & (leader_zones != NO_ZONE)
    crosses = fetched & fetches_cross(zones, leader_zones, partitions.readable[rows] if closest else None)
    return Crossing.of(
        crosses.astype(np.float64),
        (fetched & ~known).astype(np.float64),
        fetched.astype(np.float64),
        None if partitions.sizes is None else partitions.sizes[rows],
    )


def least_of(partitions: ZonedPartitions, consumers: Consumers) -> tuple[int | None, int | None]:
    """Return the fewest partitions, and bytes, that any assignment fetches across zones from the closest replica.

    None where they are not known: with a member without a zone. Partitions without a leader, or whose leader has no
    zone, never count as crossing.
    """
    if not consumers.is_zoned or not len(consumers.zones):
        return None, None
    rows, group, named = consumers.rows, consumers.group, consumers.group.subscribed
    subscribers = np.zeros(len(group.topics), np.int64)
    np.bitwise_or.at(subscribers, named.values, np.int64(1) << consumers.zones[named.rows].astype(np.int64))
    crosses = (partitions.leaders[rows] >= 0) & (partitions.leader_zones[rows] != NO_ZONE)
    crosses &= partitions.readable[rows] & subscribers[group.partition_topics[: len(rows)]] == 0
    return int(crosses.sum()), None if partitions.sizes is None else int(partitions.sizes[rows][crosses].sum())


def least_fetched(partitions: ZonedPartitions, consumers: Consumers) -> Crossing:
    """Return a group's fetches with the fewest zone crossings; if unknown, zero crossings and all fetches unknown.

    That is a lower bound for every assignment.
    """
    rows, (least_count, least_bytes) = consumers.rows, least_of(partitions, consumers)
    fetched = partitions.leaders[rows] >= 0
    known = fetched & (partitions.leader_zones[rows] != NO_ZONE) & (least_count is not None)
    sizes = None if partitions.sizes is None else partitions.sizes[rows][fetched]
    return Crossing(
        count=float(fetched.sum()),
        crossing_count=float(least_count or 0),
        unknown_count=float((fetched & ~known).sum()),
        size_bytes=None if sizes is None else float(sizes.sum()),
        crossing_bytes=None if sizes is None else float(least_bytes or 0),
    )
