"""Send a classic group's coordinator requests of every kind, sound and unsound, and compare with a reference.

What it decides: when requests come, which records fail to be stored, and when another broker takes over, from a seed.
What the members say, `classic_members` draws.

Constraints: the coordinator and the reference draw member ids from equal generators.

Source: ours; the reference's source is in `reference_classic`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import attrs

from broker.config.setting import Scope
from broker.config.settings import Settings
from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.classic import (
    ClassicCoordinator,
    ClassicGroup,
    ClassicOptions,
    GroupState,
    JoinGroupResponse,
    Store,
)
from broker.group.members import GroupRecord
from broker.units import DurationMs, TimeMs
from tests.replication.mutants.classic_members import ClassicMembers
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.reference_classic import COMPLETING, EMPTY, STABLE, ReferenceGroup

GROUPS_A_RUN: Final = 12
STEP_COUNT: Final = 60
_STREAM: Final = 24
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


class _Life(ClassicMembers):
    """Run one group through its requests."""

    def __init__(self, draws: Draws) -> None:
        super().__init__(draws)
        options = ClassicOptions(
            size_max=draws.one((2, 3, 100)),
            initial_delay_ms=DurationMs(draws.one((0, 1_000, 3_000))),
            session_timeout_ms_min=DurationMs(draws.one((6_000, 5_990))),
            session_timeout_ms_max=DurationMs(60_000),
        )
        given = {
            "group.max.size": options.size_max,
            "group.initial.rebalance.delay.ms": options.initial_delay_ms,
            "group.min.session.timeout.ms": options.session_timeout_ms_min,
            "group.max.session.timeout.ms": options.session_timeout_ms_max,
        }
        of_settings = ClassicOptions.of(Settings.of(Scope.BROKER, given))
        seed = draws.number(0, 10**6)
        self._group = ClassicGroup("g")
        self._coordinator = ClassicCoordinator(self._group, of_settings, SplitMix64(seed))
        self._reference = ReferenceGroup(options, SplitMix64(seed))
        self._record: GroupRecord | None = None
        """What was stored last, if it was: the group of another broker."""
        self._now_ms = 1_000
        self._store_count = 0

    def run(self) -> str:
        """Send requests until the steps are over or the two differ."""
        for _ in range(STEP_COUNT):
            told = self._pass(is_asked_next=True) or self._step() or self._commits() or self._moved()
            if told:
                return told
        return self._unloaded()

    def _unloaded(self) -> str:
        """Let another broker take over: who waits is told so, and nobody else."""
        told_before = self._pass(is_asked_next=False)
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
        joins = attrs.evolve(self._join(), session_timeout_ms=DurationMs(10_000))
        others = [self._coordinator.handle(each, now_ms)[0] for each in (self._leave(), self._sync(), joins)]
        refused = {getattr(each, "error", None) for each in (answer, *others)}
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
        if told is ErrorCode.NONE and self._draws.is_one_in(4):
            self._coordinator.renew_session(name, TimeMs(self._now_ms))
            reference.renew(name)
        return self._expiry() or self._compared((), f"a commit of {name!r}")

    def _moved(self) -> str:
        """Let another broker coordinate the group from its record, if nothing is under way that only this one knows."""
        record, reference, coordinator = self._record, self._reference, self._coordinator
        if record is None or self._stores or reference.state not in (STABLE, EMPTY) or not self._draws.is_one_in(6):
            return ""
        if any(one.joins is not None or one.syncs is not None for one in reference.members.values()):
            return ""
        self._group = ClassicGroup.of_record(record)
        self._coordinator = ClassicCoordinator(self._group, coordinator.options, coordinator.entropy)
        self._coordinator.loaded(TimeMs(self._now_ms))
        reference.move_away()
        self._store_count = 0
        return self._compared((), "another broker took over")

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

    def _pass(self, *, is_asked_next: bool) -> str:
        """Let some time pass, and stop wherever something is due."""
        long_ms = (3_000,) if self._is_calm else (3_000, 7_000, 20_000)
        end_ms = self._now_ms + self._draws.one((0, 0, 10, 500, *long_ms))
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
        if is_asked_next and self._draws.is_one_in(3):
            return ""  # Who is asked lets happen first what is due.
        return self._compared(self._coordinator.advance(TimeMs(end_ms)), "time")

    def _step(self) -> str:
        draws = self._draws
        if self._stores and draws.is_one_in(2):
            place = self._stores.pop(draws.number(0, len(self._stores) - 1))
            error = draws.one((*_APPEND_ERRORS, *[ErrorCode.NONE] * 9))
            if self._record is not None and error is not ErrorCode.NONE:
                self._record = None
            self._reference.stored(place, _APPEND_ERRORS.get(error, error))
            return self._compared(self._coordinator.stored(place + 1, error, TimeMs(self._now_ms)), f"stored {error}")
        request = self._drawn()
        self._reference.take(request)
        return self._compared(self._coordinator.handle(request, TimeMs(self._now_ms)), str(request))

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
                self._record = record
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
        if (told := self._differing_members()) != "":
            return f"after {what}: {told}"
        departed = [(member.member_id, why.value) for member, why in self._coordinator.take_departed()]
        known, reference.departed = reference.departed, []
        if departed != known:
            return f"after {what}: {departed} have left, by the reference {known}"
        due = self._coordinator.next_ms()
        return "" if due == reference.next_ms else f"after {what}: due at {due}, by the reference {reference.next_ms}"

    def _differing_members(self) -> str:
        """Return which members differ in what they said, wait for or were given, and who else is awaited."""
        group, reference = self._group, self._reference
        ours = {
            name: (
                *(one.instance_id, one.protocols, one.session_timeout_ms, one.rebalance_timeout_ms),
                *(one.join_ticket, one.sync_ticket, one.assignment, one.is_new),
            )
            for name, one in group.members.items()
        }
        theirs = {
            name: (
                *(one.instance, one.asked.protocols, one.asked.session_timeout_ms, one.asked.rebalance_timeout_ms),
                *(one.joins, one.syncs, one.given, one.is_new),
            )
            for name, one in reference.members.items()
        }
        awaited, wanted = (group.pending_joins, group.pending_syncs), (reference.pending, reference.unsynced)
        if dict[str, Any](ours) == theirs and awaited == wanted:
            return ""
        return f"members {ours} and {awaited}, by the reference {theirs} and {wanted}"
