"""What an assignor is told of the members, by a classic group's leader and by the coordinator of a consumer group."""

from __future__ import annotations

import pytest

from broker.entropy import SplitMix64
from broker.group.assignors import ListedPartitions, Subscriber
from broker.group.classic import JoinedMember
from broker.group.members import MemberId
from broker.group.protocol import Subscription, read_assignment, sticky_memory
from broker.ids import PartitionId, TopicPartition
from replication.groups.client.assigning import ClientAssignor, GroupProtocol, ServerSideAssignor, takes
from tests.replication.groups.client.script import P0, P1

A, B = MemberId("a"), MemberId("b")


def subscriber(member_id: MemberId, *topics: str, target: frozenset[TopicPartition] = frozenset()) -> Subscriber:
    return Subscriber(
        member_id=member_id, instance_id=None, rack=None, subscribed_topics=frozenset(topics), target=target
    )


@pytest.mark.parametrize(
    ("name", "by_user_data", "is_kept"),
    [
        ("sticky", True, True),
        ("sticky", False, False),
        ("cooperative-sticky", True, False),
        ("cooperative-sticky", False, True),
    ],
)
def test_former_partitions_are_in_the_user_data_of_sticky_and_in_the_subscription_of_the_cooperative_one(
    name: str, by_user_data: bool, is_kept: bool
) -> None:
    """StickyAssignor.memberData and CooperativeStickyAssignor.memberData; `a` had P1 and `b` P0 in generation 3."""
    members = [
        JoinedMember(
            member_id,
            None,
            Subscription(
                topics=("t",),
                owned=() if by_user_data else (held,),
                generation=3,
                user_data=sticky_memory([held], 3) if by_user_data else b"",
            ).to_bytes(),
        )
        for member_id, held in ((A, P1), (B, P0))
    ]
    assigned = ClientAssignor.load(name, SplitMix64(1)).assign(members, {"t": 2})
    kept = {A: {P1}, B: {P0}}
    assert ({member_id: read_assignment(share) for member_id, share in assigned} == kept) == is_kept


@pytest.mark.parametrize("kept", [0, 16])
def test_a_member_that_must_give_up_a_partition_keeps_the_first_of_its_record(kept: int) -> None:
    """0 and 16 share a bin of Kafka's HashSet of 16 bins, in which they stand in the order of the record."""
    numbers = [TopicPartition("t", PartitionId(number)) for number in range(17)]
    recorded = ListedPartitions([numbers[kept], numbers[16 - kept]])
    others = [subscriber(MemberId(f"m{n}"), "t", target=frozenset([numbers[n]])) for n in range(1, 16)]
    members = [subscriber(A, "t", target=recorded), *others, subscriber(B, "t")]
    target = ServerSideAssignor.load("uniform", SplitMix64(1)).assign(members, {"t": 17})
    assert (target[A], target[B]) == ({numbers[kept]}, {numbers[16 - kept]})
    assert isinstance(target[A], ListedPartitions)


@pytest.mark.parametrize(("name", "kafkas"), [("uniform", "uniform"), ("server-range", "range")])
def test_a_coordinator_assigns_the_topics_that_exist_to_who_subscribes_them(name: str, kafkas: str) -> None:
    """TargetAssignmentBuilder leaves out topics that are not in the metadata image."""
    assignor = ServerSideAssignor.load(name, SplitMix64(1))
    members = [subscriber(A, "t", "gone"), subscriber(B, "t", "u")]
    shares = assignor.assign(members, {"t": 2, "u": 1})
    u = TopicPartition("u", PartitionId(0))
    assert (assignor.name, set(shares)) == (kafkas, {A, B})
    assert u in shares[B]
    assert shares[A] | shares[B] == {P0, P1, u}
    assert not shares[A] & shares[B]


def test_the_uniform_assignor_is_told_what_each_member_has() -> None:
    """UniformAssignor is sticky: a target that is balanced stays."""
    members = [subscriber(member_id, "t", target=frozenset({held})) for member_id, held in ((A, P1), (B, P0))]
    assert ServerSideAssignor.load("uniform", SplitMix64(1)).assign(members, {"t": 2}) == {A: {P1}, B: {P0}}


@pytest.mark.parametrize(("name", "has_memory"), [("sticky", True), ("cooperative-sticky", False), ("range", False)])
def test_the_sticky_assignor_alone_remembers_its_last_assignment_in_the_user_data(name: str, has_memory: bool) -> None:
    """StickyAssignor.subscriptionUserData: null before the first assignment."""
    assignor = ClientAssignor.load(name, SplitMix64(1))
    assert assignor.user_data() == b""
    assignor.on_assignment(frozenset({P1}), 3)
    assert assignor.user_data() == (sticky_memory([P1], 3) if has_memory else b"")


@pytest.mark.parametrize(
    ("assignor", "protocols"),
    [
        ("range", {GroupProtocol.EAGER}),
        ("sticky", {GroupProtocol.EAGER}),
        ("cooperative-sticky", {GroupProtocol.COOPERATIVE}),
        ("uniform", {GroupProtocol.CONSUMER}),
        ("server-range", {GroupProtocol.CONSUMER}),
        ("random", {GroupProtocol.EAGER, GroupProtocol.CONSUMER}),
    ],
)
def test_an_assignor_is_of_the_protocols_that_kafka_has_it_for(assignor: str, protocols: set[GroupProtocol]) -> None:
    """partition.assignment.strategy and group.consumer.assignors; what is not Kafka's own may be either's."""
    assert {each for each in GroupProtocol if takes(each, assignor)} == protocols
