"""Map topics and groups to the cluster's numbered partitions.

Constraints: topics take the ordinary partitions in turn, all of them; the internal partitions after them are
`__consumer_offsets`. Nothing changes while a cluster runs.

Example:

    >>> from broker.ids import PartitionId
    >>> layout = Layout((("a", 2), ("b", 1)), 3)
    >>> layout.number_of(TopicPartition("b", PartitionId(0))), layout.of_group("my-group")
    (2, 3)

Source: Kafka's GroupCoordinatorService.partitionFor for the latter; the former is ours.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from broker.group.routing import offsets_partition
from broker.ids import TopicPartition


@attrs.frozen
class Layout:
    """Hold topics with partition counts, and the number of partitions of `__consumer_offsets`."""

    topics: tuple[tuple[str, int], ...]
    offsets_partition_count: int

    @property
    def first_internal(self) -> int:
        """Return the number of the first partition of `__consumer_offsets`, after those of all topics."""
        return sum(count for _, count in self.topics)

    def is_internal(self, number: int) -> bool:
        """Return whether a number is that of a partition of `__consumer_offsets`.

        Topics that are deleted and created again get numbers behind those of all others.
        """
        return 0 <= number - self.first_internal < self.offsets_partition_count

    @property
    def counts(self) -> Mapping[str, int]:
        """Return the partition count of each topic."""
        return dict(self.topics)

    def number_of(self, partition: TopicPartition) -> int:
        """Return the cluster-wide number of a topic's partition."""
        before = 0
        for name, count in self.topics:
            if name == partition.topic:
                assert partition.partition < count, partition
                return before + partition.partition
            before += count
        raise AssertionError(f"there is no topic {partition.topic}")

    def of_group(self, group_id: str) -> int:
        """Return the cluster-wide number of the `__consumer_offsets` partition that stores a group."""
        return self.first_internal + offsets_partition(group_id, self.offsets_partition_count)
