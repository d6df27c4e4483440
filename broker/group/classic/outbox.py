"""Collect the responses and records of one classic group until the caller takes them.

What it decides: when a member's pending request is answered. Each request is answered once: an answer clears the
member's ticket, and a member without a pending request gets no answer.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.error_codes import ErrorCode
from broker.group.classic.group import ClassicGroup, Member
from broker.group.classic.messages import JoinGroupResponse, Output, Store, SyncGroupResponse, Ticket
from broker.group.members import GroupRecord, MemberId


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
        """Tell whoever had the record `token` stored what came of it; ignore an unknown token."""
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
