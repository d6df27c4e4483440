"""Assign partitions as the server's UniformAssignor: sizes differ by one at most, and few partitions move.

Goals, most important first: balance; stickiness.

How: two algorithms; which one is due depends on whether all members subscribe to the same topics
(`placement.consumer.uniform.homogeneous`) or not (`placement.consumer.uniform.heterogeneous`; in 3.9
`placement.consumer.uniform.greedy`). What is listed twice
counts once, and the order of lists does not matter: the coordinator keeps subscriptions and assignments in hash maps.

Example:

    >>> from broker.entropy import SplitMix64
    >>> from placement.consumer.group import Member, Topic
    >>> members = [Member(id="a", topics=("t",)), Member(id="b", topics=("t",))]
    >>> group = Group.of(members, [Topic(name="t", partition_count=5)])
    >>> assignment = UniformAssignor().assign(group, SplitMix64(0))
    >>> [one.partition for one in assignment.of("a")], [one.partition for one in assignment.of("b")]
    ([0, 1], [2, 3, 4])

Left out: racks, which Kafka's does not look at since 3.9; releases before.

Source: org.apache.kafka.coordinator.group.assignor.UniformAssignor, 3.9 to 4.3, which are alike since 4.0; KIP-848.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.entropy import RandomSource
from broker.errors import UsageError
from broker.releases import NEWEST, Release
from placement.consumer.assignment import GroupAssignment
from placement.consumer.group import Group
from placement.consumer.ragged import Ragged
from placement.consumer.subscribers import same_sets
from placement.consumer.topic_ids import topic_ids
from placement.consumer.uniform.greedy import assign_greedily
from placement.consumer.uniform.heterogeneous import assign_heterogeneous
from placement.consumer.uniform.heterogeneous_kernel import assign_sound
from placement.consumer.uniform.holdings import topic_order, walked
from placement.consumer.uniform.homogeneous import assign_homogeneous
from placement.consumer.uniform.homogeneous_kernel import assign_sound_equal

OLDEST: Final = Release("3.9")
"""The first release whose uniform assignor is known here."""

BALANCED_SINCE: Final = Release("4.0")
"""The first release with today's algorithm for members of different subscriptions."""


@attrs.frozen
class UniformAssignor:
    """Assign as Kafka's `uniform` of one release does, 3.9 or newer; the default assignor of KIP-848 groups."""

    release: Release = attrs.field(default=NEWEST)

    @release.validator
    def _check(self, _: object, release: Release) -> None:
        if release < OLDEST:
            raise UsageError(f"the uniform assignor of Kafka {release} is not known; allowed are {OLDEST} to {NEWEST}")

    def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
        """Return each member's partitions; no members at all where nothing is subscribed, as Kafka does.

        Raises PartitionAssignorError when a subscribed topic does not exist, and what else Kafka throws.
        """
        if not len(group.subscribed.values):
            return GroupAssignment(group, Ragged.of([] for _ in group.members), silent=True)
        if same_sets(group):
            ids = topic_ids(group)
            topics = topic_order(group, ids)
            equal = assign_sound_equal(group, topics, ids, release=self.release)
            if equal is None:
                equal = assign_homogeneous(walked(group, topics, ids), topics, release=self.release)
            return GroupAssignment(group, equal)
        if self.release < BALANCED_SINCE:
            return GroupAssignment(group, assign_greedily(group))
        rows = assign_sound(group)
        return GroupAssignment(group, assign_heterogeneous(group) if rows is None else rows)
