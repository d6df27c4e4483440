"""Coordinate one classic group, without I/O: requests and time go in, responses and records come out.

What it decides: which members the group has, when a rebalance begins and ends, and which response each member gets.
The coordinator never computes an assignment: the leader, one of the members, does.

Goals, most important first:
1. Responses, and their order, are those of Kafka's coordinator for the same requests at the same times.
2. Members receive an assignment only once it is stored, so that the next coordinator knows every assignment sent.
3. A member that has failed is removed, and never delays the others for longer than a timeout.

Constraints: a refused request changes nothing. `now_ms` never goes back. The caller stores the records and
then calls `stored`; meanwhile the group accepts requests.

How: a join waits until all known members have joined, or the longest rebalance timeout is over. The first rebalance of
an empty group waits for `initial_delay_ms` instead, and longer while members keep arriving (KIP-134). Dynamic members
that did not rejoin are removed, static ones stay (KIP-345). Then the generation rises by one, every waiting JoinGroup
is answered, and the leader's SyncGroup brings the assignment, which is stored and sent to all members.

Example: three members join within three seconds of the first; at 3,000 ms all three are answered with generation 1.

Left out: groups that change to the consumer protocol while members are in them (KIP-848's migration).

Source: org.apache.kafka.coordinator.group.GroupMetadataManager (classicGroup*), 4.0.1.
"""

from __future__ import annotations

from typing import Final

from broker.entropy import RandomSource
from broker.error_codes import ErrorCode
from broker.group.classic.group import ClassicGroup, Member
from broker.group.classic.messages import (
    ClassicOptions,
    GroupInput,
    GroupState,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    Output,
    Request,
    SyncGroupRequest,
    SyncGroupResponse,
)
from broker.group.classic.outbox import Outbox, heartbeat_error, join_error, sync_error
from broker.group.members import UNKNOWN_MEMBER, Departure, MemberId, random_uuid
from broker.group.timers import Timers
from broker.units import DurationMs, TimeMs

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = DurationMs(300_000)
"""How long a new member may wait for its first answer; a constant of Kafka's."""

_JOIN: Final = "join"
_SYNC: Final = "sync"

_STORE_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""The error that members receive when the group's record could not be stored, by the error of the append."""


