"""Reference of a classic group: the answers, their times and the stored records, by Kafka's rules.

It shares only the messages with `broker.group.classic`: not its group, timers, states or refusals. All of it stands in
one table of members and in a list of what is due when.

Source: GroupMetadataManager (classicGroupJoin, -Sync, -Heartbeat, -Leave and what expires) and ClassicGroup of Kafka
4.3.1, as facts; KIP-134 (initial delay), KIP-345 (static members), KIP-394 (two steps), KIP-814 (skipped assignment).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import attrs

from broker.entropy import RandomSource
from broker.error_codes import ErrorCode
from broker.group.classic.messages import (
    ClassicOptions,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    Protocol,
    SyncGroupRequest,
    SyncGroupResponse,
    Ticket,
)
from broker.group.members import random_uuid
from broker.java.string_hash import java_map_order

EMPTY, PREPARING, COMPLETING, STABLE = "Empty", "PreparingRebalance", "CompletingRebalance", "Stable"
_NEW_MEMBER_MS: Final = 300_000
_JOIN, _SYNC = "join", "sync"
NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID


@attrs.define
class One:
    """Hold one member: its last JoinGroup, which of its requests wait, and what it was given."""

    asked: JoinGroupRequest
    instance: str | None
    joins: int | None
    syncs: int | None = None
    given: bytes = b""
    is_new: bool = True

    def metadata(self, name: str | None) -> bytes:
        """Return what the member says to the assignor that the group chose."""
        return {each.name: each.metadata for each in reversed(self.asked.protocols)}.get(str(name), b"")


class ReferenceGroup:
    """Take requests and time; collect answers, and records to store, in `outputs`."""

    def __init__(self, options: ClassicOptions, entropy: RandomSource) -> None:
        self.options, self.entropy = options, entropy
        self.outputs: list[Any] = []
        self.state, self.before = EMPTY, ""
        self.members: dict[str, One] = {}
        self.pending: set[str] = set()
        self.unsynced: set[str] = set()
        self.generation, self.leader = 0, ""
        self.kind: str | None = None
        self.chosen: str | None = None
        self.departed: list[tuple[str, str]] = []
        self.now_ms = self.since_ms = 0
        self._has_late_comer = False
        self._due: dict[str, tuple[int, int, Callable[[], None]]] = {}
        self._count = 0
        self._storing: list[Callable[[ErrorCode], None]] = []
        self._logged: dict[str, bytes] = {}
        """The shares in the last record, which may be of a leader that sent its assignment twice."""

    # Time.

    def _after(self, name: str, delay_ms: int, act: Callable[[], None]) -> None:
        self._count += 1
        self._due[name] = (self.now_ms + delay_ms, self._count, act)

    def pass_to(self, now_ms: int) -> None:
        """Let time pass: all that is due happens, in its order."""
        while self._due and min(self._due.values())[0] <= now_ms:
            name = min(self._due, key=lambda each: self._due[each][:2])
            due_ms, _, act = self._due.pop(name)
            self.now_ms = max(self.now_ms, due_ms)
            act()
        self.now_ms = now_ms

    @property
    def next_ms(self) -> int | None:
        """Return when something is due next."""
        return min((due_ms for due_ms, _, _ in self._due.values()), default=None)

    def _expect(self, name: str, within_ms: int) -> None:
        self._after(f"of {name}", within_ms, lambda: self._miss(name))

    def _miss(self, name: str) -> None:
        if name in self.pending:
            self._forget(name)
        elif name not in self.members:
            return  # It was named, and then refused because the group was full.
        else:
            one = self.members[name]
            if not one.is_new and (one.joins is not None or one.syncs is not None):
                return
            self._send_away(name, "session timeout")
            if self.state != PREPARING:
                self._begin()
                return
        if self.state == PREPARING and self._are_all_there():
            self._end_joins()

    # Members.

    def _order(self) -> list[str]:
        return [str(name) for name in java_map_order(self.members)]

    def _holder(self, instance: str | None) -> str | None:
        return next((name for name, one in self.members.items() if instance and one.instance == instance), None)

    def _are_all_there(self) -> bool:
        return not self.pending and all(one.joins is not None for one in self.members.values())

    def _longest_ms(self) -> int:
        return max((one.asked.rebalance_timeout_ms for one in self.members.values()), default=0)

    def _forget(self, name: str) -> None:
        self.members.pop(name, None)
        self.pending.discard(name)
        self.unsynced.discard(name)
        if self.leader == name:
            self.leader = next(iter(self._order()), "")

    def _send_away(self, name: str, why: str) -> None:
        one = self.members[name]
        self.departed.append((name, why))
        self._due.pop(f"of {name}", None)
        if one.joins is not None:
            self.outputs.append(JoinGroupResponse(ticket=one.joins, error=UNKNOWN))
        self._forget(name)

    def refusal(self, name: str, instance: str | None) -> ErrorCode:
        """Return why a member is not known by this id, and this instance if it says one."""
        if instance is None:
            return NONE if name in self.members else UNKNOWN
        holder = self._holder(instance)
        if holder is None:
            return UNKNOWN
        return NONE if holder == name else ErrorCode.FENCED_INSTANCE_ID

    def _common(self) -> set[str]:
        named = [{each.name for each in one.asked.protocols} for one in self.members.values()]
        return set.intersection(*named) if named else set()

    # Requests.

    def take(self, request: Any) -> None:
        """Take a request; its answer, now or later, is in `outputs`."""
        match request:
            case JoinGroupRequest():
                self._join(request)
            case SyncGroupRequest():
                self._sync(request)
            case HeartbeatRequest():
                error = self._of_generation(request)
                if error is NONE:
                    self._expect(request.member_id, self.members[request.member_id].asked.session_timeout_ms)
                    error = ErrorCode.REBALANCE_IN_PROGRESS if self.state == PREPARING else NONE
                self.outputs.append(HeartbeatResponse(ticket=request.ticket, error=error))
            case LeaveGroupRequest():
                self._leave(request)

    def _of_generation(self, request: Any) -> ErrorCode:
        error = self.refusal(request.member_id, request.instance_id)
        return ErrorCode.ILLEGAL_GENERATION if error is NONE and request.generation != self.generation else error

    def _join(self, request: JoinGroupRequest) -> None:
        name, options = str(request.member_id), self.options
        waiting = [each for each, one in self.members.items() if one.joins is not None]
        crowd = {PREPARING: waiting, EMPTY: []}.get(self.state, list(self.members))
        names = {each.name for each in request.protocols}
        suits = bool(request.protocol_type and names)
        if self.state != EMPTY:
            suits = request.protocol_type == self.kind and bool(names & self._common())
        least_ms, most_ms = options.session_timeout_ms_min, options.session_timeout_ms_max
        errors = {
            ErrorCode.INVALID_SESSION_TIMEOUT: not least_ms <= request.session_timeout_ms <= most_ms,
            ErrorCode.GROUP_MAX_SIZE_REACHED: name not in crowd and len(crowd) >= options.size_max,
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL: not suits,
        }
        if self.state == EMPTY:
            errors[ErrorCode.GROUP_MAX_SIZE_REACHED] = False
        error = next((code for code, holds in errors.items() if holds), NONE)
        if error is NONE and name and name not in self.pending:
            error = self.refusal(name, request.instance_id)
        if error is NONE and name in self.pending and request.instance_id is not None:
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        if error is ErrorCode.GROUP_MAX_SIZE_REACHED:
            self._forget(name)
        if error in (ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.UNKNOWN_SERVER_ERROR):
            name = ""
        if error is not NONE:
            self.outputs.append(JoinGroupResponse(ticket=request.ticket, error=error, member_id=name))
        elif name in self.members:
            self._rejoin(request, name)
        elif name:
            self._let_in(request, name)
        else:
            self._meet(request)

    def _meet(self, request: JoinGroupRequest) -> None:
        """Name a member that has no id yet."""
        name = f"{request.instance_id or request.client_id}-{random_uuid(self.entropy)}"
        if request.instance_id is not None and self._holder(request.instance_id) is not None:
            self._succeed(request, name)
        elif request.instance_id is not None or not request.knows_two_steps:
            self._let_in(request, name)
        else:
            self.pending.add(name)
            self._expect(name, request.session_timeout_ms)
            asks = ErrorCode.MEMBER_ID_REQUIRED
            self.outputs.append(JoinGroupResponse(ticket=request.ticket, error=asks, member_id=name))

    def _let_in(self, request: JoinGroupRequest, name: str) -> None:
        if self.state == PREPARING and self.before == EMPTY:
            self._has_late_comer = True
        self.kind = request.protocol_type if not self.members else self.kind
        self.members[name] = One(request, request.instance_id, request.ticket)
        self.pending.discard(name)
        self.leader = self.leader or name
        self._expect(name, _NEW_MEMBER_MS)
        self._begin_or_go_on()

    def _rejoin(self, request: JoinGroupRequest, name: str) -> None:
        one = self.members[name]
        is_other = one.asked.protocols != request.protocols
        begins = {PREPARING: True, COMPLETING: is_other}.get(self.state, is_other or name == self.leader)
        if begins:
            one.asked, one.joins = _changed(one.asked, request), request.ticket
            self._begin_or_go_on()
        else:
            self._welcome(request.ticket, name, lists=name == self.leader)

    def renew(self, name: str) -> None:
        """Renew the session of a member whose commit was taken, unless the group waits for its assignment."""
        if name in self.members and self.state in (STABLE, PREPARING):
            self._expect(name, self.members[name].asked.session_timeout_ms)

    def move_away(self) -> None:
        """Go on at another broker, which knows the group's record only: of each member what the group chose."""
        self.state, self.before = STABLE if self.members else EMPTY, ""
        self.pending, self.unsynced, self._has_late_comer = set(), set(), False
        self._due, self._storing = {}, []
        self.members = {name: self.members[name] for name in self._order()}
        for name, one in self.members.items():
            one.given = self._logged.get(name, b"")
            chosen = Protocol(str(self.chosen), one.metadata(self.chosen))
            one.asked = attrs.evolve(one.asked, protocols=(chosen,))
            self._expect(name, one.asked.session_timeout_ms)

    def _succeed(self, request: JoinGroupRequest, name: str) -> None:
        """Let a static process that was started again take its former place."""
        former = str(self._holder(request.instance_id))
        was, leader = self.members[former], self.leader
        fenced = ErrorCode.FENCED_INSTANCE_ID
        if was.joins is not None:
            self.outputs.append(JoinGroupResponse(ticket=was.joins, error=fenced, member_id=former))
        if was.syncs is not None:
            self.outputs.append(SyncGroupResponse(ticket=was.syncs, error=fenced))
        self._due.pop(f"of {former}", None)
        self.departed.append((former, "replaced"))
        del self.members[former]
        self.members[name] = attrs.evolve(was, asked=_changed(was.asked, request), joins=request.ticket, syncs=None)
        self.leader = name if leader == former else leader
        self._expect(name, request.session_timeout_ms)
        if self.state == STABLE and self._vote() == self.chosen:
            self._store(
                {each: one.given for each, one in self.members.items()},
                lambda error: self._succeeded(request, former, was, leader, error),
            )
        elif self.state == PREPARING:
            self._go_on()
        else:
            self._begin()

    def _succeeded(self, request: JoinGroupRequest, former: str, was: One, leader: str, error: ErrorCode) -> None:
        name = self._holder(was.instance)
        if name is None or self.members[name].joins != request.ticket:
            return
        self.members[name].joins = None
        if error is not NONE:
            self._due.pop(f"of {name}", None)
            now = self.members.pop(name)
            self.members[former] = attrs.evolve(now, asked=was.asked, joins=None, syncs=None)
            self.leader = former if self.leader == name else self.leader
            self._expect(former, was.asked.session_timeout_ms)
            self.outputs.append(
                JoinGroupResponse(
                    ticket=request.ticket,
                    error=error,
                    generation=self.generation,
                    protocol_name=self.chosen,
                    leader_id=leader,
                )
            )
        elif request.can_skip_assignment:
            self._welcome(request.ticket, name, lists=name == self.leader, skips=name == self.leader)
        else:
            self._welcome(request.ticket, name, leader=leader)

    def _welcome(
        self, ticket: int, name: str, *, lists: bool = False, skips: bool = False, leader: str | None = None
    ) -> None:
        listed = (
            JoinedMember(each, self.members[each].instance, self.members[each].metadata(self.chosen))
            for each in self._order()
        )
        self.outputs.append(
            JoinGroupResponse(
                ticket=ticket,
                member_id=name,
                generation=self.generation,
                protocol_name=self.chosen,
                leader_id=self.leader if leader is None else leader,
                members=tuple(listed) if lists else (),
                skip_assignment=skips,
            )
        )

    def _sync(self, request: SyncGroupRequest) -> None:
        name = str(request.member_id)
        error = UNKNOWN if self.state == EMPTY else self._of_generation(request)
        if error is NONE:
            said = {request.protocol_type: self.kind, request.protocol_name: self.chosen}
            differ = any(None not in (its, ours) and its != ours for its, ours in said.items())
            error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL if differ else NONE
        if error is NONE and self.state == PREPARING:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error is not NONE:
            self.outputs.append(SyncGroupResponse(ticket=request.ticket, error=error))
            return
        self.unsynced.discard(name)
        if not self.unsynced:
            self._due.pop(_SYNC, None)
        self.members[name].syncs = request.ticket
        if self.state == STABLE:
            self._hand(name, NONE)
        elif name == self.leader:
            given = {str(each): share for each, share in request.assignments}
            shares = {each: given.get(each, b"") for each in self.members}
            generation = self.generation
            self._store(shares, lambda error: self._shared(generation, shares, error))

    def _shared(self, generation: int, shares: dict[str, bytes], error: ErrorCode) -> None:
        if (self.state, self.generation) != (COMPLETING, generation):
            return
        self._share(shares if error is NONE else {}, error)
        if error is NONE:
            self._move(STABLE)
        else:
            self._begin_or_go_on()

    def _share(self, shares: dict[str, bytes], error: ErrorCode) -> None:
        for name in self._order():
            self.members[name].given = shares.get(name, b"")
            if self.members[name].syncs is not None:
                self._hand(name, error)
                self._expect(name, self.members[name].asked.session_timeout_ms)

    def _hand(self, member: str, error: ErrorCode) -> None:
        one = self.members[member]
        assert one.syncs is not None, member
        name, share = (self.chosen, one.given) if error is NONE else (None, b"")
        ticket, one.syncs = Ticket(one.syncs), None
        self.outputs.append(SyncGroupResponse(ticket=ticket, error=error, protocol_name=name, assignment=share))

    def _leave(self, request: LeaveGroupRequest) -> None:
        errors = tuple(self._part(str(name), instance) for name, instance in request.members)
        if NONE in errors and self.state in (STABLE, COMPLETING):
            self._begin()
        elif NONE in errors:
            self._go_on()
        self.outputs.append(LeaveGroupResponse(ticket=request.ticket, member_errors=errors))

    def _part(self, name: str, instance: str | None) -> ErrorCode:
        if name in self.pending:
            self._forget(name)
            self._due.pop(f"of {name}", None)
            return NONE
        holder = self._holder(instance)
        if instance is not None and holder is None:
            return UNKNOWN
        name = name or holder or ""
        error = self.refusal(name, instance)
        if error is NONE:
            self._send_away(name, "left")
        return error

    # Rebalances.

    def _move(self, state: str) -> None:
        self.before, self.state, self.since_ms = self.state, state, self.now_ms

    def _begin_or_go_on(self) -> None:
        if self.state == PREPARING:
            self._go_on()
        else:
            self._begin()

    def _go_on(self) -> None:
        if self.state == PREPARING and self.before != EMPTY and self._are_all_there():
            self._end_joins()

    def _begin(self) -> None:
        if self.state == COMPLETING:
            self._share({}, ErrorCode.REBALANCE_IN_PROGRESS)
        self.unsynced.clear()
        self._due.pop(_SYNC, None)
        self._move(PREPARING)
        if self.before == EMPTY:
            delay_ms = self.options.initial_delay_ms
            self._wait(delay_ms, max(self._longest_ms() - delay_ms, 0))
        elif self._are_all_there():
            self._end_joins()
        else:
            self._after(_JOIN, self._longest_ms(), self._end_joins)

    def _wait(self, delay_ms: int, left_ms: int) -> None:
        def end() -> None:
            if self._has_late_comer and left_ms:
                self._has_late_comer = False
                self._wait(min(self.options.initial_delay_ms, left_ms), max(left_ms - delay_ms, 0))
            else:
                self._end_joins()

        self._after(_JOIN, delay_ms, end)

    def _end_joins(self) -> None:
        self._due.pop(_JOIN, None)
        for name in self._order():
            if self.members[name].joins is None and self.members[name].instance is None:
                self.departed.append((name, "join timeout"))
                self._forget(name)
                self._due.pop(f"of {name}", None)
        joined = [name for name in self._order() if self.members[name].joins is not None]
        if self.members and not joined:
            self._after(_JOIN, self._longest_ms(), self._end_joins)
            return
        self.generation += 1
        self.unsynced = set(self.members)
        if not self.members:
            self.chosen = None
            self._move(EMPTY)
            self._store({}, lambda error: None)
            return
        self.leader = self.leader if self.leader in joined else joined[0]
        self.chosen = self._vote()
        self._move(COMPLETING)
        for name in self._order():
            one = self.members[name]
            if one.joins is not None:
                self._welcome(one.joins, name, lists=name == self.leader)
            one.joins, one.is_new = None, False
            self._expect(name, one.asked.session_timeout_ms)
        self._after(_SYNC, self._longest_ms(), self._drop_unsynced)

    def _drop_unsynced(self) -> None:
        has_late = bool(
            self.unsynced
        )  # The former id of a static member that was replaced counts, and nobody syncs it.
        for name in [name for name in self.members if name in self.unsynced]:
            self.departed.append((name, "sync timeout"))
            self._forget(name)
            self._due.pop(f"of {name}", None)
        if has_late:
            self._begin()

    def _vote(self) -> str:
        common = self._common()
        votes = Counter(
            next(each.name for each in self.members[name].asked.protocols if each.name in common)
            for name in self._order()
        )
        most = max(votes.values())
        return next(str(name) for name in java_map_order(votes) if votes[str(name)] == most)

    # Records.

    def _store(self, shares: dict[str, bytes], then: Callable[[ErrorCode], None]) -> None:
        self._storing.append(then)
        self._logged = shares
        stored = tuple((name, shares.get(name, b"")) for name in self._order())
        self.outputs.append((self.generation, self.chosen, self.leader or None, stored))

    def stored(self, place: int, error: ErrorCode) -> None:
        """Go on after the record that was stored as number `place` was replicated, or failed."""
        self._storing[place](error)


def _changed(former: JoinGroupRequest, request: JoinGroupRequest) -> JoinGroupRequest:
    """Return what a member says now: protocols and timeouts of `request`, all else as when it came."""
    return attrs.evolve(
        former,
        protocols=request.protocols,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
    )
