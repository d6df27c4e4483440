"""Define the interface that a consumer group's coordinator needs of an assignor; assignors are passed in by the caller.

Source: org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor, 4.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from broker.group.members import InstanceId, MemberId
from broker.ids import TopicPartition


@attrs.frozen(kw_only=True)
class Subscriber:
    """One member as an assignor sees it: its subscription, its rack, and its share of the last target assignment."""

    member_id: MemberId
    instance_id: InstanceId | None
    rack: str | None
    subscribed_topics: frozenset[str]
    target: frozenset[TopicPartition]


class ServerAssignor(Protocol):
    """An assignor of the KIP-848 group protocol: it computes the target assignment of a group."""

    @property
    def name(self) -> str:
        """Return the name that members select the assignor by; Kafka's are uniform and range."""
        ...

    def assign(
        self, members: Sequence[Subscriber], partition_counts: Mapping[str, int]
    ) -> Mapping[MemberId, frozenset[TopicPartition]]:
        """Return the partitions that each member should own; `partition_counts` lists the existing topics by name."""
        ...
