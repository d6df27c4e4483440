"""Compute a consumer group and a response from a member's heartbeat, with pure functions.

Example: the first member of a group, subscribed to a topic of three partitions: group epoch 2, target epoch 2, and
the answer gives it all three at epoch 2. Before 4.3 groups begin at epoch 0, and the first member gets epoch 1.

Source: org.apache.kafka.coordinator.group.GroupMetadataManager (consumerGroupHeartbeat, consumerGroupLeave,
getOrMaybeSubscribe*, throwIf*), 4.0.1, 4.1.2, 4.2.1 and 4.3.1; KIP-848.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.group.consumer.group import ConsumerGroup
from broker.group.consumer.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    NOTHING,
    STATIC_LEAVING_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerMember,
    HeartbeatReport,
    TargetAssignment,
    reconciled,
)
from broker.group.consumer.target import GroupContext, with_target
from broker.group.members import UNKNOWN_MEMBER, MemberId
from broker.releases import Release
from broker.units import TimeMs

_REJOINS_SINCE: Final = Release("4.2")


@attrs.frozen
class HeartbeatOutcome:
    """Hold a heartbeat's result: the next group and the response; `member` is None if the member has left."""

    group: ConsumerGroup
    answer: ConsumerGroupHeartbeatResponse
    member: ConsumerMember | None = None


def handle_heartbeat(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    context: GroupContext,
    member_id: MemberId,
    *,
    now_ms: TimeMs,
) -> HeartbeatOutcome:
    """Return the group after a heartbeat of `member_id`, and the response; the id is new if the request has none."""
    error = heartbeat_error(group, request, context)
    if error is not ErrorCode.NONE:
        return HeartbeatOutcome(
            group, ConsumerGroupHeartbeatResponse(error=error, member_id=request.member_id, epoch=request.epoch)
        )
    if request.epoch in (LEAVING_EPOCH, STATIC_LEAVING_EPOCH):
        return _left(group, request)
    entered, member = _entered(group, request, member_id)
    updated = _updated(member, request)
    is_changed = updated.subscribed_topics != member.subscribed_topics
    following = _with_epoch(entered.with_member(updated), context.topics, is_changed=is_changed)
    following = with_target(following, context, now_ms)
    arrived = updated
    release = context.options.release
    if is_changed or not updated.is_reconciled_to(following.target_epoch):
        arrived = reconciled(
            updated,
            TargetAssignment(partitions=following.target.get(member_id, NOTHING), epoch=following.target_epoch),
            HeartbeatReport(owned=request.owned, has_subscription_changed=is_changed),
            owner_epoch=following.owner_epoch,
            release=release,
        )
        following = following.with_member(arrived)
    tells_all = request.is_full or arrived.assigned != member.assigned
    answer = ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        epoch=arrived.epoch,
        heartbeat_interval_ms=context.options.heartbeat_interval_ms,
        assignment=arrived.assigned if tells_all else None,
    )
    return HeartbeatOutcome(following, answer, arrived)


def heartbeat_error(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, context: GroupContext) -> ErrorCode:
    """Return the error that refuses `request`, in the order of Kafka's checks; NONE if it is accepted."""
    error = request_error(request, context)
    if error is not ErrorCode.NONE:
        return error
    is_leaving = request.epoch in (LEAVING_EPOCH, STATIC_LEAVING_EPOCH)
    is_member = request.member_id in group.members
    if not is_leaving and len(group.members) >= context.options.size_max and not is_member:
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    static = group.static_member(request.instance_id)
    if request.instance_id is not None and request.epoch == JOINING_EPOCH:
        if static is None:
            return ErrorCode.NONE
        return ErrorCode.NONE if static.epoch == STATIC_LEAVING_EPOCH else ErrorCode.UNRELEASED_INSTANCE_ID
    if request.instance_id is not None:
        if static is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if static.member_id != request.member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    member = group.members.get(request.member_id)
    if member is None:
        return ErrorCode.NONE if request.epoch == JOINING_EPOCH else ErrorCode.UNKNOWN_MEMBER_ID
    is_let_in = is_leaving or _is_epoch_valid(member, request, context.options.release)
    return ErrorCode.NONE if is_let_in else ErrorCode.FENCED_MEMBER_EPOCH


def request_error(request: ConsumerGroupHeartbeatRequest, context: GroupContext) -> ErrorCode:
    """Return the error with which any broker refuses a heartbeat, whether it coordinates the group or not."""
    if not _is_well_formed(request):
        return ErrorCode.INVALID_REQUEST
    if request.assignor is not None and all(request.assignor != known.name for known in context.assignors):
        return ErrorCode.UNSUPPORTED_ASSIGNOR
    return ErrorCode.NONE


def _is_well_formed(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether a heartbeat can be one of some member, whatever the group."""
    if request.epoch < STATIC_LEAVING_EPOCH or request.instance_id == "" or request.rack == "":
        return False
    if request.epoch == JOINING_EPOCH:
        return request.rebalance_timeout_ms is not None and request.owned == NOTHING and bool(request.subscribed_topics)
    if request.epoch == STATIC_LEAVING_EPOCH and request.instance_id is None:
        return False
    return request.member_id != UNKNOWN_MEMBER


def _is_epoch_valid(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, release: Release) -> bool:
    """Return whether a heartbeat's member epoch is valid: the current one, the previous one, or 0 to rejoin."""
    if request.epoch == member.epoch or (request.epoch == JOINING_EPOCH and release >= _REJOINS_SINCE):
        return True
    is_former = request.epoch == member.previous_epoch < member.epoch
    return is_former and request.owned is not None and request.owned <= member.assigned


def _entered(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, member_id: MemberId
) -> tuple[ConsumerGroup, ConsumerMember]:
    """Return the group and the member, created if new; a static member replaces its former member that left."""
    known = group.members.get(member_id)
    former = group.static_member(request.instance_id)
    if former is not None and request.epoch == JOINING_EPOCH:
        member = attrs.evolve(former, member_id=member_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH)
        members = {name: other for name, other in group.members.items() if name != former.member_id}
        target = {name: share for name, share in group.target.items() if name != former.member_id}
        if former.member_id in group.target:
            target[member_id] = group.target[former.member_id]
        return attrs.evolve(group, members={**members, member_id: member}, target=target), member
    return group, known if known is not None else ConsumerMember(member_id=member_id)


def _updated(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    timeout_ms, topics = request.rebalance_timeout_ms, request.subscribed_topics
    return attrs.evolve(
        member,
        client_id=request.client_id,
        instance_id=request.instance_id or member.instance_id,
        rack=request.rack or member.rack,
        assignor=request.assignor or member.assignor,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms is None else timeout_ms,
        subscribed_topics=member.subscribed_topics if topics is None else topics,
    )


def _with_epoch(group: ConsumerGroup, known_topics: Mapping[str, int], *, is_changed: bool) -> ConsumerGroup:
    """Return the group at the next epoch if a subscription or a subscribed topic has changed."""
    topics = {name: known_topics[name] for name in sorted(group.subscribed_topics()) if name in known_topics}
    if not is_changed and topics == group.topics:
        return group
    return attrs.evolve(group, topics=topics, epoch=group.epoch + 1)


def _left(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> HeartbeatOutcome:
    answer = ConsumerGroupHeartbeatResponse(member_id=request.member_id, epoch=request.epoch)
    if request.epoch == STATIC_LEAVING_EPOCH:
        member = group.members[request.member_id].gone_for_a_while()
        return HeartbeatOutcome(group.with_member(member), answer, member)
    return HeartbeatOutcome(group.without_member(request.member_id), answer)
