"""Coordinate consumer groups (KIP-848): the coordinator assigns, and each member moves to its target at its own pace.

`member` has the step of one member, `heartbeats` what a heartbeat means, `group` the value that it changes, and
`coordinator` the times.
"""

from __future__ import annotations

from broker.group.consumer.coordinator import ConsumerCoordinator, PendingResponse
from broker.group.consumer.group import ConsumerGroup, ConsumerGroupState
from broker.group.consumer.heartbeats import (
    ConsumerOptions,
    GroupContext,
    HeartbeatOutcome,
    handle_heartbeat,
    heartbeat_error,
)
from broker.group.consumer.member import ConsumerMember, MemberState, Partitions, reconciled
from broker.group.consumer.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

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
    "MemberState",
    "Partitions",
    "PendingResponse",
    "handle_heartbeat",
    "heartbeat_error",
    "reconciled",
)
