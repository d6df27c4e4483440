"""Record the moves of one balancing run, and find which partition to move back instead (PartitionMovements).

When a partition of a topic is to go from one member to another, and some partition of the same topic went the other way
before, then that one goes back instead: two moves cancel, and one partition more stays. Of several Kafka takes the
first that Java's hash set yields. Partitions of different topics may have the same hash, such as t11-1 and t21-0, but
they never share such a set.

Source: AbstractStickyAssignor.PartitionMovements, 4.3.1.
"""

from __future__ import annotations

import attrs

from broker.java.hash_table import HashTable
from broker.java.string_hash import java_string_hash
from broker.java.tree_bin import TreeKey
from placement.consumer.group import Group

_MASK_32 = (1 << 32) - 1


@attrs.define(eq=False)
class Movements:
    """Record all moves so far: the origin of each moved partition, and the sets by (topic, from, to)."""

    group: Group
    source_of: dict[int, int] = attrs.field(factory=dict)
    target_of: dict[int, int] = attrs.field(factory=dict)
    moved: dict[tuple[int, int, int], HashTable] = attrs.field(factory=dict)
    topic_hashes: dict[int, int] = attrs.field(factory=dict)
    partition_of: dict[tuple[int, TreeKey], int] = attrs.field(factory=dict)

    def instead_of(self, partition: int, source: int, target: int) -> int:
        """Return the partition to move in place of `partition` (Kafka's getTheActualPartitionToBeMoved)."""
        topic = int(self.group.partition_topics[partition])
        # A partition that has moved already counts as moving from its first owner (partitionMovements keep the origin).
        opposite = self.moved.get((topic, target, self.source_of.get(partition, source)))
        # Kafka takes the first of a HashSet: any would undo a move, but which one is part of the answer.
        return partition if opposite is None else self.partition_of[topic, opposite.first()]

    def record(self, partition: int, source: int, target: int) -> None:
        """Record that `partition` moves from `source` to `target`."""
        topic = int(self.group.partition_topics[partition])
        if partition in self.source_of:
            # A second move of one partition replaces the first: origin to the new target, and none at all if it is back
            # home.
            first_source = self.source_of.pop(partition)
            pair = (topic, first_source, self.target_of.pop(partition))
            self.moved[pair].remove(self._key(partition))
            if not self.moved[pair]:
                del self.moved[pair]
            source = first_source
            if source == target:
                return
        self.source_of[partition], self.target_of[partition] = source, target
        pair = (topic, source, target)
        if pair not in self.moved:
            self.moved[pair] = HashTable()
        key = self._key(partition)
        self.partition_of[topic, key] = partition
        self.moved[pair].add(key)

    def _key(self, partition: int) -> TreeKey:
        """Return `TopicPartition.hashCode()` spread as HashMap does: distinct within a topic, but not among topics."""
        topic = int(self.group.partition_topics[partition])
        if topic not in self.topic_hashes:
            self.topic_hashes[topic] = java_string_hash(self.group.topics[topic])
        code = (31 * (31 + int(self.group.partition_numbers[partition])) + self.topic_hashes[topic]) & _MASK_32
        spread = code ^ code >> 16
        return (spread - (1 << 32) if spread >> 31 else spread, True, b"")
