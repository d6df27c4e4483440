"""Turn members and their subscriptions into a group that Kafka's assignors assign, with racks; or draw such groups.

A member's zone is its rack (`client.rack`). All racks that no broker has share one number, after those of the cluster's
zones: every fetch from there crosses. Without `is_held_known` assignors see members that hold nothing.

Source: KIP-881 for racks in assignments; placement/consumer/group.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.entropy import SplitMix64, derive
from broker.errors import UsageError
from broker.releases import NEWEST, Release
from placement.consumer.group import Group, Member, Topic
from placement.consumer.racks import ReplicaRacks
from placement.consumer.registry import load_assignor
from placement.traffic.zones import NO_ZONE, ZonedPartitions

NOW = "now"
"""The name of the assignment that members hold."""
HELD_NOT_KNOWN: Final = "what the members hold is not known: a member has no held"


@attrs.frozen(eq=False, kw_only=True)
class Consumers:
    """Hold one group on its cluster: `rows` int64[G] are the rows of its partitions, `zones` int8[M] of its members.

    `is_held_known` says whether it is known what members hold.
    """

    name: str
    group: Group
    rows: Int64Array
    zones: NDArray[np.int8]
    is_held_known: bool = True

    @classmethod
    def of(
        cls, name: str, members: Sequence[Member], partitions: ZonedPartitions, *, is_held_known: bool = True
    ) -> Consumers:
        """Return the group; raise UsageError for a member listed twice."""
        named = sorted({topic for member in members for topic in member.topics})
        rows = {topic: partitions.rows_of(topic) for topic in named}
        topics = [Topic(name=topic, partition_count=len(found)) for topic, found in rows.items() if len(found)]
        group = Group.of(members, topics)
        held = [np.arange(one.start, one.stop) for one in (rows.get(topic, range(0)) for topic in group.topics)]
        of_group = np.concatenate([np.zeros(0, np.int64), *held])
        number = {zone: place for place, zone in enumerate(partitions.zones)}
        return cls(
            name=name,
            group=attrs.evolve(group, replica_racks=_racks(partitions, of_group)),
            rows=of_group,
            zones=np.array(
                [number.get(member.rack, len(number)) if member.rack else NO_ZONE for member in members], np.int8
            ),
            is_held_known=is_held_known,
        )

    @property
    def is_zoned(self) -> bool:
        """Return whether every member has a zone."""
        return bool((self.zones != NO_ZONE).all())

    def assigned(self, assignor: str, *, release: Release = NEWEST) -> Int32Array:
        """Return int32[G]: the member that gets each partition, -1 for none.

        Raises UsageError for an unknown assignor, and RefusedError where Kafka's would throw.
        """
        made = load_assignor(assignor, release=release).assign(self.group, SplitMix64(0))
        return made.owners[: len(self.rows)]

    @property
    def held(self) -> Int32Array:
        """Return int32[G]: the member that holds each partition now, the last of several, -1 for none.

        Raises UsageError if that is not known.
        """
        if not self.is_held_known:
            raise UsageError(HELD_NOT_KNOWN)
        owners = np.full(len(self.rows), -1, np.int32)
        claims = self.group.owned
        exists = claims.values < len(self.rows)
        owners[claims.values[exists]] = claims.rows[exists]
        return owners

    def moved_count(self, owners: Int32Array) -> int | None:
        """Return how many partitions move from the member that holds them now; None if that is not known."""
        return int(((self.held >= 0) & (self.held != owners)).sum()) if self.is_held_known else None

    def reader_zones(self, owners: Int32Array) -> NDArray[np.int8]:
        """Return int8[G]: the zone of each partition's owner, NO_ZONE without an owner or its zone."""
        found: NDArray[np.int8] = np.concatenate([self.zones, np.array([NO_ZONE], np.int8)])[owners]
        return found


def _racks(partitions: ZonedPartitions, rows: Int64Array) -> ReplicaRacks:
    if not partitions.zones:
        return ReplicaRacks.unknown(len(rows))
    distinct, codes = np.unique(partitions.bits[rows], return_inverse=True)
    sets = [_names(partitions.zones, int(bits)) for bits in distinct.tolist()]
    # As ReplicaRacks.of makes them: the empty set comes first, whether or not it is used.
    return ReplicaRacks((frozenset(), *sets), (codes.ravel() + 1).astype(np.int32))


def _names(zones: Sequence[str], bits: int) -> frozenset[str]:
    return frozenset(zone for place, zone in enumerate(zones) if bits >> place & 1)


GROUP_COUNT_MAX = 1_000_000
MEMBER_COUNT_MAX = 10_000


@attrs.frozen
class GroupPlan:
    """Say how many groups there are, and how many members and topics each has."""

    group_count: int
    member_count: int
    topic_count: int

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.group_count <= GROUP_COUNT_MAX:
            raise UsageError(f"{self.group_count} groups; allowed are 0 to {GROUP_COUNT_MAX}")
        if not 1 <= self.member_count <= MEMBER_COUNT_MAX or self.topic_count < 1:
            raise UsageError(
                f"{self.member_count} members on {self.topic_count} topics; allowed are 1 to {MEMBER_COUNT_MAX} "
                "members and 1 topic or more"
            )


def sample_groups(
    partitions: ZonedPartitions, plan: GroupPlan, *, seed: int
) -> Iterator[tuple[str, tuple[Member, ...]]]:
    """Yield the name and the members of each group; none for a cluster without topics.

    Members stand in the zones in turn, beginning with a drawn one; all subscribe to all of the group's drawn topics.
    """
    topics = [topic for topic in partitions.topics if len(partitions.rows_of(topic))]
    if not topics:
        return
    zones = partitions.zones or (None,)
    for number in range(plan.group_count):
        random = SplitMix64(derive(seed, number))
        places = list(range(len(topics)))
        wanted = min(plan.topic_count, len(places))
        for place in range(wanted):  # The first steps of a shuffle.
            other = place + random.next_int_bound(len(places) - place)
            places[place], places[other] = places[other], places[place]
        named = tuple(sorted(topics[place] for place in places[:wanted]))
        first = random.next_int_bound(len(zones))
        name = f"group-{number:04d}"
        yield (
            name,
            tuple(
                Member(id=f"{name}-{one:03d}", topics=named, rack=zones[(first + one) % len(zones)])
                for one in range(plan.member_count)
            ),
        )
