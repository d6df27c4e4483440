"""Coordinate classic groups, whose leader, a member, computes the assignment.

- coordinator: Coordinate one classic group, without I/O: requests and time go in, responses and records come out.
- outbox: Decide which error refuses a request, and collect the responses and records of one classic group.
- group: Hold the state of a classic group: members, generation, leader and protocol.
- messages: Define states, settings, requests and responses of a classic group, and the coordinator's effects.
"""

from __future__ import annotations

from broker.group.classic.coordinator import ClassicCoordinator
from broker.group.classic.group import ClassicGroup
from broker.group.classic.messages import (
    GROUP_TRANSITIONS,
    ClassicOptions,
    GroupInput,
    GroupState,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    Output,
    Protocol,
    Request,
    Response,
    Store,
    SyncGroupRequest,
    SyncGroupResponse,
    Ticket,
)
from broker.group.members import (
    UNKNOWN_MEMBER,
    GroupRecord,
    InstanceId,
    MemberId,
)

__all__ = (
    "GROUP_TRANSITIONS",
    "UNKNOWN_MEMBER",
    "ClassicCoordinator",
    "ClassicGroup",
    "ClassicOptions",
    "GroupInput",
    "GroupRecord",
    "GroupState",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "InstanceId",
    "JoinGroupRequest",
    "JoinGroupResponse",
    "JoinedMember",
    "LeaveGroupRequest",
    "LeaveGroupResponse",
    "MemberId",
    "Output",
    "Protocol",
    "Request",
    "Response",
    "Store",
    "SyncGroupRequest",
    "SyncGroupResponse",
    "Ticket",
)
