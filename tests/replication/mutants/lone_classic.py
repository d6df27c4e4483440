"""Send a classic group's coordinator requests of every kind, sound and unsound, and compare with a reference.

What it decides: the members' requests, when they come, and which records fail to be stored, all from a seed. Members
use what they were told, and now and then a wrong id, instance, generation or protocol.

Constraints: the coordinator and the reference draw member ids from equal generators.

Source: ours; the reference's source is in `reference_classic`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.classic import (
    ClassicCoordinator,
    ClassicGroup,
    ClassicOptions,
    GroupState,
    HeartbeatRequest,
    InstanceId,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberId,
    Protocol,
    Store,
    SyncGroupRequest,
    Ticket,
)
from broker.units import DurationMs, TimeMs
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.reference_classic import COMPLETING, EMPTY, STABLE, ReferenceGroup

GROUPS_A_RUN: Final = 4
STEP_COUNT: Final = 60
_STREAM: Final = 24
_INSTANCES: Final = (None, None, None, InstanceId("i1"), InstanceId("i2"))
_NAMES: Final = ("range", "sticky", "roundrobin")
_APPEND_ERRORS: Final = {
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Which error a member is told when the append of the group's record fails."""


def classic_noticed(seed: int) -> str:
    """Return where a coordinator first differs from the reference, "" if it nowhere does."""
    draws = Draws(seed, _STREAM)
    return next((told for told in (_Life(draws).run() for _ in range(GROUPS_A_RUN)) if told), "")


