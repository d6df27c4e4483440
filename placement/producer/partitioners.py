"""Choose the partition of a record without a key: every partitioner of Kafka's producer up to now.

A partition without a leader is chosen only when no partition of the topic has one.

    >>> from broker.entropy import JavaRandom
    >>> topic = TopicPartitions.all_available(3)
    >>> partitioner = RoundRobinPartitioner()
    >>> [partitioner.partition(topic) for _ in range(5)]
    [0, 1, 2, 0, 1]
    >>> sticky = StickyPartitioner(JavaRandom(1))
    >>> len({sticky.partition(topic) for _ in range(5)})
    1

Source: RoundRobinPartitioner, DefaultPartitioner (2.3), StickyPartitionCache and BuiltInPartitioner,
org.apache.kafka.clients.producer, 4.0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import attrs

from broker.entropy import RandomSource
from broker.errors import UsageError
from broker.ids import PartitionId
from broker.units import SizeBytes
from placement.producer.keys import POSITIVE_MASK


@attrs.frozen
class TopicPartitions:
    """Hold a producer's metadata of one topic: its partitions, and those with a leader, in metadata's order."""

    partition_count: int
    available: tuple[PartitionId, ...]

    def __attrs_post_init__(self) -> None:
        if self.partition_count < 1:
            raise UsageError(f"a topic has {self.partition_count} partitions; at least 1 is needed to send to")
        for partition in self.available:
            if not 0 <= partition < self.partition_count:
                raise UsageError(f"partition {partition} is available, but there are only {self.partition_count}")

    @classmethod
    def all_available(cls, partition_count: int) -> TopicPartitions:
        """Return a topic of which every partition has a leader."""
        return cls(partition_count, tuple(PartitionId(partition) for partition in range(partition_count)))

    def pick(self, number: int) -> PartitionId:
        """Return the available partition at index `number`, modulo their count; of all if none is available."""
        if self.available:
            return self.available[number % len(self.available)]
        return PartitionId(number % self.partition_count)


@attrs.frozen
class QueueEnd:
    """Describe the last batch of a partition's queue, as the next record finds it.

    It `has_room` when the record fits in; it `is_full` when nothing more may be put in, or when there is none.
    """

    has_room: bool
    is_full: bool


class Partitioner(ABC):
    """Choose partitions for one topic; the producer notifies of appended records and new batches."""

    @abstractmethod
    def partition(self, topic: TopicPartitions) -> PartitionId:
        """Return the partition for the next record."""

    def reconsidered(self, topic: TopicPartitions, partition: PartitionId, queue: QueueEnd) -> PartitionId:
        """Return the record's final partition, given the last batch in the queue of `partition`."""
        return partition

    def on_appended(self, topic: TopicPartitions, size_bytes: SizeBytes, *, batch_full: bool) -> None:  # noqa: B027 - most policies need no notice.
        """Take note that the record took `size_bytes` of its batch, and whether the batch is now full."""

    def on_queues(  # noqa: B027 - as above.
        self, queue_sizes: Sequence[int] | None, partitions: Sequence[PartitionId], all_count: int
    ) -> None:
        """Take note of how many batches wait for each of `partitions`, of the topic's `all_count` partitions."""


@attrs.define
class RoundRobinPartitioner(Partitioner):
    """Choose the partitions in turn; Kafka's older default for keyless records started at a random count."""

    count: int = 0

    def partition(self, topic: TopicPartitions) -> PartitionId:
        """Return the partition at the counter, and increment it."""
        partition = topic.pick(self.count & POSITIVE_MASK)
        self.count += 1
        return partition


@attrs.define
class StickyPartitioner(Partitioner):
    """Choose one partition per batch (KIP-480)."""

    entropy: RandomSource
    current: PartitionId | None = None

    def partition(self, topic: TopicPartitions) -> PartitionId:
        """Return the current partition; draw one if there is none."""
        return self._switched(topic) if self.current is None else self.current

    def reconsidered(self, topic: TopicPartitions, partition: PartitionId, queue: QueueEnd) -> PartitionId:
        """Return another partition if the record would begin a new batch."""
        return partition if queue.has_room else self._switched(topic)

    def _switched(self, topic: TopicPartitions) -> PartitionId:
        if len(topic.available) == 1:
            self.current = topic.available[0]
            return self.current
        before = self.current
        drawn = topic.pick(_positive(self.entropy))
        while topic.available and drawn == before:
            drawn = topic.pick(_positive(self.entropy))
        self.current = drawn
        return drawn


@attrs.define
class AdaptivePartitioner(Partitioner):
    """Choose one partition for `batch_size_bytes` or more, then draw the next by queue length (KIP-794)."""

    entropy: RandomSource
    batch_size_bytes: SizeBytes = attrs.field()
    current: PartitionId | None = None
    appended_bytes: int = 0
    load: tuple[tuple[int, ...], tuple[PartitionId, ...]] | None = None

    @batch_size_bytes.validator
    def _check_batch_size(self, attribute: object, value: int) -> None:
        if value < 1:
            raise UsageError(f"batch.size is {value}; an adaptive partitioner needs at least 1")

    def partition(self, topic: TopicPartitions) -> PartitionId:
        """Return the current partition; draw one if there is none."""
        return self._switched(topic) if self.current is None else self.current

    def reconsidered(self, topic: TopicPartitions, partition: PartitionId, queue: QueueEnd) -> PartitionId:
        """Return the current partition, after the switch that waited for the last batch to be full."""
        if queue.is_full:
            self.on_appended(topic, SizeBytes(0), batch_full=True)
        return self.partition(topic)

    def on_appended(self, topic: TopicPartitions, size_bytes: SizeBytes, *, batch_full: bool) -> None:
        """Count the bytes, and draw another partition when enough were sent."""
        self.appended_bytes += size_bytes
        is_enough = self.appended_bytes >= self.batch_size_bytes and batch_full
        if is_enough or self.appended_bytes >= 2 * self.batch_size_bytes:
            self._switched(topic)

    def on_queues(self, queue_sizes: Sequence[int] | None, partitions: Sequence[PartitionId], all_count: int) -> None:
        """Set the probabilities of the next draw; uniform without sizes or if all queues are equally long."""
        self.load = None
        if queue_sizes is None or not partitions or all_count < 2:
            return
        if len(set(queue_sizes)) == 1 and len(partitions) == all_count:
            return
        longest = max(queue_sizes)
        self.load = (tuple(accumulate(longest + 1 - size for size in queue_sizes)), tuple(partitions))

    def _switched(self, topic: TopicPartitions) -> PartitionId:
        number = _positive(self.entropy)
        if self.load is None:
            self.current = topic.pick(number)
        else:
            sums, partitions = self.load
            self.current = partitions[bisect_right(sums, number % sums[-1])]
        self.appended_bytes = 0
        return self.current


def _positive(entropy: RandomSource) -> int:
    return entropy.next_int() & POSITIVE_MASK
