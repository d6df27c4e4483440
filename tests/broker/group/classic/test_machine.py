"""Classic coordinator against its reference: requests of every kind, failed appends, and moves to another broker.

The coordinator and the reference draw member ids from equal generators.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import attrs
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

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
from tests.broker.group.classic.members import ClassicMembers
from tests.broker.group.classic.reference import COMPLETING, EMPTY, STABLE, ReferenceGroup
from tests.support.drawing import DRAWS, Draws

_APPEND_ERRORS: Final = {
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Which error a member gets when the append of the group's record fails."""


class ClassicMachine(ClassicMembers, RuleBasedStateMachine):
    """One group through its requests, beside the reference."""

    @initialize(draws=DRAWS)
    def begin(self, draws: Draws) -> None:
        self.begin_members(draws)
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
        """The record that was stored last: what another broker knows of the group."""
        self._now_ms = 1_000
        self._store_count = 0

    @rule(draws=DRAWS)
    def ask(self, draws: Draws) -> None:
        self._draws = draws
        self._pass(is_asked_next=True)
        request = self.drawn()
        self._reference.take(request)
        self._compare(self._coordinator.handle(request, TimeMs(self._now_ms)), str(request))

    @rule(draws=DRAWS)
    def ask_again(self, draws: Draws) -> None:
        self.ask(draws)

    @precondition(lambda self: self._stores)
    @rule(draws=DRAWS)
    def store(self, draws: Draws) -> None:
        self._draws = draws
        self._pass(is_asked_next=True)
        place = self._stores.pop(draws.number(0, len(self._stores) - 1))
        error = draws.one((*[ErrorCode.NONE] * 9, *_APPEND_ERRORS))
        if error is not ErrorCode.NONE:
            self._record = None
        self._reference.stored(place, _APPEND_ERRORS.get(error, error))
        self._compare(self._coordinator.stored(place + 1, error, TimeMs(self._now_ms)), f"stored {error}")

    @precondition(lambda self: self._ticket > 25)
    @rule(draws=DRAWS)
    def unload(self, draws: Draws) -> None:
        """Let another broker take over: who waits is answered so, and nobody else; then begin another group."""
        self._draws = draws
        self._pass(is_asked_next=False)
        reference, now_ms = self._reference, TimeMs(self._now_ms)
        waiting = Counter(
            ticket for one in reference.members.values() for ticket in (one.joins, one.syncs) if ticket is not None
        )
        answers = [each for each in self._coordinator.unload(now_ms) if not isinstance(each, Store)]
        assert Counter(each.ticket for each in answers) == waiting
        assert {each.error for each in answers} <= {ErrorCode.NOT_COORDINATOR}
        for place in self._stores:
            assert self._coordinator.stored(place + 1, ErrorCode.NONE, now_ms) == ()
        assert self._coordinator.next_ms() is None
        heartbeat, joins = self._heartbeat(), attrs.evolve(self._join(), session_timeout_ms=DurationMs(10_000))
        for request in (heartbeat, joins, self._leave(), self._sync()):
            (answer,) = self._coordinator.handle(request, now_ms)
            assert getattr(answer, "error", None) is ErrorCode.COORDINATOR_NOT_AVAILABLE, request
        refusal = self._group.commit_error(heartbeat.member_id, None, heartbeat.generation)
        assert refusal is ErrorCode.COORDINATOR_NOT_AVAILABLE
        self.begin(draws)

    @rule(draws=DRAWS)
    def commit(self, draws: Draws) -> None:
        """Commit offsets; taken or refused by member and generation."""
        self._draws, reference = draws, self._reference
        self._pass(is_asked_next=False)
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
        found_error = self._group.commit_error(name, instance, generation, in_transaction=in_transaction)
        assert found_error is wanted, (name, instance, generation, reference.state)
        if found_error is ErrorCode.NONE and self._draws.is_one_in(4):
            self._coordinator.renew_session(name, TimeMs(self._now_ms))
            reference.renew(name)
        self._check_expiry()
        self._compare((), f"a commit of {name!r}")

    @precondition(lambda self: self._is_settled())
    @rule()
    def move(self) -> None:
        """Let another broker coordinate the group from its record."""
        record, reference, coordinator = self._record, self._reference, self._coordinator
        assert record is not None
        self._group = ClassicGroup.of_record(record)
        self._coordinator = ClassicCoordinator(self._group, coordinator.options, coordinator.entropy)
        self._coordinator.loaded(TimeMs(self._now_ms))
        reference.move_away()
        self._store_count = 0
        self._compare((), "another broker took over")

    def _is_settled(self) -> bool:
        """Return whether nothing is under way that only this broker knows."""
        waits = any(one.joins is not None or one.syncs is not None for one in self._reference.members.values())
        is_at_rest = self._reference.state in (STABLE, EMPTY) and not self._stores
        return self._record is not None and is_at_rest and not waits

    def _check_expiry(self) -> None:
        """Offsets expire by KIP-211 and KIP-496."""
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
        assert found == wanted, (reference.state, read)

    def _pass(self, *, is_asked_next: bool) -> None:
        """Let some time pass, and stop wherever something is due."""
        long_ms = (3_000,) if self._is_calm else (3_000, 7_000, 20_000)
        end_ms = self._now_ms + self._draws.one((0, 0, 10, 500, *long_ms))
        while (next_ms := self._coordinator.next_ms()) is not None and next_ms <= end_ms:
            if next_ms != self._reference.next_ms and (self._reference.next_ms or 0) > next_ms:
                break
            self._now_ms = max(self._now_ms, next_ms)
            self._reference.pass_to(self._now_ms)
            self._compare(self._coordinator.advance(TimeMs(self._now_ms)), "time")
        self._now_ms = end_ms
        self._reference.pass_to(end_ms)
        if is_asked_next and self._draws.is_one_in(3):
            return  # Who is asked lets happen first what is due.
        self._compare(self._coordinator.advance(TimeMs(end_ms)), "time")

    def _compare(self, outputs: tuple[Any, ...], what: str) -> None:
        """Compare the two after a step, and note what members were answered."""
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
                assert read == kept, what
                assert is_same, (what, record)
                assert (again.state is GroupState.EMPTY) != bool(kept), (what, record)
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
        theirs, reference.outputs = reference.outputs, []
        assert ours == theirs, what
        held = ("".join(map(str.capitalize, group.state.name.split("_"))), group.generation, group.leader_id or "")
        assert held == (reference.state, reference.generation, reference.leader), what
        self._compare_members(what)
        departed = [(member.member_id, why.value) for member, why in self._coordinator.take_departed()]
        known, reference.departed = reference.departed, []
        assert departed == known, what
        assert self._coordinator.next_ms() == reference.next_ms, what

    def _compare_members(self, what: str) -> None:
        """Compare what members said, wait for and were given, and who else is awaited."""
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
        assert dict[str, Any](ours) == theirs, what
        assert (group.pending_joins, group.pending_syncs) == (reference.pending, reference.unsynced), what


TestClassicMachine = ClassicMachine.TestCase
TestClassicMachine.settings = settings(max_examples=30, stateful_step_count=40)


@pytest.mark.deep
class TestLongClassicMachine(ClassicMachine.TestCase):  # type: ignore[misc, name-defined] # made by Hypothesis.
    settings = settings(max_examples=300, stateful_step_count=60)
