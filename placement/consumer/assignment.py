"""Define the protocol of an assignor, and hold its result: the partitions of each member, in Kafka's order.

A sound assignment gives a partition to one member only; Kafka's sticky assignors can break that on unsound claims, so
the result is rows, not one owner per partition. Source: Kafka's ConsumerPartitionAssignor and PartitionAssignor, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol, runtime_checkable

import attrs
import numpy as np

from broker.cluster import Int32Array
from broker.entropy import RandomSource
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
        """Return the owner of each partition, existing or claimed, int32; the last of several owners, or NOBODY."""
        owners = np.full(self.group.partition_count + self.group.nonexistent_count, NOBODY, np.int32)
        owners[self.rows.values] = self.rows.rows
        return owners


@runtime_checkable
class ConsumerAssignor(Protocol):
    """Define an assignment policy: a class without arguments, named under the entry point `brokerside.assignors`.

    Kafka's own never draw from `entropy`, and custom ones draw from nothing else. An assignor may remember what it saw,
    as Kafka's sticky ones do with the highest generation: one object serves one group leader's life.
    """

    def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
        """Return the partitions of each member; raise RefusedError where the policy has no answer."""
        ...
