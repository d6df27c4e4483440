"""Coordinate consumer groups (KIP-848): the coordinator assigns, and each member moves to its target at its own pace.

- heartbeats: Decide what a member's heartbeat changes: from a group and a request to the next group and the response.
- member: Decide the next step of one member towards its target assignment, as a pure function.
- group: Hold a consumer group as a frozen value: members, epochs, target assignment, and each partition's owner.
- coordinator: Coordinate one consumer group, without I/O: heartbeats and time go in, responses come out.
- messages: Define the requests and responses of a consumer group: ConsumerGroupHeartbeat and nothing else.
- records: Read and write consumer group records of `__consumer_offsets` in Kafka's binary form.
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
