"""List the moves between a group's former and new assignment, each with the reason in one word.

The former assignment may name members that are gone, and topics that are.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence

import attrs

from broker.ids import TopicPartition
from placement.consumer.assignment import GroupAssignment


class MoveReason(enum.Enum):
    """Name the reasons why a partition's member differs from its former owner; the value is printed."""

    NEW = "nobody held it"
    LEFT = "its member left"
    UNSUBSCRIBED = "its member no longer subscribes to the topic"
    DISPUTED = "several members claimed it"
    CHOSEN = "the assignor took it from a member that could have kept it"
    WITHHELD = "its member must let go of it before another gets it"
    NO_READER = "no member subscribes to the topic"
    GONE = "the partition does not exist"


@attrs.frozen
class Move:
    """Describe one partition with its former and its new owner; None means nobody."""

    partition: TopicPartition
    before: str | None
    after: str | None
    why: MoveReason


def moves_of(assignment: GroupAssignment, held: Mapping[str, Sequence[TopicPartition]]) -> Iterator[Move]:
    """Yield the moves by topic and partition; `held` has the former partitions of present and past members."""
    group = assignment.group
    after: dict[TopicPartition, str] = {}
    for member, row in zip(group.members, assignment.rows.lists(), strict=True):
        after.update((partition, member) for partition in assignment.named(row))
    holders: dict[TopicPartition, list[str]] = {}
    for member, partitions in held.items():
        for partition in partitions:
            holders.setdefault(partition, []).append(member)
    subscriptions = {
        member: {group.topics[topic] for topic in topics}
        for member, topics in zip(group.members, group.subscribed.lists(), strict=True)
    }
    for partition in sorted({*after, *holders}):
        before, now = holders.get(partition, []), after.get(partition)
        if now not in before:
            why = _why(assignment, partition, before, now, subscriptions)
            yield Move(partition, before[0] if before else None, now, why)


def _why(
    assignment: GroupAssignment,
    partition: TopicPartition,
    before: Sequence[str],
    now: str | None,
    subscriptions: Mapping[str, set[str]],
) -> MoveReason:
    if now is None and not _exists(assignment, partition):
        return MoveReason.GONE
    if now is None and not any(partition.topic in topics for topics in subscriptions.values()):
        return MoveReason.NO_READER
    if not before:
        return MoveReason.NEW
    if len(before) > 1:
        return MoveReason.DISPUTED
    if before[0] not in subscriptions:
        return MoveReason.LEFT
    if partition.topic not in subscriptions[before[0]]:
        return MoveReason.UNSUBSCRIBED
    return MoveReason.WITHHELD if now is None else MoveReason.CHOSEN


def _exists(assignment: GroupAssignment, partition: TopicPartition) -> bool:
    group = assignment.group
    if partition.topic not in group.topics:
        return False
    return bool(partition.partition < group.partition_counts[group.topics.index(partition.topic)])
