"""Coordinate consumer groups (KIP-848): the coordinator computes the target, each member moves to it step by step.

- heartbeats: Compute a consumer group and a response from a member's heartbeat, with pure functions.
- target: Compute the target assignment of a consumer group, at most once in an interval, with pure functions.
- member: Define heartbeats, and move one member towards its target assignment, with pure functions.
- group: Hold a consumer group as a frozen value: members, epochs, target assignment, and each partition's owner.
- coordinator: Coordinate one consumer group, without I/O: heartbeats and time go in, responses come out.
- records: Read and write consumer group records of `__consumer_offsets` in Kafka's binary form.
"""

from __future__ import annotations

from broker.group.consumer.coordinator import ConsumerCoordinator
from broker.group.consumer.group import ConsumerGroup, ConsumerGroupState
from broker.group.consumer.member import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerMember,
    MemberState,
    Partitions,
    reconciled,
)
from broker.group.consumer.target import ConsumerOptions, GroupContext, new_group

__all__ = (
    "ConsumerCoordinator",
    "ConsumerGroup",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatResponse",
    "ConsumerGroupState",
    "ConsumerMember",
    "ConsumerOptions",
    "GroupContext",
    "MemberState",
    "Partitions",
    "new_group",
    "reconciled",
)
