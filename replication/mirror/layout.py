"""Map topics and partitions to the partition numbers of a simulated cluster.

Constraints: a number belongs to one partition for good; topics only grow.

Example:

>>> from replication.mirror.layout import TopicLayout
>>> layout = TopicLayout((("orders", 2),), ("syncs",), create=print)
>>> layout.number(TopicPartition("orders", PartitionId(1))), layout.internal("syncs")
(1, 2)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from broker.ids import PartitionId, TopicPartition


class TopicLayout:
    """Hold the topics of one cluster; `create` creates a partition of a number in the cluster."""

    def __init__(
        self, topics: Sequence[tuple[str, int]], internal: Sequence[str], create: Callable[[int], None]
    ) -> None:
        self._numbers: dict[TopicPartition, int] = {}
        self._internal: dict[str, int] = {}
        self._create = create
        for topic, count in topics:
            self._grow(topic, count)
        first = len(self._numbers)
        self._internal = {name: first + place for place, name in enumerate(internal)}

    def counts(self) -> dict[str, int]:
        """Return the number of partitions of each topic, sorted by name, without internal ones."""
        counts: dict[str, int] = {}
        for partition in sorted(self._numbers):
            counts[partition.topic] = counts.get(partition.topic, 0) + 1
        return counts

    def partitions(self) -> tuple[TopicPartition, ...]:
        """Return all partitions except internal ones, sorted."""
        return tuple(sorted(self._numbers))

    def number(self, partition: TopicPartition) -> int:
        """Return the number of a partition."""
        return self._numbers[partition]

    def internal(self, name: str) -> int:
        """Return the number of an internal partition."""
        return self._internal[name]

    def make(self, topic: str, count: int) -> None:
        """Create a topic with `count` partitions, or raise an existing one to that many."""
        for number in self._grow(topic, count):
            self._create(number)

    def _grow(self, topic: str, count: int) -> list[int]:
        made = []
        for place in range(self.counts().get(topic, 0), count):
            number = len(self._numbers) + len(self._internal)
            self._numbers[TopicPartition(topic, PartitionId(place))] = number
            made.append(number)
        return made
