"""Each invariant of a consumer group is broken by the smallest state that breaks it."""

from __future__ import annotations

import attrs

from broker.entropy import SplitMix64
from broker.group.classic import GroupState
from broker.group.consumer import ConsumerGroup, ConsumerMember, MemberState
from broker.group.members import MemberId
from broker.group.records import CommittedOffset
from broker.group.service import GroupService
from broker.ids import Offset, TopicPartition, partition_id
from broker.units import DurationMs, TimeMs
from replication.groups.invariants import epoch_meaning, legal_target, premature_expiry
from tests.broker.group.test_service import OPTIONS

A, B = MemberId("a"), MemberId("b")


def parts(*numbers: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition("t", partition_id(number)) for number in numbers)


def member(name: MemberId, *assigned: int, epoch: int = 2) -> ConsumerMember:
    return ConsumerMember(member_id=name, subscribed_topics=frozenset({"t"}), epoch=epoch, assigned=parts(*assigned))


def group(*members: ConsumerMember, **target: tuple[int, ...]) -> ConsumerGroup:
    return ConsumerGroup(
        group_id="g",
        epoch=2,
        target_epoch=2,
        members={each.member_id: each for each in members},
        target={MemberId(name): parts(*numbers) for name, numbers in target.items()},
        topics={"t": 3},
    )


def test_g3_a_target_with_a_partition_too_few_or_twice() -> None:
    both = member(A), member(B)
    assert [each.what for each in legal_target(group(*both, a=(0, 1), b=(2,)))] == []
    assert [each.what for each in legal_target(group(*both, a=(0,), b=(2,)))] == ["the target has 2 of 3 partitions"]
    assert [each.what for each in legal_target(group(*both, a=(0, 1), b=(1, 2)))] == [
        "the target gives t-1 to 2 members"
    ]


def test_g4_a_member_at_the_target_owns_what_another_still_gives_back() -> None:
    giving = attrs.evolve(member(B, 1, epoch=1), state=MemberState.UNREVOKED_PARTITIONS, revoking=parts(0))
    assert list(epoch_meaning(group(member(A, 2), giving))) == []
    (found,) = epoch_meaning(group(member(A, 0), giving))
    assert (found.code, found.what) == ("G4", "t-0 is assigned to a and at b")


def test_g8_an_offset_of_a_stable_group_that_is_forgotten_before_its_retention_has_passed() -> None:
    service = GroupService("g", OPTIONS, SplitMix64(1))
    service.classic.group.state = GroupState.STABLE
    value = CommittedOffset(offset=Offset(1), committed_ms=TimeMs(100))
    assert list(premature_expiry(value, "t", service, DurationMs(50), TimeMs(150))) == []
    (found,) = premature_expiry(value, "t", service, DurationMs(50), TimeMs(149))
    assert found.what == "an offset of t is forgotten 49 ms after its commit in STABLE"
