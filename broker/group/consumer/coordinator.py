"""Coordinate one consumer group, without I/O: heartbeats and time go in, responses come out.

Source: org.apache.kafka.coordinator.group.GroupMetadataManager (scheduleConsumerGroup*), 4.3.1.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import attrs

from broker.entropy import RandomSource
from broker.error_codes import ErrorCode
from broker.group.consumer.group import ConsumerGroup
from broker.group.consumer.heartbeats import handle_heartbeat
from broker.group.consumer.member import (
    STATIC_LEAVING_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerMember,
    MemberState,
)
from broker.group.consumer.target import GroupContext
from broker.group.members import Departure, MemberId, random_uuid
from broker.group.timers import Timers
from broker.units import DurationMs, TimeMs

RETRY_MS: Final = DurationMs(500)
"""After how long a member is fenced again whose end could not be stored; a constant of Kafka's."""


@attrs.frozen
class PendingResponse:
    """Hold a heartbeat's response until the group has been stored."""

    answer: ConsumerGroupHeartbeatResponse
    group: ConsumerGroup


class ConsumerCoordinator:
    """Coordinate one consumer group."""

    def __init__(self, group: ConsumerGroup, context: GroupContext, entropy: RandomSource) -> None:
        self.group = group
        self.context = context
        self.entropy = entropy
        self.now_ms = TimeMs(0)
        self._timers = Timers()
        self._departed: list[tuple[ConsumerMember, Departure]] = []

    def take_departed(self) -> tuple[tuple[ConsumerMember, Departure], ...]:
        """Return the members that have left since the last call, each with the reason."""
        departed, self._departed = tuple(self._departed), []
        return departed

    def handle(self, request: ConsumerGroupHeartbeatRequest, now_ms: TimeMs) -> PendingResponse:
        """Fire the timers that are due by `now_ms`, then handle a heartbeat."""
        self.advance(now_ms)
        member_id = request.member_id or MemberId(random_uuid(self.entropy))
        before = self.group.members.get(member_id)
        former = self.group.static_member(request.instance_id)
        beaten = handle_heartbeat(self.group, request, self.context, member_id, now_ms=now_ms)
        self.group = beaten.group
        if beaten.answer.error is not ErrorCode.NONE:
            return PendingResponse(beaten.answer, self.group)
        if former is not None and former.member_id != member_id:
            self._departed.append((former, Departure.REPLACED))
        if beaten.member is None:
            assert before is not None
            self._departed.append((before, Departure.LEFT))
            self._forget(member_id)
        elif beaten.member.epoch != STATIC_LEAVING_EPOCH:
            self._expect(beaten.member, before)
        return PendingResponse(beaten.answer, self.group)

    def advance(self, now_ms: TimeMs) -> None:
        """Remove the members whose session or rebalance timer expires by `now_ms`."""
        assert now_ms >= self.now_ms, (now_ms, self.now_ms)
        for _, action in self._timers.due(now_ms):
            action()
        self.now_ms = now_ms

    def next_ms(self) -> TimeMs | None:
        """Return the time at which `advance` next has work; None when no timer is set."""
        return self._timers.next_ms()

    def loaded(self, now_ms: TimeMs) -> None:
        """Take over a group that another coordinator stored; restart every member's timers."""
        self.now_ms = now_ms
        for member in self.group.ordered():
            self._expect(member, None)

    def revert(self, group: ConsumerGroup) -> None:
        """Restore `group` after its successor could not be stored; retry removals after RETRY_MS."""
        self.group = group
        for member in group.ordered():
            member_id = member.member_id
            if _session(member_id) not in self._timers:
                fence = partial(self._fence, member_id, Departure.SESSION)
                self._timers.set(_session(member_id), self.now_ms, RETRY_MS, fence)

    def _expect(self, member: ConsumerMember, before: ConsumerMember | None) -> None:
        """Set the member's session timer, and its rebalance timer if it was just asked to revoke partitions."""
        member_id, epoch = member.member_id, member.epoch
        session_ms = self.context.options.session_timeout_ms
        self._timers.set(
            _session(member_id), self.now_ms, session_ms, lambda: self._fence(member_id, Departure.SESSION)
        )
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._timers.cancel(_rebalance(member_id))
        elif before is None or (before.epoch, before.revoking) != (epoch, member.revoking):
            delay_ms = member.rebalance_timeout_ms
            self._timers.set(_rebalance(member_id), self.now_ms, delay_ms, lambda: self._fence_if_at(member_id, epoch))

    def _fence_if_at(self, member_id: MemberId, epoch: int) -> None:
        member = self.group.members.get(member_id)
        if member is not None and member.epoch == epoch:
            self._fence(member_id, Departure.REVOKE)

    def _fence(self, member_id: MemberId, why: Departure) -> None:
        if member_id in self.group.members:
            self._departed.append((self.group.members[member_id], why))
            self.group = self.group.without_member(member_id)
        self._forget(member_id)

    def _forget(self, member_id: MemberId) -> None:
        self._timers.cancel(_session(member_id))
        self._timers.cancel(_rebalance(member_id))


def _session(member_id: MemberId) -> str:
    return f"session {member_id}"


def _rebalance(member_id: MemberId) -> str:
    return f"rebalance {member_id}"
