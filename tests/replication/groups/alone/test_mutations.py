"""Each invariant is seen red by breaking the model once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.group.assignors import Subscriber
from broker.group.classic import GROUP_TRANSITIONS, ClassicGroup, GroupInput, GroupState, JoinedMember
from broker.group.classic import group as classic_group
from broker.group.consumer import ConsumerGroup, ConsumerGroupState, ConsumerMember, heartbeats, reconciled
from broker.group.consumer.member import NOT_OWNED
from broker.group.members import GroupRecord, MemberId
from broker.group.messages import OffsetFetchRequest, OffsetFetchResponse
from broker.group.offsets import ExpiryRule
from broker.group.protocol import write_assignment
from broker.group.service import GroupEntry, GroupService, OffsetRecord
from broker.ids import TopicPartition
from placement.consumer.sticky.assignor import CooperativeStickyAssignor, StickyAssignor
from replication.groups.alone.group_run import run_group
from replication.groups.alone.scenarios import SCENARIOS
from replication.groups.client.assigning import ClientAssignor, GroupProtocol, ServerSideAssignor
from replication.groups.offsets_log import StoredGroup
from tests.replication.groups.alone.runs import CONSUMER, COOPERATIVE, EAGER, codes, watched

Patch = pytest.MonkeyPatch


def test_g1_and_g2_an_assignor_that_gives_partitions_to_all(monkeypatch: Patch) -> None:
    def to_all(
        self: ClientAssignor, members: Sequence[JoinedMember], partition_counts: Mapping[str, int]
    ) -> tuple[tuple[MemberId, bytes], ...]:
        everything = [TopicPartition("t", number) for number in range(6)]  # type: ignore[arg-type]  # NewType of int.
        return tuple((member.member_id, write_assignment(everything)) for member in members)

    monkeypatch.setattr(ClientAssignor, "assign", to_all)
    assert {"G1", "G2"} <= codes("S60", EAGER)


def test_g2_a_cooperative_assignor_that_withholds_nothing(monkeypatch: Patch) -> None:
    monkeypatch.setattr(
        CooperativeStickyAssignor, "assign", lambda self, group, entropy: StickyAssignor().assign(group, entropy)
    )
    found = [finding for finding in watched("S66", COOPERATIVE).found() if finding.code == "G2"]
    assert "both own t-" in found[0].what
    assert found[0].at_ms > 60_000


def test_g2_and_g4_a_coordinator_that_gives_what_has_not_been_given_back(monkeypatch: Patch) -> None:
    def impatient(*given: Any, **named: Any) -> ConsumerMember:
        return reconciled(*given, **{**named, "owner_epoch": lambda partition: NOT_OWNED})

    monkeypatch.setattr(heartbeats, "reconciled", impatient)
    assert codes("S67", CONSUMER) == {"G2", "G4"}


def test_g3_a_target_that_forgets_a_partition(monkeypatch: Patch) -> None:
    assign = ServerSideAssignor.assign

    def forgetful(
        self: ServerSideAssignor, members: Sequence[Subscriber], partition_counts: Mapping[str, int]
    ) -> Mapping[MemberId, frozenset[TopicPartition]]:
        shares = assign(self, members, partition_counts)
        return {name: frozenset(one for one in share if one.partition) for name, share in shares.items()}

    monkeypatch.setattr(ServerSideAssignor, "assign", forgetful)
    assert watched("S69", CONSUMER).found()[0].what == "group: the target has 5 of 6 partitions"


def test_g5_an_epoch_that_is_forgotten_while_a_partition_is_still_being_given_back(monkeypatch: Patch) -> None:
    def of_assigned(self: ConsumerGroup, partition: TopicPartition) -> int:
        return next((one.epoch for one in self.members.values() if partition in one.assigned), NOT_OWNED)

    monkeypatch.setattr(ConsumerGroup, "owner_epoch", of_assigned)
    assert {"G5", "G2"} <= codes("S68", CONSUMER)


def test_g6_a_group_that_calls_itself_stable_too_early(monkeypatch: Patch) -> None:
    monkeypatch.setattr(ConsumerGroup, "state", property(lambda self: ConsumerGroupState.STABLE))
    assert "G6" in codes("S67", CONSUMER)


@pytest.mark.parametrize("protocol", [EAGER, COOPERATIVE])
def test_g7_a_coordinator_that_takes_every_commit(monkeypatch: Patch, protocol: GroupProtocol) -> None:
    monkeypatch.setattr(GroupService, "commit_error", lambda self, request: ErrorCode.NONE)
    assert any(finding.code == "G7" and "is taken" in finding.what for finding in watched("S63", protocol).found())


def entries_become(monkeypatch: Patch, change: Callable[[GroupEntry], GroupEntry | None]) -> None:
    """Let every reader of stored groups get other entries."""
    entries = StoredGroup.entries

    def changed(self: StoredGroup) -> Iterator[GroupEntry]:
        return (each for each in map(change, entries(self)) if each is not None)

    monkeypatch.setattr(StoredGroup, "entries", changed)


def test_g7_a_coordinator_that_reads_no_offsets_when_it_takes_over(monkeypatch: Patch) -> None:
    entries_become(monkeypatch, lambda each: None if isinstance(each, OffsetRecord) else each)
    assert "G7" in codes("failover", EAGER)


@pytest.mark.deep
def test_g8_offsets_that_age_while_the_group_rebalances(monkeypatch: Patch) -> None:
    monkeypatch.setattr(ClassicGroup, "expiry_rule", lambda self, subscribed: ExpiryRule())
    assert "G8" in codes("S72", EAGER)


def test_g9_a_group_that_is_stable_before_its_members_have_synced(monkeypatch: Patch) -> None:
    hasty = {
        **GROUP_TRANSITIONS,
        (GroupState.PREPARING_REBALANCE, GroupInput.JOINED): GroupState.STABLE,
        (GroupState.STABLE, GroupInput.ASSIGNED): GroupState.STABLE,
    }
    monkeypatch.setattr(classic_group, "GROUP_TRANSITIONS", MappingProxyType(hasty))
    assert "G9" in codes("S60", EAGER)


def test_g9_a_member_whose_epoch_falls(monkeypatch: Patch) -> None:
    moved = ConsumerMember.moved

    def falling(self: ConsumerMember, state: Any, epoch: int, assigned: Any, revoking: Any) -> ConsumerMember:
        return moved(self, state, epoch - 2 * (self.epoch > 1 and epoch > 3), assigned, revoking)

    monkeypatch.setattr(ConsumerMember, "moved", falling)
    assert "G9" in codes("S61", CONSUMER)


@pytest.mark.parametrize("protocol", [EAGER, CONSUMER])
def test_g10_a_coordinator_that_reads_another_group(monkeypatch: Patch, protocol: GroupProtocol) -> None:
    def other(each: GroupEntry) -> GroupEntry:
        if isinstance(each, GroupRecord):
            return attrs.evolve(each, generation=each.generation + 1)
        return attrs.evolve(each, epoch=each.epoch + 1) if isinstance(each, ConsumerGroup) else each

    assert codes("S61", protocol) == set()
    entries_become(monkeypatch, other)
    assert codes("S61", protocol) == {"G10"}


def test_gs_a_member_that_begins_behind_what_the_group_has_read(monkeypatch: Patch) -> None:
    fetch = GroupService._fetch

    def ahead(self: GroupService, request: OffsetFetchRequest) -> OffsetFetchResponse:
        found = fetch(self, request)
        return attrs.evolve(found, offsets=tuple(None if each is None else each + 50 for each in found.offsets))

    monkeypatch.setattr(GroupService, "_fetch", ahead)
    group_run = run_group(SCENARIOS["S61"], EAGER, 1)
    assert {finding.code for finding in group_run.findings} == {"GS"}
