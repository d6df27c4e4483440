"""Decide which error refuses a request, and collect the responses and records of one classic group.

What it decides: when a member's pending request is answered. Each request is answered once: an answer clears the
member's ticket, and a member without a pending request gets no answer. Of several errors that apply,
the one that Kafka checks first is returned.

Source: GroupCoordinatorService.joinGroup, GroupMetadataManager.acceptJoiningMember, classicGroupJoinNewMember,
classicGroupJoinExistingMember and validateSyncGroup, 4.0.1.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.error_codes import ErrorCode
from broker.group.classic.group import ClassicGroup, Member
from broker.group.classic.messages import (
    ClassicOptions,
    GroupState,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    Output,
    Store,
    SyncGroupRequest,
    SyncGroupResponse,
    Ticket,
)
from broker.group.members import UNKNOWN_MEMBER, GroupRecord, MemberId


def join_error(group: ClassicGroup, options: ClassicOptions, request: JoinGroupRequest) -> ErrorCode:
    """Return the error that refuses `request`; NONE when the member may join."""
    member_id = request.member_id
    if not options.session_timeout_ms_min <= request.session_timeout_ms <= options.session_timeout_ms_max:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    if not has_room_for(group, options, member_id):
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if not group.supports(request.protocol_type, request.protocols):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if member_id == UNKNOWN_MEMBER:
        return ErrorCode.NONE
    if member_id in group.pending_joins:
        # Only dynamic members are named before they join; of one with an instance id Kafka's coordinator throws.
        return ErrorCode.NONE if request.instance_id is None else ErrorCode.UNKNOWN_SERVER_ERROR
    return group.member_error(member_id, request.instance_id)


def has_room_for(group: ClassicGroup, options: ClassicOptions, member_id: MemberId) -> bool:
    """Return whether the group is below group.max.size or already has the member."""
    member = group.members.get(member_id)
    match group.state:
        case GroupState.EMPTY | GroupState.DEAD:
            return True
        case GroupState.PREPARING_REBALANCE:
            is_waiting = member is not None and member.join_ticket is not None
            return is_waiting or group.awaiting_join_count < options.size_max
        case _:
            return member is not None or len(group.members) < options.size_max


def sync_error(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
    """Return the error of a refused SyncGroup request; NONE if the response follows now or with the assignment."""
    error = _generation_error(group, request)
    if error is not ErrorCode.NONE:
        return error
    for asked, has in ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol_name)):
        if asked is not None and has is not None and asked != has:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is GroupState.PREPARING_REBALANCE else ErrorCode.NONE


def heartbeat_error(group: ClassicGroup, request: HeartbeatRequest) -> ErrorCode:
    """Return the error that refuses a heartbeat; NONE when the session is renewed, even during a rebalance."""
    return _generation_error(group, request)


def _generation_error(group: ClassicGroup, request: SyncGroupRequest | HeartbeatRequest) -> ErrorCode:
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = group.member_error(request.member_id, request.instance_id)
    if error is ErrorCode.NONE and request.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error


class Outbox:
    """Collect a group's responses and records in order, and keep the continuations of records being stored."""

    def __init__(self, group: ClassicGroup) -> None:
        self._group = group
        self._outputs: list[Output] = []
        self._storing: dict[int, Callable[[ErrorCode], None]] = {}
        self._token = 0

    def add(self, output: Output) -> None:
        """Append `output`."""
        self._outputs.append(output)

    def take(self) -> tuple[Output, ...]:
        """Return everything appended since the last call."""
        outputs, self._outputs = tuple(self._outputs), []
        return outputs

    def stored(self, token: int, error: ErrorCode) -> None:
        """Run the continuation of the record `token` with the result; ignore an unknown token."""
        if token in self._storing:
            self._storing.pop(token)(error)

    def join(
        self,
        ticket: Ticket,
        member: Member,
        *,
        members_for_leader: bool = False,
        skip_assignment: bool = False,
        leader_id: MemberId | None = None,
    ) -> None:
        """Answer a pending JoinGroup; the response names a different leader if this member must not act as leader."""
        group = self._group
        self._outputs.append(
            JoinGroupResponse(
                ticket=ticket,
                member_id=member.member_id,
                generation=group.generation,
                protocol_name=group.protocol_name,
                leader_id=group.leader_id if leader_id is None else leader_id,
                members=group.joined_members() if members_for_leader else (),
                skip_assignment=skip_assignment,
            )
        )

    def sync(self, member: Member, error: ErrorCode) -> None:
        """Answer a pending SyncGroup of `member`, if there is one, with its assignment or with `error`."""
        if member.sync_ticket is None:
            return
        is_ok = error is ErrorCode.NONE
        name, assignment = (self._group.protocol_name, member.assignment) if is_ok else (None, b"")
        self._outputs.append(
            SyncGroupResponse(ticket=member.sync_ticket, error=error, protocol_name=name, assignment=assignment)
        )
        member.sync_ticket = None

    def refuse_join(self, member: Member, error: ErrorCode) -> None:
        """Answer a pending JoinGroup of `member`, if there is one, with `error`."""
        if member.join_ticket is not None:
            self._outputs.append(JoinGroupResponse(ticket=member.join_ticket, error=error, member_id=member.member_id))
            member.join_ticket = None

    def store(self, assignments: dict[MemberId, bytes], then: Callable[[ErrorCode], None]) -> None:
        """Store the group's record with these assignments, and run `then` afterwards."""
        group = self._group
        assert group.protocol_type is not None, "only a group that has had members is stored"
        self._token += 1
        self._storing[self._token] = then
        record = GroupRecord(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            generation=group.generation,
            protocol_name=group.protocol_name,
            leader_id=group.leader_id,
            state_time_ms=group.state_time_ms,
            members=group.stored_members(assignments),
        )
        self._outputs.append(Store(self._token, record))
