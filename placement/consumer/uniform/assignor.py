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

from collections.abc import Sequence
from functools import cached_property

import attrs

from broker.entropy import RandomSource
from broker.ids import PartitionId, TopicPartition
from broker.java.tree_bin import TreeKey
from placement.consumer.assignment import GroupAssignment
from placement.consumer.group import Group, RecordedPartitions
from placement.consumer.ragged import Ragged
from placement.consumer.subscribers import same_sets
from placement.consumer.topic_ids import topic_ids
from placement.consumer.uniform.heterogeneous import assign_heterogeneous
from placement.consumer.uniform.holdings import topic_keys, topic_order, topic_ranks
from placement.consumer.uniform.homogeneous import assign_homogeneous
from placement.consumer.uniform.records import listed_record, next_record


@attrs.frozen(eq=False)
class UniformAssignment(GroupAssignment):
    """Hold an assignment, and the order in which members gained partitions: as in their rows, or by topic's `ranks`."""

    ranks: Sequence[int] = attrs.field(kw_only=True)
    gained_by_rank: bool = attrs.field(kw_only=True)

    def of(self, member: str) -> RecordedPartitions:
        """Return one member's partitions in the order of its record, from which Kafka's next assignment starts."""
        group, place = self.group, self.group.members.index(member)
        begin, end = group.owned_topics.starts[place : place + 2].tolist()
        claims = zip(
            group.owned_topics.values[begin:end].tolist(), group.owned_numbers[begin:end].tolist(), strict=True
        )
        row = self.rows.row(place)
        before, keys = list(dict.fromkeys(claims)), self._keys
        if place not in group.recorded:
            before = listed_record(before, self.ranks)
        now = zip(group.partition_topics[row].tolist(), group.partition_numbers[row].tolist(), strict=True)
        left = dict.fromkeys(before)
        gained = [one for one in now if left.pop(one, one) is not None]
        if self.gained_by_rank:
            gained.sort(key=lambda one: self.ranks[one[0]])
        record = next_record(before, gained, left, keys) if left or gained else before
        return RecordedPartitions(TopicPartition(group.topics[topic], PartitionId(number)) for topic, number in record)

    @cached_property
    def _keys(self) -> list[TreeKey]:
        return topic_keys(topic_ids(self.group))


@attrs.frozen
class UniformAssignor:
    """Assign as Kafka's `uniform` does since 4.0; the default assignor of KIP-848 groups."""

    def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
        """Return each member's partitions; no members at all where nothing is subscribed, as Kafka does.

        Raises PartitionAssignorError when a subscribed topic does not exist, and what else Kafka throws.
        """
        if not len(group.subscribed.values):
            return GroupAssignment(group, Ragged.of([] for _ in group.members), silent=True)
        ids = topic_ids(group)
        is_equal = same_sets(group)
        if is_equal:
            topics = topic_order(group, ids)
            rows = assign_homogeneous(group, topics, ids)
        else:
            rows, topics = assign_heterogeneous(group, ids)
        return UniformAssignment(group, rows, ranks=topic_ranks(group, topics).tolist(), gained_by_rank=not is_equal)
