"""Coordinate classic groups, whose leader, a member, computes the assignment.

- coordinator: Coordinate one classic group, without I/O: requests and time go in, responses and records come out.
- group: Hold the state of a classic group: members, generation, leader and protocol.
- states: Decide what a group may do: its states and the transitions between them, as a table.
- refusals: Decide which error refuses a classic group's request, as pure functions of the group.
- messages: Define the requests and responses of a classic group, and the effects that the coordinator asks for.
- outbox: Collect the responses and records of one classic group until the caller takes them.
- options: Hold the broker's settings for classic groups.
"""

from __future__ import annotations

from broker.group.classic.coordinator import NEW_MEMBER_JOIN_TIMEOUT_MS, ClassicCoordinator
from broker.group.classic.group import ClassicGroup, Member
from broker.group.classic.messages import (
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
from broker.group.classic.options import ClassicOptions
from broker.group.classic.states import GROUP_TRANSITIONS, GroupInput, GroupState
from broker.group.members import (
    UNKNOWN_MEMBER,
    GroupRecord,
    InstanceId,
    MemberId,
    StoredMember,
)

__all__ = (
    "GROUP_TRANSITIONS",
    "NEW_MEMBER_JOIN_TIMEOUT_MS",
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
    "Member",
    "MemberId",
    "Output",
    "Protocol",
    "Request",
    "Response",
    "Store",
    "StoredMember",
    "SyncGroupRequest",
    "SyncGroupResponse",
    "Ticket",
)
