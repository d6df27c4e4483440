"""Define the identifiers of brokers, topics, partitions and epochs that every package uses.

Source: Kafka's `Uuid`, `TopicPartition`, and broker ids as int32 (KIP-631).
"""

from __future__ import annotations

from typing import Final, NewType

import attrs

from broker.errors import UsageError

BrokerId = NewType("BrokerId", int)
PartitionId = NewType("PartitionId", int)
Offset = NewType("Offset", int)
LeaderEpoch = NewType("LeaderEpoch", int)
BrokerEpoch = NewType("BrokerEpoch", int)
ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)

NO_LEADER: Final = BrokerId(-1)
"""Kafka's `Node.noNode().id()`: the partition has no leader now."""

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
"""The largest Java long: no offset, size, time or seed is larger."""
TOPIC_NAME_LENGTH_MAX: Final = 249  # Kafka's Topic.MAX_NAME_LENGTH: 255 less a partition's directory suffix.


@attrs.frozen(order=True)
class TopicPartition:
    """Identify one partition of one topic; sort by topic name, then partition, as Kafka's tools do."""

    topic: str
    partition: PartitionId

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def broker_id(value: int, *, where: str = "broker id") -> BrokerId:
    """Return `value` as a BrokerId; raise UsageError unless it is an int in 0..2147483647."""
    return BrokerId(_int32(value, where))


def partition_id(value: int, *, where: str = "partition") -> PartitionId:
    """Return `value` as a PartitionId; raise UsageError unless it is an int in 0..2147483647."""
    return PartitionId(_int32(value, where))


def _int32(value: int, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= INT32_MAX:
        raise UsageError(f"{where} is {value!r}; allowed are whole numbers from 0 to {INT32_MAX}")
    return value
