"""Every invariant of groups is seen broken once: the model is broken on purpose, and the checkers say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.group import service as service_module
from broker.group.assignors import Subscriber
from broker.group.classic import ClassicGroup, JoinedMember
from broker.group.consumer import ConsumerGroup, ConsumerMember, heartbeats, reconciled
from broker.group.members import InstanceId, MemberId
from broker.group.offsets import Commit, CommittedOffsets, ExpiryRule
from broker.group.protocol import write_assignment
from broker.ids import Offset, TopicPartition
from broker.units import DurationMs, TimeMs
from replication.groups import GROUP_INVARIANTS, GroupsExtension, shard, with_groups
from replication.groups.client.assigning import ClientAssignor, GroupProtocol, ServerSideAssignor
from replication.groups.client.client import SubscriptionState
from replication.groups.offsets_log import Journal
from replication.groups.plan import EventKind
from replication.groups.shard import Shard
from replication.simulation import Fault, FaultKind, run, swarm, varied
from tests.replication.groups.builders import OPTIONS, act, codes, groups_of, member, ran, t

SHORT = attrs.evolve(OPTIONS, duration_ms=DurationMs(25_000))
KILL = Fault(TimeMs(20_000), FaultKind.KILL, 0, DurationMs(20_000))


def two(protocol: GroupProtocol) -> GroupsExtension:
    return groups_of(member("a", protocol), member("b", protocol, start_ms=10_000))


def restarted(*, crash_ms: int, start_ms: int) -> GroupsExtension:
    """Return groups of one member that dies, and asks for its offsets when it starts again."""
    events = act(crash_ms, EventKind.CRASH), act(start_ms, EventKind.START)
    return groups_of(member("a", GroupProtocol.EAGER, *events, session_timeout_ms=10_000))


def test_two_members_under_a_fault_break_nothing() -> None:
    """The same runs as below, with the model as it is."""
    for protocol in GroupProtocol:
        assert codes(ran(two(protocol), KILL)) == set()


def test_g1_a_leader_that_gives_everything_to_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    def assign(
        self: ClientAssignor, members: Sequence[JoinedMember], counts: Mapping[str, int]
    ) -> tuple[tuple[MemberId, bytes], ...]:
        return tuple((one.member_id, write_assignment(t(number) for number in range(3))) for one in members)

    monkeypatch.setattr(ClientAssignor, "assign", assign)
    assert {"G1", "G2"} <= codes(ran(two(GroupProtocol.EAGER), options=SHORT))


def test_g2_an_assignor_that_gives_away_what_a_static_member_has_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Near to what G2 excuses: members are static and cooperative, and one is given what another has not given up."""
    real = ClientAssignor.assign

    def assign(
        self: ClientAssignor, members: Sequence[JoinedMember], counts: Mapping[str, int]
    ) -> tuple[tuple[MemberId, bytes], ...]:
        if len(members) == 1:
            return real(self, members, counts)
        return tuple((one.member_id, write_assignment([t(0)] if one.instance_id == "b" else [])) for one in members)

    static = [
        attrs.evolve(
            each, spec=attrs.evolve(each.spec, instance_id=InstanceId(each.spec.name), revoke_ms=DurationMs(1_000))
        )
        for each in two(GroupProtocol.COOPERATIVE).plan.members
    ]
    assert codes(ran(groups_of(*static))) == set()
    monkeypatch.setattr(ClientAssignor, "assign", assign)
    found = ran(groups_of(*static)).findings
    assert ("G2", "group: a and b both own t-0") in {(finding.code, finding.what) for finding in found}


def test_g2_g4_a_coordinator_that_withholds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_waiting(*given: Any, **named: Any) -> ConsumerMember:
        return reconciled(*given, **{**named, "owner_epoch": lambda partition: -1})

    monkeypatch.setattr(heartbeats, "reconciled", without_waiting)
    assert {"G2", "G4"} <= codes(ran(two(GroupProtocol.CONSUMER), options=SHORT))


def test_g3_an_assignor_that_forgets_a_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ServerSideAssignor.assign

    def assign(
        self: ServerSideAssignor, members: Sequence[Subscriber], counts: Mapping[str, int]
    ) -> dict[MemberId, frozenset[TopicPartition]]:
        return {name: share - {t(0)} for name, share in real(self, members, counts).items()}

    monkeypatch.setattr(ServerSideAssignor, "assign", assign)
    assert "G3" in codes(ran(two(GroupProtocol.CONSUMER), options=SHORT))


def test_g5_an_epoch_of_a_partition_that_is_forgotten_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    def owner_epoch(self: ConsumerGroup, partition: TopicPartition) -> int:
        return next((one.epoch for one in self.members.values() if partition in one.assigned), -1)

    monkeypatch.setattr(ConsumerGroup, "owner_epoch", owner_epoch)
    assert "G5" in codes(ran(two(GroupProtocol.CONSUMER), options=SHORT))


def test_g6_a_member_that_is_taken_for_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConsumerMember, "is_reconciled_to", lambda self, epoch: True)
    assert "G6" in codes(ran(two(GroupProtocol.CONSUMER), options=SHORT))


