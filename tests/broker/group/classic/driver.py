"""Drives a classic coordinator as scripted clients would: who says what when, and what each is told."""

from __future__ import annotations

from typing import Any, TypeVar

from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.classic import (
    UNKNOWN_MEMBER,
    ClassicCoordinator,
    ClassicGroup,
    ClassicOptions,
    GroupState,
    HeartbeatRequest,
    HeartbeatResponse,
    InstanceId,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberId,
    Output,
    Protocol,
    Request,
    Response,
    Store,
    SyncGroupRequest,
    SyncGroupResponse,
    Ticket,
)
from broker.units import DurationMs, TimeMs

Answer = TypeVar("Answer", bound=Response)

RANGE = (Protocol("range", b"topics"),)


class Driver:
    """One group and its clients. Records are stored at once unless `stores_at_once` is turned off."""

    def __init__(self, *, stores_at_once: bool = True, **options: Any) -> None:
        self.group = ClassicGroup("g")
        self.coordinator = ClassicCoordinator(self.group, ClassicOptions(**options), SplitMix64(1))
        self.stores_at_once = stores_at_once
        self.now_ms = 0
        self.ticket = 0
        self.answers: dict[int, Response] = {}
        self.stores: list[Store] = []

    def take(self, outputs: tuple[Output, ...]) -> None:
        self.group.check_invariants()
        for output in outputs:
            if not isinstance(output, Store):
                assert output.ticket not in self.answers, "a request is answered once"
                self.answers[output.ticket] = output
                continue
            self.stores.append(output)
            if self.stores_at_once:
                self.stored(output.token)

    def stored(self, token: int, error: ErrorCode = ErrorCode.NONE) -> None:
        self.take(self.coordinator.stored(token, error, TimeMs(self.now_ms)))

    def at(self, now_ms: int) -> None:
        """Let time pass, stopping at every timer on the way."""
        while (next_ms := self.coordinator.next_ms()) is not None and next_ms <= now_ms:
            self.now_ms = max(self.now_ms, next_ms)
            self.take(self.coordinator.advance(TimeMs(self.now_ms)))
        self.now_ms = now_ms

    def send(self, request: Request) -> int:
        self.take(self.coordinator.handle(request, TimeMs(self.now_ms)))
        return request.ticket

    def next_ticket(self) -> Ticket:
        self.ticket += 1
        return Ticket(self.ticket)

    def join(self, member_id: str = UNKNOWN_MEMBER, **named: Any) -> int:
        """Send a join and return its ticket."""
        fields: dict[str, Any] = {
            "client_id": "c",
            "protocols": RANGE,
            "session_timeout_ms": DurationMs(45_000),
            "rebalance_timeout_ms": DurationMs(300_000),
            **named,
        }
        return self.send(JoinGroupRequest(ticket=self.next_ticket(), member_id=MemberId(member_id), **fields))

    def enter(self, **named: Any) -> tuple[MemberId, int]:
        """Join in the two steps of a new dynamic member; return its name and the ticket of the second join."""
        first = self.answer(JoinGroupResponse, self.join(**named))
        assert first.error is ErrorCode.MEMBER_ID_REQUIRED
        return first.member_id, self.join(first.member_id, **named)

    def sync(
        self, member_id: str, generation: int, *assignments: tuple[str, bytes], instance: str | None = None
    ) -> int:
        given = tuple((MemberId(name), assignment) for name, assignment in assignments)
        return self.send(
            SyncGroupRequest(
                ticket=self.next_ticket(),
                member_id=MemberId(member_id),
                generation=generation,
                assignments=given,
                instance_id=None if instance is None else InstanceId(instance),
            )
        )

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> ErrorCode:
        instance_id = None if instance is None else InstanceId(instance)
        request = HeartbeatRequest(
            ticket=self.next_ticket(), member_id=MemberId(member_id), generation=generation, instance_id=instance_id
        )
        return self.answer(HeartbeatResponse, self.send(request)).error

    def leave(self, *members: tuple[str, str | None]) -> LeaveGroupResponse:
        pairs = tuple((MemberId(name), None if at is None else InstanceId(at)) for name, at in members)
        return self.answer(LeaveGroupResponse, self.send(LeaveGroupRequest(ticket=self.next_ticket(), members=pairs)))

    def answer(self, kind: type[Answer], ticket: int) -> Answer:
        found = self.answers[ticket]
        assert isinstance(found, kind)
        return found

    def joined(self, ticket: int) -> JoinGroupResponse:
        found = self.answer(JoinGroupResponse, ticket)
        assert found.error is ErrorCode.NONE, found
        return found

    def stable(self, count: int, **named: Any) -> list[MemberId]:
        """Bring in `count` dynamic members and go through one whole rebalance; the leader is the first returned."""
        entered = [self.enter(**named) for _ in range(count)]
        self.at(self.now_ms + 6000)
        leader = self.joined(entered[0][1])
        for member_id, _ in entered:
            assignments = [(name, name.encode()) for name, _ in entered] if member_id == leader.leader_id else []
            self.sync(member_id, leader.generation, *assignments)
        assert self.group.state is GroupState.STABLE
        ids = [member_id for member_id, _ in entered]
        return sorted(ids, key=lambda member_id: member_id != leader.leader_id)

    def rejoin_all(self, members: list[MemberId], **named: Any) -> list[JoinGroupResponse]:
        tickets = [self.join(member_id, **named) for member_id in members]
        return [self.joined(ticket) for ticket in tickets]

    def synced(self, ticket: int) -> SyncGroupResponse:
        return self.answer(SyncGroupResponse, ticket)
