"""Decide which error refuses a classic group's request, as pure functions of the group.

The order of the checks is Kafka's; of several errors that apply, the first is returned.

Source: GroupCoordinatorService.joinGroup, GroupMetadataManager.acceptJoiningMember, classicGroupJoinNewMember,
classicGroupJoinExistingMember and validateSyncGroup, 4.0.1.
"""

from __future__ import annotations

from broker.error_codes import ErrorCode
from broker.group.classic.group import ClassicGroup
from broker.group.classic.messages import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from broker.group.classic.options import ClassicOptions
from broker.group.classic.states import GroupState
from broker.group.members import (
    UNKNOWN_MEMBER,
    MemberId,
)


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
    """Return the error that refuses `request`; NONE when it is answered, now or with the leader's assignment."""
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
