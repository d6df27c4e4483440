"""What clients and a classic group's coordinator say to each other.

Fields are those of Kafka's requests and responses. `ticket` is the caller's name for a request: the response, which
may come much later, carries it again.

Source: JoinGroup, SyncGroup, Heartbeat and LeaveGroup in clients/src/main/resources/common/message, 4.0.
"""

from __future__ import annotations

from typing import Final, NewType, TypeAlias

import attrs

from broker.error_codes import ErrorCode
from broker.group.members import UNKNOWN_MEMBER, GroupRecord, InstanceId, MemberId
from broker.units import DurationMs

Ticket = NewType("Ticket", int)

NO_GENERATION: Final = -1


@attrs.frozen
class Protocol:
    """One assignor that a member supports, and what it tells the leader that will run it."""

    name: str
    metadata: bytes = b""


@attrs.frozen(kw_only=True)
class JoinGroupRequest:
    """A member wants to be in the group, under the name it was given or under none yet.

    `knows_two_steps` is false for clients before KIP-394: they are not asked to come again with their new name.
    `can_skip_assignment` is false before KIP-814.
    """

    ticket: Ticket
    client_id: str
    protocols: tuple[Protocol, ...]
    session_timeout_ms: DurationMs
    rebalance_timeout_ms: DurationMs
    member_id: MemberId = UNKNOWN_MEMBER
    instance_id: InstanceId | None = None
    client_host: str = "/127.0.0.1"
    protocol_type: str = "consumer"
    knows_two_steps: bool = True
    can_skip_assignment: bool = True


@attrs.frozen
class JoinedMember:
    """A member as its leader is told of it."""

    member_id: MemberId
    instance_id: InstanceId | None
    metadata: bytes


@attrs.frozen(kw_only=True)
class JoinGroupResponse:
    """The answer to a JoinGroupRequest; `members` is filled for the leader alone."""

    ticket: Ticket
    error: ErrorCode = ErrorCode.NONE
    member_id: MemberId = UNKNOWN_MEMBER
    generation: int = NO_GENERATION
    protocol_name: str | None = None
    leader_id: MemberId | None = None
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


@attrs.frozen(kw_only=True)
class SyncGroupRequest:
    """A member asks for its assignment; the leader brings everyone's, as pairs of member and bytes."""

    ticket: Ticket
    member_id: MemberId
    generation: int
    instance_id: InstanceId | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[MemberId, bytes], ...] = ()


@attrs.frozen(kw_only=True)
class SyncGroupResponse:
    """The answer to a SyncGroupRequest."""

    ticket: Ticket
    error: ErrorCode = ErrorCode.NONE
    protocol_name: str | None = None
    assignment: bytes = b""


@attrs.frozen(kw_only=True)
class HeartbeatRequest:
    """A member says that it lives."""

    ticket: Ticket
    member_id: MemberId
    generation: int
    instance_id: InstanceId | None = None


@attrs.frozen(kw_only=True)
class HeartbeatResponse:
    """The answer to a HeartbeatRequest: REBALANCE_IN_PROGRESS tells the member to join again."""

    ticket: Ticket
    error: ErrorCode = ErrorCode.NONE


@attrs.frozen(kw_only=True)
class LeaveGroupRequest:
    """Members go; a static one may be named by its instance alone."""

    ticket: Ticket
    members: tuple[tuple[MemberId, InstanceId | None], ...]


@attrs.frozen(kw_only=True)
class LeaveGroupResponse:
    """The answer to a LeaveGroupRequest, with an error for each member in the order asked."""

    ticket: Ticket
    error: ErrorCode = ErrorCode.NONE
    member_errors: tuple[ErrorCode, ...] = ()


Request: TypeAlias = JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest
Response: TypeAlias = JoinGroupResponse | SyncGroupResponse | HeartbeatResponse | LeaveGroupResponse


@attrs.frozen
class Store:
    """The coordinator asks for `record` to be appended, and to be told how it went under `token`."""

    token: int
    record: GroupRecord


Output: TypeAlias = Response | Store
