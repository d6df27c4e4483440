"""Hold an assignor's result: the partitions of each member, in Kafka's order.

Constraints: there is a row for each member of the group, unless the assignor returned no members at all, as Kafka's
uniform assignor does when nothing is subscribed. A sound assignment gives a partition to one member only; Kafka's
sticky assignors can break that on unsound claims, so the result is rows, not one owner per partition.

Source: Kafka's ConsumerPartitionAssignor.GroupAssignment and group.api.assignor.GroupAssignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import attrs
import numpy as np

from broker.cluster import Int32Array
from broker.ids import PartitionId, TopicPartition
from placement.consumer.group import Group
from placement.consumer.ragged import Ragged, grouped

NOBODY = -1
"""The owner of a partition that no member has."""


@attrs.frozen(eq=False)
class GroupAssignment:
    """Hold partition ids by member of `group`, one row per member; `silent` when the assignor returned no members."""

    group: Group
    rows: Ragged
    silent: bool = False

    @classmethod
    def of_owners(cls, group: Group, owners: Int32Array) -> GroupAssignment:
        """Return the assignment of each partition to `owners` int32[P], each member's partitions in order of id."""
        return cls(group, grouped(owners, len(group.members)))

    def of(self, member: str) -> tuple[TopicPartition, ...]:
        """Return the partitions of one member."""
        return tuple(self.named(self.rows.row(self.group.members.index(member))))

    def named(self, partitions: Int32Array | Sequence[int]) -> list[TopicPartition]:
        """Return the topic and partition number of each id."""
        topics = self.group.partition_topics[partitions].tolist()
        numbers = self.group.partition_numbers[partitions].tolist()
        return [
            TopicPartition(self.group.topics[topic], PartitionId(number))
            for topic, number in zip(topics, numbers, strict=True)
        ]

    @cached_property
    def owners(self) -> Int32Array:
        """Return int32[partitions and phantoms]: the owner of each, the last of several owners, or NOBODY."""
        owners = np.full(self.group.partition_count + self.group.phantom_count, NOBODY, np.int32)
        owners[self.rows.values] = self.rows.rows
        return owners
