"""Define states, settings, requests and responses of a classic group, and the effects of its coordinator.

Fields are those of Kafka's requests and responses. `ticket` is the caller's name for a request: the response, which
may come much later, carries it again.

Source: ClassicGroupState, GroupCoordinatorConfig; JoinGroup, SyncGroup, Heartbeat and LeaveGroup in
clients/src/main/resources/common/message, 4.0.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NewType, TypeAlias

import attrs

from broker.config.settings import Settings
from broker.error_codes import ErrorCode
from broker.group.members import UNKNOWN_MEMBER, GroupRecord, InstanceId, MemberId
from broker.units import DurationMs


class GroupState(enum.Enum):
    """List the states of a classic group; names are Kafka's."""

    EMPTY = enum.auto()
    """It has no members; its offsets are kept until they expire."""

    PREPARING_REBALANCE = enum.auto()
    """Its members are asked to join, and those who do wait for the others."""

    COMPLETING_REBALANCE = enum.auto()
    """All have joined; they wait for the assignment that the leader computes."""

    STABLE = enum.auto()
    """Every member has its assignment, or can have it."""

    DEAD = enum.auto()
    """It is no longer here: deleted, or its coordinator has moved."""


class GroupInput(enum.Enum):
    """List the events that change the state of a classic group."""

    REBALANCE = enum.auto()
    """A member came, went or changed; or a sync did not come in time."""

    JOINED = enum.auto()
    """The joining is over, and there are members."""

    NOBODY_JOINED = enum.auto()
    """The joining is over, and there is none."""

    ASSIGNED = enum.auto()
    """The leader's assignment is stored."""

    DELETED = enum.auto()
    """The group was deleted, or its partition moved to another broker."""


GROUP_TRANSITIONS: Final[Mapping[tuple[GroupState, GroupInput], GroupState]] = MappingProxyType(
    {
        (GroupState.EMPTY, GroupInput.REBALANCE): GroupState.PREPARING_REBALANCE,
        (GroupState.STABLE, GroupInput.REBALANCE): GroupState.PREPARING_REBALANCE,
        (GroupState.COMPLETING_REBALANCE, GroupInput.REBALANCE): GroupState.PREPARING_REBALANCE,
        (GroupState.PREPARING_REBALANCE, GroupInput.JOINED): GroupState.COMPLETING_REBALANCE,
        (GroupState.PREPARING_REBALANCE, GroupInput.NOBODY_JOINED): GroupState.EMPTY,
        (GroupState.COMPLETING_REBALANCE, GroupInput.ASSIGNED): GroupState.STABLE,
        **{(state, GroupInput.DELETED): GroupState.DEAD for state in GroupState},
    }
)
"""Every step that a classic group can take; whatever is not here is refused."""


@attrs.frozen(kw_only=True)
class ClassicOptions:
    """Hold the broker's settings for classic groups; the defaults are Kafka's."""

    size_max: int = 2**31 - 1
    initial_delay_ms: DurationMs = attrs.field(default=DurationMs(3000))
    session_timeout_ms_min: DurationMs = attrs.field(default=DurationMs(6000))
    session_timeout_ms_max: DurationMs = attrs.field(default=DurationMs(1_800_000))

    @classmethod
    def of(cls, settings: Settings) -> ClassicOptions:
        """Return the options set by a broker's settings."""
        return cls(
            size_max=settings.count("group.max.size"),
            initial_delay_ms=settings.duration_ms("group.initial.rebalance.delay.ms"),
            session_timeout_ms_min=settings.duration_ms("group.min.session.timeout.ms"),
            session_timeout_ms_max=settings.duration_ms("group.max.session.timeout.ms"),
        )


Ticket = NewType("Ticket", int)

NO_GENERATION: Final = -1


@attrs.frozen
class Protocol:
    """Name an assignor supported by a member, with the member's metadata for that assignor."""

    name: str
    metadata: bytes = b""


@attrs.frozen(kw_only=True)
class JoinGroupRequest:
    """Ask to join a group, with the member id that the coordinator assigned, or an empty one at first.

    `knows_two_steps` is false for clients before KIP-394, which need not rejoin with the member id that the
    coordinator assigned. `can_skip_assignment` is false before KIP-814.
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
    """Describe one member to the group's leader, in a JoinGroup response."""

    member_id: MemberId
    instance_id: InstanceId | None
    metadata: bytes


@attrs.frozen(kw_only=True)
class JoinGroupResponse:
    """Answer a JoinGroup; only the leader's response lists the `members`."""

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
    """Ask for the member's assignment; the leader sends the assignment of every member."""

    ticket: Ticket
    member_id: MemberId
    generation: int
    instance_id: InstanceId | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[MemberId, bytes], ...] = ()


@attrs.frozen(kw_only=True)
class SyncGroupResponse:
    """Answer a SyncGroup with the member's assignment."""

    ticket: Ticket
    error: ErrorCode = ErrorCode.NONE
    protocol_name: str | None = None
    assignment: bytes = b""


@attrs.frozen(kw_only=True)
class HeartbeatRequest:
    """Renew a member's session."""

    ticket: Ticket
    member_id: MemberId
    generation: int
    instance_id: InstanceId | None = None


@attrs.frozen(kw_only=True)
class HeartbeatResponse:
    """Answer a Heartbeat; REBALANCE_IN_PROGRESS asks the member to rejoin."""

    ticket: Ticket
    error: ErrorCode = ErrorCode.NONE


@attrs.frozen(kw_only=True)
class LeaveGroupRequest:
    """Remove members from the group; a static member may be named by its instance id alone."""

    ticket: Ticket
    members: tuple[tuple[MemberId, InstanceId | None], ...]


@attrs.frozen(kw_only=True)
class LeaveGroupResponse:
    """Answer a LeaveGroup with an error for each member, in the order of the request."""

    ticket: Ticket
    error: ErrorCode = ErrorCode.NONE
    member_errors: tuple[ErrorCode, ...] = ()


Request: TypeAlias = JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest
Response: TypeAlias = JoinGroupResponse | SyncGroupResponse | HeartbeatResponse | LeaveGroupResponse


@attrs.frozen
class Store:
    """Append `record` to the group's partition, and report the result under `token`: an effect for the caller."""

    token: int
    record: GroupRecord


Output: TypeAlias = Response | Store
