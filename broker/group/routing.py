"""Choose the broker that coordinates a group: the leader of one partition of `__consumer_offsets`.

What it decides: the partition that keeps a group's offsets and metadata. Whoever leads that partition is the group's
coordinator; when the leadership moves, the coordinator moves with it.

Constraints: the answer depends on the group id and the number of partitions alone, so that every
broker and every tool gives the same; the number is fixed when `__consumer_offsets` is made.

How: Java's hash of the group id, its absolute value, modulo the number of partitions. The least
int has no absolute value in Java, and Kafka takes 0 for it.

Example: offsets_partition("my-group", 50) == 12.

Left out: transactional ids, which go to `__transaction_state` by the same rule.

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
