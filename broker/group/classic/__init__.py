"""Coordinate classic groups, in which the member that leads the group computes the assignment.

`coordinator` takes requests and time and gives answers; `group` is what it knows, `states` what a group may do,
`refusals` when it says no, `messages` what is said.
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
