"""Choose the broker that coordinates a group: the leader of one partition of `__consumer_offsets`.

Example: offsets_partition("my-group", 50) == 12.

Source: Kafka GroupCoordinatorService.partitionFor, GroupMetadataManager.partitionFor and Utils.abs, 4.0.
"""

from __future__ import annotations

from broker.errors import UsageError
from broker.ids import INT32_MAX, PartitionId
from broker.java.string_hash import java_string_hash


def positive_hash(text: str) -> int:
    """Return the absolute value of Java's hash of `text`, or 0 for -2147483648, as Kafka's Utils.abs does."""
    code = java_string_hash(text)
    return 0 if code == -INT32_MAX - 1 else abs(code)


def offsets_partition(group_id: str, partition_count: int) -> PartitionId:
    """Return the partition of `__consumer_offsets` that stores the group `group_id`.

    `partition_count` is `offsets.topic.num.partitions`, 50 by default; raises UsageError unless it is 1 or more.
    """
    if not 0 < partition_count <= INT32_MAX:
        raise UsageError(f"offsets.topic.num.partitions is {partition_count}; allowed are 1 to {INT32_MAX}")
    return PartitionId(positive_hash(group_id) % partition_count)