class ClassicCoordinator:
    """Coordinate one classic group; each method returns responses to send and records to store, in order."""

    def __init__(self, group: ClassicGroup, options: ClassicOptions, entropy: RandomSource) -> None:
        self.group = group
        self.options = options
        self.entropy = entropy
        self.now_ms = TimeMs(0)
        self._timers = Timers()
        self._outbox = Outbox(group)
        self._departed: list[tuple[Member, Departure]] = []

    def take_departed(self) -> tuple[tuple[Member, Departure], ...]:
        """Return the members that have left since the last call, each with the reason."""
        departed, self._departed = tuple(self._departed), []
        return departed

    def handle(self, request: Request, now_ms: TimeMs) -> tuple[Output, ...]:
        """Handle a request; a later call may return the response."""
        self._fire(now_ms)
        match request:
            case JoinGroupRequest():
                self._join(request)
            case SyncGroupRequest():
                self._sync(request)
            case HeartbeatRequest():
                self._heartbeat(request)
            case LeaveGroupRequest():
                self._leave(request)
        return self._outbox.take()

    def advance(self, now_ms: TimeMs) -> tuple[Output, ...]:
        """Fire the timers that are due by `now_ms`."""
        self._fire(now_ms)
        return self._outbox.take()

    def next_ms(self) -> TimeMs | None:
        """Return the time at which `advance` next has work; None when no timer is set."""
        return self._timers.next_ms()

    def stored(self, token: int, error: ErrorCode, now_ms: TimeMs) -> tuple[Output, ...]:
        """Continue after the record of `token` was replicated or failed; ignore unknown tokens."""
        self._fire(now_ms)
        self._outbox.stored(token, _STORE_ERRORS.get(error, error))
        return self._outbox.take()

    def unload(self, now_ms: TimeMs) -> tuple[Output, ...]:
        """Stop, because another broker now leads the group's partition; answer all pending requests NOT_COORDINATOR."""
        for member in self.group.ordered():
            self._outbox.refuse_join(member, ErrorCode.NOT_COORDINATOR)
            self._outbox.sync(member, ErrorCode.NOT_COORDINATOR)
        self.group.move(GroupInput.DELETED, now_ms)
        self._timers = Timers()
        return self._outbox.take()

    def loaded(self, now_ms: TimeMs) -> None:
        """Take over a group read from its record; restart every member's session timer."""
        self.now_ms = now_ms
        for member in self.group.ordered():
            self._expect_heartbeat(member, member.session_timeout_ms)

    def renew_session(self, member_id: MemberId, now_ms: TimeMs) -> None:
        """Renew a member's session after an offset commit, except between JoinGroup and SyncGroup."""
        assert now_ms == self.now_ms, (now_ms, self.now_ms)
        member = self.group.members.get(member_id)
        if member is not None and self.group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
            self._expect_heartbeat(member, member.session_timeout_ms)

    def _fire(self, now_ms: TimeMs) -> None:
        assert now_ms >= self.now_ms, (now_ms, self.now_ms)
        for due_ms, action in self._timers.due(now_ms):
            self.now_ms = due_ms
            action()
        self.now_ms = now_ms

    # Joining.

    def _join(self, request: JoinGroupRequest) -> None:
        group, member_id = self.group, request.member_id
        error = join_error(group, self.options, request)
        if error is not ErrorCode.NONE:
            if error is ErrorCode.GROUP_MAX_SIZE_REACHED:
                group.remove(member_id)
            if error in (ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.UNKNOWN_SERVER_ERROR):
                member_id = UNKNOWN_MEMBER
            self._outbox.add(JoinGroupResponse(ticket=request.ticket, error=error, member_id=member_id))
        elif member_id == UNKNOWN_MEMBER:
            self._join_unnamed(request)
        elif member_id in group.pending_joins:
            self._add(member_id, request)
        else:
            self._join_again(request, group.members[member_id])

    def _join_unnamed(self, request: JoinGroupRequest) -> None:
        group = self.group
        if request.instance_id is not None:
            member_id = MemberId(f"{request.instance_id}-{random_uuid(self.entropy)}")
            if request.instance_id in group.static_members:
                self._replace_static(request, member_id)
            else:
                self._add(member_id, request)
            return
        member_id = MemberId(f"{request.client_id}-{random_uuid(self.entropy)}")
        if not request.knows_two_steps:
            self._add(member_id, request)
            return
        group.pending_joins.add(member_id)
        self._timers.set(_beat(member_id), self.now_ms, request.session_timeout_ms, lambda: self._expire(member_id))
        error = ErrorCode.MEMBER_ID_REQUIRED
        self._outbox.add(JoinGroupResponse(ticket=request.ticket, error=error, member_id=member_id))

    def _join_again(self, request: JoinGroupRequest, member: Member) -> None:
        group = self.group
        has_changed = member.protocols != request.protocols
        match group.state:
            case GroupState.PREPARING_REBALANCE:
                must_rebalance = True
            case GroupState.COMPLETING_REBALANCE:
                must_rebalance = has_changed
            case _:
                must_rebalance = has_changed or group.leader_id == member.member_id
        if must_rebalance:
            member.take_over(request)
            self._rebalance_or_go_on()
        else:
            # Only in CompletingRebalance can this be the leader, whose answer was lost.
            is_leader = group.leader_id == member.member_id
            self._outbox.join(request.ticket, member, members_for_leader=is_leader)

    def _add(self, member_id: MemberId, request: JoinGroupRequest) -> None:
        group = self.group
        if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
            group.new_member_added = True
        member = Member.joining(member_id, request)
        group.add(member)
        self._expect_heartbeat(member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance_or_go_on()

    def _replace_static(self, request: JoinGroupRequest, new_id: MemberId) -> None:
        """Replace the member of a restarted static process; it keeps its assignment if nothing else changes."""
        group = self.group
        assert request.instance_id is not None
        old_id = group.static_members[request.instance_id]
        old, old_leader_id = group.members[old_id], group.leader_id
        self._outbox.refuse_join(old, ErrorCode.FENCED_INSTANCE_ID)
        self._outbox.sync(old, ErrorCode.FENCED_INSTANCE_ID)
        self._timers.cancel(_beat(old_id))
        self._departed.append((old, Departure.REPLACED))
        member = group.replace(request.instance_id, new_id)
        member.take_over(request)
        self._expect_heartbeat(member, member.session_timeout_ms)
        if group.state is GroupState.STABLE and group.select_protocol() == group.protocol_name:
            # KIP-345: the restarted process keeps its assignment without a rebalance, so the record with its new member
            # id has to be stored before the answer.
            assignments = {other.member_id: other.assignment for other in group.ordered()}
            self._outbox.store(assignments, lambda error: self._replacement_stored(request, old, old_leader_id, error))
        elif group.state is GroupState.PREPARING_REBALANCE:
            self._go_on()
        else:
            self._prepare()

    def _replacement_stored(
        self, request: JoinGroupRequest, old: Member, old_leader_id: MemberId | None, error: ErrorCode
    ) -> None:
        """Complete the replacement of a static member if the record was stored; restore the former member if not."""
        group, instance_id = self.group, old.instance_id
        assert instance_id is not None
        member = group.members.get(group.static_members.get(instance_id, UNKNOWN_MEMBER))
        # Replaced again, or gone, while the record was being stored.
        if member is None or member.join_ticket != request.ticket:
            return
        member.join_ticket = None
        if error is not ErrorCode.NONE:
            self._timers.cancel(_beat(member.member_id))
            reverted = group.replace(instance_id, old.member_id)
            reverted.take_over(old)
            self._expect_heartbeat(reverted, reverted.session_timeout_ms)
            self._outbox.add(
                JoinGroupResponse(
                    ticket=request.ticket,
                    error=error,
                    generation=group.generation,
                    protocol_name=group.protocol_name,
                    leader_id=old_leader_id,
                )
            )
        elif request.can_skip_assignment:
            is_leader = group.leader_id == member.member_id
            self._outbox.join(request.ticket, member, members_for_leader=is_leader, skip_assignment=is_leader)
        else:
            self._outbox.join(request.ticket, member, leader_id=old_leader_id)

    def _rebalance_or_go_on(self) -> None:
        if self.group.can_rebalance():
            self._prepare()
        else:
            self._go_on()

    def _go_on(self) -> None:
        """End the join phase if all members have joined; an empty group's initial delay ends by its timer alone."""
        group = self.group
        is_initial = group.previous_state is GroupState.EMPTY
        if group.state is GroupState.PREPARING_REBALANCE and not is_initial and group.have_all_joined:
            self._complete_join()

    def _prepare(self) -> None:
        group = self.group
        if group.state is GroupState.COMPLETING_REBALANCE:
            # Members that wait for an assignment must join again: the one that is awaited will never come.
            self._hand_out({}, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_syncs.clear()
        self._timers.cancel(_SYNC)
        is_initial = group.state is GroupState.EMPTY
        group.move(GroupInput.REBALANCE, self.now_ms)
        if is_initial:
            # group.initial.rebalance.delay.ms: consumers that start together share the first rebalance.
            delay_ms = self.options.initial_delay_ms
            self._wait_for_more(delay_ms, DurationMs(max(group.rebalance_timeout_ms - delay_ms, 0)))
        elif group.have_all_joined:
            self._complete_join()
        else:
            self._timers.set(_JOIN, self.now_ms, group.rebalance_timeout_ms, self._complete_join)

    def _wait_for_more(self, delay_ms: DurationMs, remaining_ms: DurationMs) -> None:
        self._timers.set(_JOIN, self.now_ms, delay_ms, lambda: self._end_initial_delay(delay_ms, remaining_ms))

    def _end_initial_delay(self, delay_ms: DurationMs, remaining_ms: DurationMs) -> None:
        """Extend the initial delay if a member joined during it and time is left; else end the join phase."""
        if self.group.new_member_added and remaining_ms != 0:
            self.group.new_member_added = False
            next_ms = DurationMs(min(self.options.initial_delay_ms, remaining_ms))
            self._wait_for_more(next_ms, DurationMs(max(remaining_ms - delay_ms, 0)))
        else:
            self._complete_join()

    def _complete_join(self) -> None:
        group = self.group
        self._timers.cancel(_JOIN)
        for member in group.ordered():
            # Dynamic members that did not join in time go; static ones stay until their session expires.
            if member.join_ticket is None and member.instance_id is None:
                self._departed.append((member, Departure.JOIN))
                group.remove(member.member_id)
                self._timers.cancel(_beat(member.member_id))
        if not group.elect_joined_leader() and group.members:
            self._timers.set(_JOIN, self.now_ms, group.rebalance_timeout_ms, self._complete_join)
            return
        group.generation += 1
        if not group.members:
            group.protocol_name = None
            group.read_subscriptions()
            group.move(GroupInput.NOBODY_JOINED, self.now_ms)
            self._outbox.store({}, lambda error: None)
            return
        group.protocol_name = group.select_protocol()
        group.read_subscriptions()
        group.move(GroupInput.JOINED, self.now_ms)
        for member in group.ordered():
            if member.join_ticket is not None:
                ticket, member.join_ticket = member.join_ticket, None
                self._outbox.join(ticket, member, members_for_leader=group.leader_id == member.member_id)
            self._expect_heartbeat(member, member.session_timeout_ms)
            member.is_new = False
            group.pending_syncs.add(member.member_id)
        self._timers.set(_SYNC, self.now_ms, group.rebalance_timeout_ms, self._expire_syncs)

    # Syncing.

    def _sync(self, request: SyncGroupRequest) -> None:
        group = self.group
        error = sync_error(group, request)
        if error is not ErrorCode.NONE:
            self._outbox.add(SyncGroupResponse(ticket=request.ticket, error=error))
            return
        member = group.members[request.member_id]
        group.pending_syncs.discard(member.member_id)
        if not group.pending_syncs:
            self._timers.cancel(_SYNC)
        member.sync_ticket = request.ticket
        if group.state is GroupState.STABLE:
            self._outbox.sync(member, ErrorCode.NONE)
        elif group.leader_id == member.member_id:
            given = dict(request.assignments)
            assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
            generation = group.generation
            self._outbox.store(assignments, lambda error: self._assignment_stored(generation, assignments, error))

    def _assignment_stored(self, generation: int, assignments: dict[MemberId, bytes], error: ErrorCode) -> None:
        """Send the leader's assignment once it is stored, unless the group has moved on; rebalance if storing fails."""
        group = self.group
        if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != generation:
            return
        if error is ErrorCode.NONE:
            self._hand_out(assignments, error)
            group.move(GroupInput.ASSIGNED, self.now_ms)
        else:
            self._hand_out({}, error)
            self._prepare()

    def _hand_out(self, assignments: dict[MemberId, bytes], error: ErrorCode) -> None:
        for member in self.group.ordered():
            member.assignment = assignments.get(member.member_id, b"")
        for member in self.group.ordered():
            if member.sync_ticket is not None:
                self._outbox.sync(member, error)
                self._expect_heartbeat(member, member.session_timeout_ms)

    # Members that live, and members that do not.

    def _heartbeat(self, request: HeartbeatRequest) -> None:
        group = self.group
        error = heartbeat_error(group, request)
        if error is ErrorCode.NONE:
            member = group.members[request.member_id]
            self._expect_heartbeat(member, member.session_timeout_ms)
            if group.state is GroupState.PREPARING_REBALANCE:
                error = ErrorCode.REBALANCE_IN_PROGRESS
        self._outbox.add(HeartbeatResponse(ticket=request.ticket, error=error))

    def _expect_heartbeat(self, member: Member, timeout_ms: DurationMs) -> None:
        member_id = member.member_id
        self._timers.set(_beat(member_id), self.now_ms, timeout_ms, lambda: self._expire(member_id))

    def _expire(self, member_id: MemberId) -> None:
        """Remove a member whose session expired, or a member id that was handed out and never joined."""
        group = self.group
        member = group.members.get(member_id)
        if member_id in group.pending_joins:
            group.remove(member_id)
            self._end_join_if_all_there()
        elif member is not None and not member.is_alive_without_heartbeat:
            self._drop(member, Departure.SESSION)
            if group.can_rebalance():
                self._prepare()
            else:
                self._end_join_if_all_there()

    def _end_join_if_all_there(self) -> None:
        if self.group.state is GroupState.PREPARING_REBALANCE and self.group.have_all_joined:
            self._complete_join()

    def _expire_syncs(self) -> None:
        """Remove the members that sent no SyncGroup request in time, and rebalance the others.

        Kafka keeps the former id of a static member that was replaced among those awaited, so that the group rebalances
        though nobody is late.
        """
        group = self.group
        assert group.pending_syncs, "the timer is cancelled when nobody is awaited any more"
        for member_id in [member_id for member_id in group.members if member_id in group.pending_syncs]:
            self._departed.append((group.members[member_id], Departure.SYNC))
            group.remove(member_id)
            self._timers.cancel(_beat(member_id))
        self._prepare()

    def _drop(self, member: Member, why: Departure) -> None:
        self._departed.append((member, why))
        self._timers.cancel(_beat(member.member_id))
        if member.join_ticket is not None:
            error = ErrorCode.UNKNOWN_MEMBER_ID
            self._outbox.add(JoinGroupResponse(ticket=member.join_ticket, error=error))
        self.group.remove(member.member_id)

    def _leave(self, request: LeaveGroupRequest) -> None:
        group = self.group
        if group.state is GroupState.DEAD:
            self._outbox.add(LeaveGroupResponse(ticket=request.ticket, error=ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        errors = tuple(self._leave_one(member_id, instance_id) for member_id, instance_id in request.members)
        if ErrorCode.NONE in errors:
            if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
                self._prepare()
            else:
                self._go_on()
        self._outbox.add(LeaveGroupResponse(ticket=request.ticket, member_errors=errors))

    def _leave_one(self, member_id: MemberId, instance_id: str | None) -> ErrorCode:
        group = self.group
        if member_id in group.pending_joins:
            group.remove(member_id)
            self._timers.cancel(_beat(member_id))
            return ErrorCode.NONE
        named = next((name for name in group.static_members if name == instance_id), None)
        if member_id == UNKNOWN_MEMBER:
            if named is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = group.static_members[named]
        error = group.member_error(member_id, named) if named or instance_id is None else ErrorCode.UNKNOWN_MEMBER_ID
        if error is ErrorCode.NONE:
            self._drop(group.members[member_id], Departure.LEFT)
        return error


def _beat(member_id: MemberId) -> str:
    """Return the name of a member's session timer."""
    return f"heartbeat {member_id}"
