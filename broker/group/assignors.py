"""Define the interface of server-side assignors; the caller passes them to the group coordinator.

Source: org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor, 4.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import attrs

from broker.group.members import InstanceId, MemberId
from broker.ids import TopicPartition


class ListedPartitions(frozenset[TopicPartition]):
    """Hold partitions of a target assignment, and the order in which its record lists them (`listed`)."""

    listed: tuple[TopicPartition, ...]

    def __new__(cls, listed: Iterable[TopicPartition]) -> ListedPartitions:
        """Return the partitions in their order."""
        listed = tuple(listed)
        partitions = super().__new__(cls, listed)
        partitions.listed = listed
        return partitions


@attrs.frozen(kw_only=True)
class Subscriber:
    """Describe a member to an assignor: its subscription, its rack, and its part of the last target assignment.

    The last target is ListedPartitions where the order of its record is known: Kafka's uniform assignor starts from it.
    """

    member_id: MemberId
    instance_id: InstanceId | None
    rack: str | None
    subscribed_topics: frozenset[str]
    target: frozenset[TopicPartition]


class ServerAssignor(Protocol):
    """Compute the target assignment of a consumer group (KIP-848); interface of an assignor."""

    @property
    def name(self) -> str:
        """Return the name by which members select the assignor; Kafka's are uniform and range."""
        ...

    def assign(
        self, members: Sequence[Subscriber], partition_counts: Mapping[str, int]
    ) -> Mapping[MemberId, frozenset[TopicPartition]]:
        """Return the partitions that each member should own; `partition_counts` lists the existing topics by name."""
        ...
