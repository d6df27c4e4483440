"""Short ways to write groups and answers in tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker.entropy import SplitMix64
from broker.ids import PartitionId, TopicPartition
from placement.consumer.assignment import ConsumerAssignor, GroupAssignment
from placement.consumer.group import Group, Member, Topic


def partitions(text: str) -> tuple[TopicPartition, ...]:
    """Return the partitions that "t0-0 t1-2" names."""
    pairs = [one.rsplit("-", 1) for one in text.split()]
    return tuple(TopicPartition(topic, PartitionId(int(number))) for topic, number in pairs)


def group(
    topics: Mapping[str, int],
    subscriptions: Mapping[str, str],
    held: Mapping[str, str] | None = None,
    generations: Mapping[str, int] | None = None,
) -> Group:
    """Return a group: partitions of each topic, topics of each member, and what members held, generation 1."""
    held, generations = held or {}, generations or {}
    members = [
        Member(
            id=name,
            topics=tuple(subscribed.split()),
            owned=partitions(held.get(name, "")),
            generation=generations.get(name, 1),
        )
        for name, subscribed in subscriptions.items()
    ]
    return Group.of(members, [Topic(name=name, partition_count=count) for name, count in topics.items()])


def answer(assignor: ConsumerAssignor, asked: Group) -> dict[str, str]:
    """Return each member's partitions in the order answered, written as `partitions` reads them."""
    assigned = assignor.assign(asked, SplitMix64(0))
    return {member: " ".join(map(str, assigned.of(member))) for member in asked.members}


def rows(assigned: GroupAssignment) -> list[list[int]]:
    """Return the rows of ids."""
    return list(assigned.rows.lists())


def kept(before: Mapping[str, str], after: Mapping[str, str]) -> int:
    """Return how many partitions stay with their member."""
    return sum(len(set(held.split()) & set(after.get(member, "").split())) for member, held in before.items())


def sizes(after: Mapping[str, str]) -> Sequence[int]:
    """Return how many partitions each member has."""
    return [len(held.split()) for held in after.values()]
