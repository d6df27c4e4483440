"""Consumer groups, told as stories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.assignors import Subscriber
from broker.group.consumer.coordinator import ConsumerCoordinator
from broker.group.consumer.group import ConsumerGroup, ConsumerGroupState
from broker.group.consumer.member import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    MemberState,
    Partitions,
)
from broker.group.consumer.target import ConsumerOptions, GroupContext, new_group
from broker.group.members import Departure, InstanceId, MemberId
from broker.ids import PartitionId, TopicPartition
from broker.releases import Release
from broker.units import DurationMs, TimeMs

AT_ONCE = Release("4.2")
"""The newest release that computes every target at once; 4.3 is told of in test_target."""


def parts(*ids: int, topic: str = "t") -> Partitions:
    return frozenset(TopicPartition(topic, PartitionId(partition)) for partition in ids)


class Scripted:
    """An assignor that gives what the test has written down."""

    name = "scripted"

    def __init__(self) -> None:
        self.plan: dict[str, Partitions] = {}

    def assign(
        self, members: Sequence[Subscriber], partition_counts: Mapping[str, int]
    ) -> Mapping[MemberId, Partitions]:
        return {member.member_id: self.plan.get(member.member_id, frozenset()) for member in members}


class Dealer:
    """An assignor that deals the partitions to the members by name."""

    name = "dealer"

    def assign(
        self, members: Sequence[Subscriber], partition_counts: Mapping[str, int]
    ) -> Mapping[MemberId, Partitions]:
        names = sorted(member.member_id for member in members)
        every = sorted(p for topic, count in partition_counts.items() for p in parts(*range(count), topic=topic))
        return {name: frozenset(every[index :: len(names)]) for index, name in enumerate(names)}


class Driver:
    def __init__(self, *, size_max: int = 100, release: Release = AT_ONCE) -> None:
        self.plan = Scripted()
        options = ConsumerOptions(size_max=size_max, release=release)
        self.context = GroupContext(options=options, assignors=(self.plan, Dealer()), topics={"t": 2})
        self.coordinator = ConsumerCoordinator(new_group("g", release), self.context, SplitMix64(1))
        self.now_ms = 0

    @property
    def group(self) -> ConsumerGroup:
        return self.coordinator.group

    def beat(self, member_id: str, epoch: int, **named: Any) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(member_id=MemberId(member_id), epoch=epoch, **named)
        told = self.coordinator.handle(request, TimeMs(self.now_ms))
        assert told.group is self.group
        self.group.check_invariants()
        return told.answer

    def join(self, member_id: str, **named: Any) -> ConsumerGroupHeartbeatResponse:
        first = {
            "subscribed_topics": frozenset({"t"}),
            "rebalance_timeout_ms": DurationMs(300_000),
            "owned": frozenset(),
            **named,
        }
        return self.beat(member_id, 0, **first)

    def at(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.coordinator.advance(TimeMs(now_ms))


def moving(release: Release = AT_ONCE) -> Driver:
    """a owns t0 and t1; b has joined, and the target gives it t1."""
    driver = Driver(release=release)
    driver.plan.plan = {"a": parts(0, 1)}
    driver.join("a")
    driver.plan.plan = {"a": parts(0), "b": parts(1)}
    driver.join("b")
    return driver


def test_a_partition_moves_only_when_its_owner_has_given_it_back() -> None:
    driver = moving()
    waiting = driver.group.members[MemberId("b")]
    assert (waiting.state, waiting.epoch, waiting.assigned) == (MemberState.UNRELEASED_PARTITIONS, 2, frozenset())
    asked = driver.beat("a", 1, owned=parts(0, 1))
    assert (asked.epoch, asked.assignment) == (1, parts(0))
    assert driver.beat("b", 2).assignment is None
    released = driver.beat("a", 1, owned=parts(0))
    assert (released.epoch, released.assignment) == (2, None)
    assert driver.beat("b", 2).assignment == parts(1)
    assert driver.group.state is ConsumerGroupState.STABLE


@pytest.mark.parametrize("back_ms", [9_999, 10_000])
def test_a_static_member_that_leaves_for_a_while_owes_nothing_and_is_awaited_for_its_session(back_ms: int) -> None:
    """The rebalance timer, of 10 s, is of the epoch in which the member was asked to revoke; it has left that since."""
    driver = Driver()
    patient = {"rebalance_timeout_ms": DurationMs(10_000)}
    driver.plan.plan = {"a": parts(0, 1)}
    driver.join("a", instance_id=InstanceId("i"), **patient)
    driver.plan.plan = {"a": parts(0), "b": parts(1)}
    driver.join("b")
    driver.beat("a", 1, owned=parts(0, 1))
    driver.beat("a", -2, instance_id=InstanceId("i"))
    driver.at(back_ms)
    assert MemberId("a") in driver.group.members
    driver.join("a2", instance_id=InstanceId("i"), **patient)
    driver.at(44_999)
    assert set(driver.group.members) == {"a2", "b"}


def test_each_departure_has_its_reason() -> None:
    driver = Driver()
    patient = {"rebalance_timeout_ms": DurationMs(10_000)}
    driver.plan.plan = {"a": parts(0, 1)}
    driver.join("a", **patient)
    for name in ("s", "left", "silent"):
        driver.join(name, instance_id=InstanceId(f"i-{name}"))
    driver.beat("s", -2, instance_id=InstanceId("i-s"))
    driver.join("s2", instance_id=InstanceId("i-s"))
    driver.beat("left", -1)
    driver.plan.plan = {}
    driver.join("b")
    driver.beat("a", driver.group.members[MemberId("a")].epoch, owned=parts(0, 1))
    driver.at(10_000)
    for name in ("b", "s2"):
        driver.beat(name, driver.group.members[MemberId(name)].epoch)
    driver.at(45_000)
    told = [(member.member_id, why) for member, why in driver.coordinator.take_departed()]
    assert told == [
        ("s", Departure.REPLACED),
        ("left", Departure.LEFT),
        ("a", Departure.REVOKE),
        ("silent", Departure.SESSION),
    ]
    assert driver.coordinator.take_departed() == ()


STEPS = st.tuples(
    st.sampled_from(["join", "beat", "obey", "leave", "wait"]), st.sampled_from("abc"), st.integers(0, 60_000)
)


@given(st.lists(STEPS, max_size=40), st.sampled_from(["4.0", "4.1", "4.2", "4.3"]))
def test_no_two_members_ever_own_a_partition_and_all_arrive_when_left_alone(
    steps: list[tuple[str, str, int]], release: str
) -> None:
    driver = Driver(release=Release(release))
    driver.coordinator.context = GroupContext(options=driver.context.options, assignors=(Dealer(),), topics={"t": 5})
    clients: dict[str, tuple[int, Partitions, Partitions]] = {}  # Epoch, what it owns, what it was told to own.

    def told(name: str, answer: ConsumerGroupHeartbeatResponse) -> None:
        if answer.error is not ErrorCode.NONE:
            clients.pop(name, None)
            return
        _, owned, target = clients.get(name, (0, frozenset(), frozenset()))
        told_to_own = target if answer.assignment is None else answer.assignment
        # A client takes what it is given at once, and gives back only when it comes to it.
        clients[name] = (answer.epoch, owned | told_to_own, told_to_own)

    def no_partition_is_owned_twice() -> None:
        live = [owned for name, (_, owned, _) in clients.items() if MemberId(name) in driver.group.members]
        assert sum(map(len, live)) == len(frozenset().union(*live))

    for action, name, number in steps:
        if action == "wait":
            driver.at(driver.now_ms + number)
        elif action == "join" and name not in clients:
            told(name, driver.join(name))
        elif action == "leave" and name in clients:
            driver.beat(name, -1)
            clients.pop(name)
        elif name in clients:
            epoch, owned, target = clients[name]
            if action == "obey":
                owned &= target
                clients[name] = (epoch, owned, target)
            told(name, driver.beat(name, epoch, owned=owned))
        no_partition_is_owned_twice()
    for _ in range(6):
        driver.at(driver.now_ms + 1_000)
        for name in sorted(clients):
            epoch, owned, target = clients[name]
            clients[name] = (epoch, owned & target, target)
            told(name, driver.beat(name, epoch, owned=owned & target))
            no_partition_is_owned_twice()
    if clients:
        alive = {name for name in clients if MemberId(name) in driver.group.members}
        assert {str(name) for name in driver.group.members} >= alive
        if len(driver.group.members) == len(clients):
            assert driver.group.state is ConsumerGroupState.STABLE
