"""Draw consumer groups for a cluster that has none, the same for the same seed.

What it decides: each group has as many members and topics as asked for (at most the topics that there are). Members
stand in the zones in turn, beginning with a zone that is drawn; topics are drawn without replacement, and all members
subscribe to all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from broker.entropy import SplitMix64, derive
from broker.errors import UsageError
from placement.consumer.group import Member
from placement.traffic.zones import ZonedPartitions

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
    """Yield the name and the members of each group; none for a cluster without topics."""
    topics = [topic for topic in partitions.topics if len(partitions.rows_of(topic))]
    if not topics:
        return
    for number in range(plan.group_count):
        random = SplitMix64(derive(seed, number))
        places = list(range(len(topics)))
        wanted = min(plan.topic_count, len(places))
        for place in range(wanted):  # The first steps of a shuffle.
            other = place + random.next_int_bound(len(places) - place)
            places[place], places[other] = places[other], places[place]
        named = tuple(sorted(topics[place] for place in places[:wanted]))
        first = random.next_int_bound(max(len(partitions.zones), 1))
        name = f"group-{number:04d}"
        yield (
            name,
            tuple(
                Member(id=f"{name}-{one:03d}", topics=named, rack=_zone(partitions, first + one))
                for one in range(plan.member_count)
            ),
        )


def _zone(partitions: ZonedPartitions, place: int) -> str | None:
    return partitions.zones[place % len(partitions.zones)] if partitions.zones else None
