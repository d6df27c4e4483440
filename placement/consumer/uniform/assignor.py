"""Assign partitions as the server's UniformAssignor: sizes differ by one at most, and few partitions move.

Example:

    >>> from broker.entropy import SplitMix64
    >>> from placement.consumer.group import Member, Topic
    >>> members = [Member(id="a", topics=("t",)), Member(id="b", topics=("t",))]
    >>> group = Group.of(members, [Topic(name="t", partition_count=5)])
    >>> assignment = UniformAssignor().assign(group, SplitMix64(0))
    >>> [one.partition for one in assignment.of("a")], [one.partition for one in assignment.of("b")]
    ([0, 1], [2, 3, 4])

Source: org.apache.kafka.coordinator.group.assignor.UniformAssignor, 4.0 to 4.4; KIP-848.
"""

from __future__ import annotations

import attrs

from broker.entropy import RandomSource
from placement.consumer.assignment import GroupAssignment
from placement.consumer.group import Group
from placement.consumer.ragged import Ragged
from placement.consumer.subscribers import same_sets
from placement.consumer.topic_ids import topic_ids
from placement.consumer.uniform.heterogeneous import assign_heterogeneous
from placement.consumer.uniform.holdings import topic_order
from placement.consumer.uniform.homogeneous import assign_homogeneous


@attrs.frozen
class UniformAssignor:
    """Assign as Kafka's `uniform` does since 4.0; the default assignor of KIP-848 groups."""

    def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
        """Return each member's partitions; no members at all where nothing is subscribed, as Kafka does.

        Raises PartitionAssignorError when a subscribed topic does not exist, and what else Kafka throws.
        """
        if not len(group.subscribed.values):
            return GroupAssignment(group, Ragged.of([] for _ in group.members), silent=True)
        if same_sets(group):
            ids = topic_ids(group)
            return GroupAssignment(group, assign_homogeneous(group, topic_order(group, ids), ids))
        return GroupAssignment(group, assign_heterogeneous(group))