class _Life:
    """Run one group through its requests."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        options = ClassicOptions(
            size_max=draws.one((2, 3, 100)),
            initial_delay_ms=DurationMs(draws.one((0, 1_000, 3_000))),
            session_timeout_ms_max=DurationMs(60_000),
        )
        seed = draws.number(0, 10**6)
        self._group = ClassicGroup("g")
        self._coordinator = ClassicCoordinator(self._group, options, SplitMix64(seed))
        self._reference = ReferenceGroup(options, SplitMix64(seed))
        self._now_ms = 1_000
        self._ticket = 0
        self._stores: list[int] = []
        self._store_count = 0
        self._ids: dict[str, tuple[InstanceId | None, int]] = {}
        """What each member id was given to: its instance, and the generation that it knows."""
        self._asked: dict[int, InstanceId | None] = {}

    def run(self) -> str:
        """Send requests until the steps are over or the two differ."""
        for _ in range(STEP_COUNT):
            told = self._pass() or self._step() or self._commits()
            if told:
                return told
        return self._unloaded()

    def _unloaded(self) -> str:
        """Let another broker take over: who waits is told so, and nobody else."""
        told_before = self._pass()
        if told_before:
            return told_before
        reference, now_ms = self._reference, TimeMs(self._now_ms)
        waiting = Counter(
            ticket for one in reference.members.values() for ticket in (one.joins, one.syncs) if ticket is not None
        )
        told = self._coordinator.unload(now_ms)
        errors = {each.error for each in told if not isinstance(each, Store)}
        if Counter(each.ticket for each in told if not isinstance(each, Store)) != waiting:
            return f"unloaded it tells {told}, and {sorted(waiting)} wait"
        left = [place for place in self._stores if self._coordinator.stored(place + 1, ErrorCode.NONE, now_ms)]
        if errors - {ErrorCode.NOT_COORDINATOR} or left or self._coordinator.next_ms() is not None:
            return f"unloaded it tells {errors}, goes on with {left} and waits until {self._coordinator.next_ms()}"
        heartbeat = self._heartbeat()
        (answer,) = self._coordinator.handle(heartbeat, now_ms)
        gone = ErrorCode.COORDINATOR_NOT_AVAILABLE
        (left_answer,) = self._coordinator.handle(self._leave(), now_ms)
        refused = {getattr(each, "error", None) for each in (answer, left_answer)}
        refused.add(self._group.commit_error(heartbeat.member_id, None, heartbeat.generation))
        return "" if refused == {gone} else f"unloaded it answers {refused}"

    def _commits(self) -> str:
        """Return where an offset commit is taken or refused otherwise than its member and generation say."""
        reference = self._reference
        name, instance, generation = self._member()
        generation = self._draws.one((generation, -1, reference.generation, reference.generation + 1, 0))
        in_transaction = self._draws.is_one_in(4)
        is_alone = generation < 0 and not name and instance is None
        refusal = reference.refusal(name, instance)
        causes = (
            (ErrorCode.NONE, generation < 0 and reference.state == EMPTY),
            (ErrorCode.UNKNOWN_MEMBER_ID, is_alone and not in_transaction),
            (refusal, not is_alone and refusal is not ErrorCode.NONE),
            (ErrorCode.ILLEGAL_GENERATION, not is_alone and generation != reference.generation),
            (ErrorCode.REBALANCE_IN_PROGRESS, reference.state == COMPLETING and not in_transaction),
        )
        wanted = next((code for code, holds in causes if holds), ErrorCode.NONE)
        told = self._group.commit_error(name, instance, generation, in_transaction=in_transaction)
        if told is not wanted:
            return f"a commit of {name!r}, {instance}, {generation} in {reference.state} is answered {told}"
        return self._expiry()

    def _expiry(self) -> str:
        """Return where the group lets offsets expire otherwise than by KIP-211 and KIP-496."""
        group, reference = self._group, self._reference
        read = self._draws.one((None, frozenset({"t"})))
        rule = group.expiry_rule(read)
        if reference.kind is None:
            wanted: tuple[Any, ...] | None = (None, frozenset())
        elif reference.state == EMPTY:
            wanted = (reference.since_ms, frozenset())
        elif reference.state == STABLE and reference.kind == "consumer" and read is not None:
            wanted = (None, read)
        else:
            wanted = None
        found = None if rule is None else (rule.since_ms, frozenset(rule.kept_topics))
        return "" if found == wanted else f"in {reference.state} offsets expire by {rule}, reading {read}"

    def _pass(self) -> str:
        """Let some time pass, and stop wherever something is due."""
        end_ms = self._now_ms + self._draws.one((0, 0, 10, 500, 3_000, 7_000, 20_000))
        while (next_ms := self._coordinator.next_ms()) is not None and next_ms <= end_ms:
            if next_ms != self._reference.next_ms and (self._reference.next_ms or 0) > next_ms:
                break
            self._now_ms = max(self._now_ms, next_ms)
            self._reference.pass_to(self._now_ms)
            told = self._compared(self._coordinator.advance(TimeMs(self._now_ms)), "time")
            if told:
                return told
        self._now_ms = end_ms
        self._reference.pass_to(end_ms)
        return self._compared(self._coordinator.advance(TimeMs(end_ms)), "time")

    def _step(self) -> str:
        draws = self._draws
        if self._stores and draws.is_one_in(2):
            place = self._stores.pop(draws.number(0, len(self._stores) - 1))
            error = draws.one((*_APPEND_ERRORS, *[ErrorCode.NONE] * 9))
            self._reference.stored(place, _APPEND_ERRORS.get(error, error))
            return self._compared(self._coordinator.stored(place + 1, error, TimeMs(self._now_ms)), f"stored {error}")
        self._ticket += 1
        kinds = [self._join, self._join, self._sync, self._sync, self._heartbeat, self._leave]
        if self._reference.state == COMPLETING:
            kinds += [self._sync] * 8
        request: Any = draws.one(kinds)()
        self._reference.take(request)
        return self._compared(self._coordinator.handle(request, TimeMs(self._now_ms)), str(request))

    def _member(self) -> tuple[MemberId, InstanceId | None, int]:
        """Return a member id, its instance and its generation, now and then wrong ones."""
        draws = self._draws
        name = draws.one(["", *self._ids, *self._reference.members])
        instance, generation = self._ids.get(name, (None, -1))
        if draws.is_one_in(12):
            name = "stranger"
        if draws.is_one_in(12):
            instance = draws.one(_INSTANCES)
        if name in self._reference.members and not draws.is_one_in(10):
            generation = self._reference.generation
        return MemberId(name), instance, generation

    def _join(self) -> JoinGroupRequest:
        draws = self._draws
        name, instance, _ = self._member()
        if not name:
            held = [InstanceId(one.instance) for one in self._reference.members.values() if one.instance]
            instance = draws.one((*_INSTANCES, *held))
        self._asked[self._ticket] = instance
        names = draws.some(_NAMES, 0 if draws.is_one_in(12) else 2)
        return JoinGroupRequest(
            ticket=Ticket(self._ticket),
            client_id="c",
            member_id=name,
            instance_id=instance,
            protocols=tuple(Protocol(each, each.encode() + bytes([draws.number(0, 1)])) for each in names),
            session_timeout_ms=DurationMs(draws.one((6_000, 10_000, 60_000, 5_999 if draws.is_one_in(4) else 9_000))),
            rebalance_timeout_ms=DurationMs(draws.one((5_000, 20_000))),
            protocol_type="connect" if draws.is_one_in(15) else "consumer",
            knows_two_steps=not draws.is_one_in(4),
            can_skip_assignment=draws.is_one_in(2),
        )

    def _sync(self) -> SyncGroupRequest:
        draws = self._draws
        name, instance, generation = self._member()
        if draws.is_one_in(2) and self._reference.leader:
            name = MemberId(self._reference.leader)
            instance = self._ids.get(name, (None, 0))[0]
            generation = self._reference.generation
        shares = tuple((MemberId(each), each[-3:].encode()) for each in draws.some([*self._reference.members, "x"]))
        return SyncGroupRequest(
            ticket=Ticket(self._ticket),
            member_id=name,
            generation=generation,
            instance_id=instance,
            protocol_type=draws.one((None, "consumer", "consumer", "connect" if draws.is_one_in(4) else None)),
            protocol_name=draws.one((None, self._reference.chosen, "other" if draws.is_one_in(4) else None)),
            assignments=shares,
        )

    def _heartbeat(self) -> HeartbeatRequest:
        name, instance, generation = self._member()
        return HeartbeatRequest(
            ticket=Ticket(self._ticket), member_id=name, generation=generation, instance_id=instance
        )

    def _leave(self) -> LeaveGroupRequest:
        pairs = []
        for _ in range(self._draws.number(1, 2)):
            name, instance, _ = self._member()
            pairs.append((name, instance))
        if not self._draws.is_one_in(3):
            pairs = [(MemberId(""), InstanceId("i3"))]
        return LeaveGroupRequest(ticket=Ticket(self._ticket), members=tuple(pairs))

    def _compared(self, outputs: tuple[Any, ...], what: str) -> str:
        """Return how the two differ after a step, and note what members were told."""
        reference, group = self._reference, self._group
        group.check_invariants()
        ours: list[Any] = []
        for output in outputs:
            if isinstance(output, Store):
                record = output.record
                again = ClassicGroup.of_record(record)
                again.check_invariants()
                kept = {name: (one.instance, one.asked.client_id) for name, one in reference.members.items()}
                read = {name: (each.instance_id, each.client_id) for name, each in again.members.items()}
                is_same = (again.generation, again.leader_id or "", again.protocol_type) == (
                    reference.generation,
                    reference.leader,
                    reference.kind,
                )
                if read != kept or not is_same or (again.state is GroupState.EMPTY) == bool(kept):
                    return f"after {what}: stored is {record}"
                members = tuple((each.member_id, each.assignment) for each in record.members)
                ours.append((record.generation, record.protocol_name, record.leader_id, members))
                self._stores.append(self._store_count)
                self._store_count += 1
            else:
                ours.append(output)
            if isinstance(output, JoinGroupResponse) and output.member_id:
                instance = self._asked.get(output.ticket)
                self._ids[output.member_id] = (instance, output.generation)
        theirs, reference.told = reference.told, []
        if ours != theirs:
            return f"after {what}: {ours}, by the reference {theirs}"
        held = ("".join(map(str.capitalize, group.state.name.split("_"))), group.generation, group.leader_id or "")
        if held != (reference.state, reference.generation, reference.leader):
            return f"after {what}: {held}, by the reference {reference.state}, {reference.generation}"
        departed = [(member.member_id, why.value) for member, why in self._coordinator.take_departed()]
        known, reference.departed = reference.departed, []
        if departed != known:
            return f"after {what}: {departed} have left, by the reference {known}"
        due = self._coordinator.next_ms()
        return "" if due == reference.next_ms else f"after {what}: due at {due}, by the reference {reference.next_ms}"