def test_g7_a_coordinator_that_takes_every_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = groups_of(
        member("a", GroupProtocol.EAGER, act(15_000, EventKind.FREEZE, 30_000), session_timeout_ms=10_000),
        member("b", GroupProtocol.EAGER, session_timeout_ms=10_000),
    )
    assert codes(ran(groups)) == set()
    monkeypatch.setattr(ClassicGroup, "commit_error", lambda *given, **named: ErrorCode.NONE)
    again = groups_of(*groups.plan.members)
    assert "G7" in codes(ran(again))


def test_g7_a_coordinator_that_reads_no_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Journal.read

    def read(self: Journal, *given: Any) -> Any:
        groups = real(self, *given)
        for group in groups.values():
            group.offsets.clear()
        return groups

    monkeypatch.setattr(Journal, "read", read)
    groups = restarted(crash_ms=19_500, start_ms=31_000)
    assert "G7" in codes(ran(groups, KILL))
    assert [each for each in groups.history.impossible() if "was acknowledged to" in each.why]


def test_g7_a_coordinator_that_answers_before_the_others_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut off from its followers it acknowledges commits that no other broker will ever know of."""
    real = Shard._append

    def append(self: Shard, *given: Any) -> ErrorCode:
        error = real(self, *given)
        return ErrorCode.NONE if error is None else error

    cut = Fault(TimeMs(20_000), FaultKind.CUT_PEERS, 0, DurationMs(30_000))
    end = Fault(TimeMs(35_000), FaultKind.KILL, 0, DurationMs(20_000))
    assert codes(ran(restarted(crash_ms=34_000, start_ms=46_000), cut, end)) == set()
    monkeypatch.setattr(Shard, "_append", append)
    assert "G7" in codes(ran(restarted(crash_ms=34_000, start_ms=46_000), cut, end))


def test_g7_a_coordinator_that_never_shows_a_commit_that_had_timed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen at the next request after the high watermark has passed the commit, not when the cluster is quiet."""
    options = with_groups(swarm(4, DurationMs(60_000)))
    monkeypatch.setattr(Shard, "_show_committed", lambda _self, _host: None)
    first, *_ = run(options, extension=GroupsExtension.drawn(options, 2)).findings
    assert (first.code, first.at_ms < 50_000) == ("G7", True)


def test_g7_offsets_that_are_shown_before_they_are_stable(monkeypatch: pytest.MonkeyPatch) -> None:
    options = with_groups(varied(0, DurationMs(60_000)))
    monkeypatch.setattr(shard, "_is_unstable", lambda _led: False)
    first, *_ = run(options, extension=GroupsExtension.drawn(options, 2)).findings
    assert (first.code, "offsets are shown while" in first.what) == ("G7", True)


def test_g8_offsets_that_are_forgotten_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "EXPIRY_CHECK_MS", 20_000)
    monkeypatch.setattr(ClassicGroup, "expiry_rule", lambda self, subscribed: ExpiryRule())
    monkeypatch.setattr(CommittedOffsets, "_is_expired", lambda *given: True)
    assert "G8" in codes(ran(two(GroupProtocol.EAGER)))


def test_g9_an_epoch_that_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ConsumerGroup.without_member

    def without_member(self: ConsumerGroup, member_id: MemberId) -> ConsumerGroup:
        return attrs.evolve(real(self, member_id), epoch=self.epoch - 1, target_epoch=self.epoch - 1)

    monkeypatch.setattr(ConsumerGroup, "without_member", without_member)
    groups = groups_of(
        member("a", GroupProtocol.CONSUMER), member("b", GroupProtocol.CONSUMER, act(20_000, EventKind.CLOSE))
    )
    assert "G9" in codes(ran(groups))


def test_gs_a_consumer_that_commits_what_it_has_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    real = SubscriptionState.commits

    def commits(self: SubscriptionState) -> tuple[Commit, ...]:
        return tuple(attrs.evolve(one, offset=Offset(one.offset + 3)) for one in real(self))

    monkeypatch.setattr(SubscriptionState, "commits", commits)
    assert "GS" in codes(ran(two(GroupProtocol.EAGER), options=SHORT))


def test_l8_a_leader_that_gives_nothing_to_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    def assign(
        self: ClientAssignor, members: Sequence[JoinedMember], counts: Mapping[str, int]
    ) -> tuple[tuple[MemberId, bytes], ...]:
        return tuple((one.member_id, write_assignment(())) for one in members)

    monkeypatch.setattr(ClientAssignor, "assign", assign)
    options = attrs.evolve(OPTIONS, heal_ms_max=DurationMs(5_000))
    findings = ran(two(GroupProtocol.EAGER), options=options).findings
    assert [finding.what for finding in findings] == ["group: not every partition is given to somebody (L8)"]


def test_every_invariant_of_groups_has_a_test_here() -> None:
    reported = {name.split("_")[part] for name in globals() if name.startswith("test_g") for part in (1, 2)}
    elsewhere = {"g10", "g11", "g12", "g13"}  # Seen in `alone.test_mutations` and `test_accounts`.
    assert {code.lower() for code in GROUP_INVARIANTS} - elsewhere <= reported
