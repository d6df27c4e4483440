"""What a consumer group's coordinator asks of an assignor; the assignors themselves are passed in.

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
    """A member as an assignor sees it: what it reads, where it is, and what the last target gave it."""

    member_id: MemberId
    instance_id: InstanceId | None
    rack: str | None
    subscribed_topics: frozenset[str]
    target: frozenset[TopicPartition]


class ServerAssignor(Protocol):
    """Computes the target of a group."""

    @property
    def name(self) -> str:
        """The name by which members ask for it: uniform or range in Kafka."""
        ...

    def assign(
        self, members: Sequence[Subscriber], partition_counts: Mapping[str, int]
    ) -> Mapping[MemberId, frozenset[TopicPartition]]:
        """Return what each member should own; `partition_counts` has the topics that exist, by name."""
        ...
