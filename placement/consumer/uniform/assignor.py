"""Assign partitions as the server's UniformAssignor: sizes differ by one at most, and few partitions move.

Goals, most important first: balance; stickiness.

How: two algorithms; which one is due depends on whether all members subscribe to the same topics
(`placement.consumer.uniform.homogeneous`) or not (`placement.consumer.uniform.heterogeneous`).

Example:

    >>> from broker.entropy import SplitMix64
    >>> from placement.consumer.group import Member, Topic
    >>> members = [Member(id="a", topics=("t",)), Member(id="b", topics=("t",))]
    >>> group = Group.of(members, [Topic(name="t", partition_count=5)])
    >>> assignment = UniformAssignor().assign(group, SplitMix64(0))
    >>> [one.partition for one in assignment.of("a")], [one.partition for one in assignment.of("b")]
    ([0, 1, 2], [3, 4])

Left out: racks, which Kafka's has not looked at since 4.0.

Source: org.apache.kafka.coordinator.group.assignor.UniformAssignor, commit 1eb7644 (2024-10); KIP-848.
"""

from __future__ import annotations

import attrs

from broker.entropy import RandomSource
from placement.consumer.assignment import GroupAssignment
from placement.consumer.group import Group
from placement.consumer.ragged import Ragged
from placement.consumer.subscribers import same_sets
from placement.consumer.uniform.heterogeneous import assign_heterogeneous
from placement.consumer.uniform.homogeneous import assign_homogeneous


@attrs.frozen
class UniformAssignor:
    """Assign as Kafka's `uniform` does, the default assignor of KIP-848 groups; `corrected` as released since 4.0."""

    corrected: bool = False

    def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
        """Return each member's partitions; no members at all where nothing is subscribed, as Kafka does.

        Raises PartitionAssignorError when a subscribed topic does not exist, and what else Kafka throws.
        """
        if not len(group.subscribed.values):
            return GroupAssignment(group, Ragged.of([] for _ in group.members), silent=True)
        if same_sets(group):
            return GroupAssignment(group, assign_homogeneous(group, corrected=self.corrected))
        return GroupAssignment(group, assign_heterogeneous(group))
