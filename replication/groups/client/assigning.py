"""Run assignors where Kafka runs them: at the leader of a classic group, and in the coordinator of a consumer group.

Constraints: the leader of a classic group knows the members' subscriptions, in the coordinator's order, and the topics
of its own metadata. Sticky assignors read former partitions from the user data, cooperative ones from the subscription.

Source: ConsumerCoordinator.onLeaderElected, StickyAssignor.memberData, CooperativeStickyAssignor.memberData and
TargetAssignmentBuilder, 4.3.1.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from broker.entropy import RandomSource
from broker.group.assignors import ListedPartitions, Subscriber
from broker.group.classic import JoinedMember
from broker.group.members import MemberId
from broker.group.protocol import (
    NO_GENERATION,
    Subscription,
    read_sticky_memory,
    read_subscription,
    sticky_memory,
    write_assignment,
)
from broker.ids import TopicPartition
from placement.consumer.assignment import ConsumerAssignor
from placement.consumer.group import Group, Member, RecordedPartitions, Topic
from placement.consumer.registry import KAFKAS, load_assignor

COOPERATIVE: Final = frozenset({"cooperative-sticky"})
"""Assignors whose members keep what they hold while they join (KIP-429)."""
_WITH_MEMORY: Final = frozenset({"sticky"})
SERVER_NAMES: Final[Mapping[str, str]] = {"uniform": "uniform", "server-range": "range"}
"""Assignors that the coordinator runs, and the names that Kafka's server has for them."""


@attrs.define
class ClientAssignor:
    """Run one assignor of one consumer, and remember the consumer's assignment for it."""

    name: str
    assignor: ConsumerAssignor
    entropy: RandomSource
    held: frozenset[TopicPartition] = frozenset()
    generation: int = NO_GENERATION

    @classmethod
    def load(cls, name: str, entropy: RandomSource) -> ClientAssignor:
        """Return a new assignor of this name; raise UsageError for a name that is not installed."""
        return cls(name, load_assignor(name), entropy)

    def user_data(self) -> bytes:
        """Return the subscription's user data: a sticky assignor's former assignment, empty for others."""
        if self.name in _WITH_MEMORY and self.generation != NO_GENERATION:
            return sticky_memory(self.held, self.generation)
        return b""

    def on_assignment(self, partitions: frozenset[TopicPartition], generation: int) -> None:
        """Record the partitions that the consumer was assigned in a generation."""
        self.held, self.generation = partitions, generation

    def assign(
        self, members: Sequence[JoinedMember], partition_counts: Mapping[str, int]
    ) -> tuple[tuple[MemberId, bytes], ...]:
        """Return each member's assignment as bytes; raise RefusedError where Kafka's assignor throws."""
        asked = [self._member(member, read_subscription(member.metadata)) for member in members]
        group = Group.of(asked, _topics(partition_counts))
        assignment = self.assignor.assign(group, self.entropy)
        rows = zip(members, assignment.rows.lists(), strict=True)
        return tuple((member.member_id, write_assignment(assignment.named(row))) for member, row in rows)

    def _member(self, member: JoinedMember, subscription: Subscription) -> Member:
        owned, generation = subscription.owned, subscription.generation
        if self.name in _WITH_MEMORY:
            owned, generation = read_sticky_memory(subscription.user_data)
        return Member(
            id=member.member_id,
            topics=subscription.topics,
            instance_id=member.instance_id,
            rack=subscription.rack,
            owned=owned,
            generation=generation,
            subscription_generation=subscription.generation,
        )


@attrs.define
class ServerSideAssignor:
    """Run an assignor of `placement.consumer` under the name that Kafka's server uses."""

    name: str
    assignor: ConsumerAssignor
    entropy: RandomSource

    @classmethod
    def load(cls, name: str, entropy: RandomSource) -> ServerSideAssignor:
        """Return a new assignor; `name` is the registry's. Raise UsageError for a name that is not installed."""
        return cls(SERVER_NAMES.get(name, name), load_assignor(name), entropy)

    def assign(
        self, members: Sequence[Subscriber], partition_counts: Mapping[str, int]
    ) -> Mapping[MemberId, frozenset[TopicPartition]]:
        """Return the target assignment of each member.

        A subscribed topic that does not exist is left out, as Kafka's coordinator leaves it out.
        """
        asked = [
            Member(
                id=member.member_id,
                topics=tuple(sorted(topic for topic in member.subscribed_topics if topic in partition_counts)),
                instance_id=member.instance_id,
                rack=member.rack,
                owned=_owned(member.target),
            )
            for member in members
        ]
        assignment = self.assignor.assign(Group.of(asked, _topics(partition_counts)), self.entropy)
        return {member.member_id: ListedPartitions(assignment.of(member.member_id)) for member in members}


def _owned(target: frozenset[TopicPartition]) -> tuple[TopicPartition, ...]:
    """Return a member's part of the last target, in the order of its record where that is known."""
    return RecordedPartitions(target.listed) if isinstance(target, ListedPartitions) else tuple(sorted(target))


def _topics(partition_counts: Mapping[str, int]) -> list[Topic]:
    return [Topic(name=name, partition_count=count) for name, count in sorted(partition_counts.items())]


class GroupProtocol(enum.Enum):
    """Name the protocols of a group; the value is used in options and files."""

    EAGER = "eager"
    """Classic: every member gives up all its partitions before it joins again."""

    COOPERATIVE = "cooperative"
    """Classic: a member keeps the partitions that no other member gets (KIP-429)."""

    CONSUMER = "consumer"
    """The coordinator assigns, and each member follows at its own pace (KIP-848)."""


DEFAULT_ASSIGNORS: Final[Mapping[GroupProtocol, str]] = {
    GroupProtocol.EAGER: "range",
    GroupProtocol.COOPERATIVE: "cooperative-sticky",
    GroupProtocol.CONSUMER: "uniform",
}


def takes(protocol: GroupProtocol, assignor: str) -> bool:
    """Return whether a group of this protocol can use the assignor of this name."""
    match protocol:
        case GroupProtocol.CONSUMER:
            return assignor in SERVER_NAMES or assignor not in KAFKAS
        case GroupProtocol.COOPERATIVE:
            return assignor in COOPERATIVE
        case GroupProtocol.EAGER:
            return assignor not in COOPERATIVE and assignor not in SERVER_NAMES
