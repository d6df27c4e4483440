"""Coordinate consumer groups (KIP-848): the coordinator computes the target, each member moves to it step by step.

- heartbeats: Compute a consumer group and a response from a member's heartbeat, with pure functions.
- target: Compute the target assignment of a consumer group, at most once in an interval, with pure functions.
- member: Move one member of a consumer group towards its target assignment, with pure functions.
- group: Hold a consumer group as a frozen value: members, epochs, target assignment, and each partition's owner.
- coordinator: Coordinate one consumer group, without I/O: heartbeats and time go in, responses come out.
- messages: Define the request and the response of ConsumerGroupHeartbeat.
- records: Read and write consumer group records of `__consumer_offsets` in Kafka's binary form.
"""

from __future__ import annotations

from broker.group.consumer.coordinator import ConsumerCoordinator, PendingResponse
from broker.group.consumer.group import ConsumerGroup, ConsumerGroupState
from broker.group.consumer.heartbeats import HeartbeatOutcome, handle_heartbeat, heartbeat_error
from broker.group.consumer.member import (
    ConsumerMember,
    HeartbeatReport,
    MemberState,
    Partitions,
    TargetAssignment,
    reconciled,
)
from broker.group.consumer.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from broker.group.consumer.target import ConsumerOptions, GroupContext, is_target_due, new_group, with_target

__all__ = (
    "ConsumerCoordinator",
    "ConsumerGroup",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatResponse",
    "ConsumerGroupState",
    "ConsumerMember",
    "ConsumerOptions",
    "GroupContext",
    "HeartbeatOutcome",
    "HeartbeatReport",
    "MemberState",
    "Partitions",
    "PendingResponse",
    "TargetAssignment",
    "handle_heartbeat",
    "heartbeat_error",
    "is_target_due",
    "new_group",
    "reconciled",
    "with_target",
)
