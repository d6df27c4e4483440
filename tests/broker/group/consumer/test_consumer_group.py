"""Consumer groups in scenarios: partitions that move, targets at intervals, commits, and broken invariants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.config.setting import Scope
from broker.config.settings import Settings
from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.assignors import Subscriber
from broker.group.consumer.coordinator import ConsumerCoordinator
from broker.group.consumer.group import ConsumerGroup, ConsumerGroupState
from broker.group.consumer.member import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerMember,
    HeartbeatReport,
    MemberState,
    Partitions,
    TargetAssignment,
    reconciled,
)
from broker.group.consumer.target import ConsumerOptions, GroupContext, new_group
from broker.group.members import MemberId
from broker.ids import PartitionId, TopicPartition
from broker.releases import NEWEST, Release
from broker.units import DurationMs, TimeMs

AT_ONCE = Release("4.2")
"""The newest release that computes every target at once; later ones wait for an interval."""


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
        handled = self.coordinator.handle(request, TimeMs(self.now_ms))
        assert handled.group is self.group
        self.group.check_invariants()
        return handled.answer

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


STEPS = st.tuples(
    st.sampled_from(["join", "beat", "obey", "leave", "wait"]), st.sampled_from("abc"), st.integers(0, 60_000)
)


@given(st.lists(STEPS, max_size=40), st.sampled_from(["4.0", "4.1", "4.2", "4.3"]))
def test_no_two_members_ever_own_a_partition_and_all_arrive_when_left_alone(
    steps: list[tuple[str, str, int]], release: str
) -> None:
    driver = Driver(release=Release(release))
    driver.coordinator.context = GroupContext(options=driver.context.options, assignors=(Dealer(),), topics={"t": 5})
    clients: dict[str, tuple[int, Partitions, Partitions]] = {}  # Epoch, what it owns, what it was given last.

    def take(name: str, answer: ConsumerGroupHeartbeatResponse) -> None:
        if answer.error is not ErrorCode.NONE:
            clients.pop(name, None)
            return
        _, owned, target = clients.get(name, (0, frozenset(), frozenset()))
        wanted = target if answer.assignment is None else answer.assignment
        # A client takes what it is given at once, and gives back only when it comes to it.
        clients[name] = (answer.epoch, owned | wanted, wanted)

    def no_partition_is_owned_twice() -> None:
        live = [owned for name, (_, owned, _) in clients.items() if MemberId(name) in driver.group.members]
        assert sum(map(len, live)) == len(frozenset().union(*live))

    for action, name, number in steps:
        if action == "wait":
            driver.at(driver.now_ms + number)
        elif action == "join" and name not in clients:
            take(name, driver.join(name))
        elif action == "leave" and name in clients:
            driver.beat(name, -1)
            clients.pop(name)
        elif name in clients:
            epoch, owned, target = clients[name]
            if action == "obey":
                owned &= target
                clients[name] = (epoch, owned, target)
            take(name, driver.beat(name, epoch, owned=owned))
        no_partition_is_owned_twice()
    for _ in range(6):
        driver.at(driver.now_ms + 1_000)
        for name in sorted(clients):
            epoch, owned, target = clients[name]
            clients[name] = (epoch, owned & target, target)
            take(name, driver.beat(name, epoch, owned=owned & target))
            no_partition_is_owned_twice()
    if clients:
        alive = {name for name in clients if MemberId(name) in driver.group.members}
        assert {str(name) for name in driver.group.members} >= alive
        if len(driver.group.members) == len(clients):
            assert driver.group.state is ConsumerGroupState.STABLE


A, B = MemberId("a"), MemberId("b")
START_MS = 5_000


def two(release: Release = NEWEST) -> Driver:
    """a joined at 5,000 ms and has t0 and t1; b joined at 5,400 ms, and a new target would give it t1."""
    driver = Driver(release=release)
    driver.at(START_MS)
    driver.plan.plan = {"a": parts(0, 1)}
    driver.join("a")
    driver.plan.plan = {"a": parts(0), "b": parts(1)}
    driver.at(START_MS + 400)
    driver.join("b")
    return driver


def test_who_joins_within_the_interval_gets_the_old_epoch_and_nothing() -> None:
    driver = two()
    joined = driver.group.members[B]
    assert (joined.epoch, joined.assigned, joined.state) == (2, frozenset(), MemberState.STABLE)
    assert (driver.group.epoch, driver.group.target_epoch, driver.group.state) == (3, 2, ConsumerGroupState.ASSIGNING)
    driver.at(START_MS + 999)
    assert (driver.beat("a", 2, owned=parts(0, 1)).epoch, driver.group.target_epoch) == (2, 2)
    driver.at(START_MS + 1_000)
    asked = driver.beat("a", 2, owned=parts(0, 1))
    assert (asked.epoch, asked.assignment, driver.group.target_epoch) == (2, parts(0), 3)
    assert driver.group.target_ms == START_MS + 1_000


def test_a_target_of_time_zero_is_of_unknown_age_here_and_to_the_next_coordinator() -> None:
    """0 is the default of AssignmentTimestampMs, which is not written: whoever reads the record knows no time."""
    driver = Driver(release=NEWEST)
    driver.join("a")
    assert (driver.group.target_epoch, driver.group.target_ms) == (2, None)
    driver.join("b")
    assert driver.group.target_epoch == 3


def test_a_commit_of_a_former_epoch_counts_for_a_partition_held_since_then() -> None:
    driver = two()
    driver.at(START_MS + 1_000)
    driver.beat("a", 2, owned=parts(0, 1))
    driver.beat("a", 2, owned=parts(0))
    driver.beat("b", 2, owned=frozenset())
    kept, moved = (TopicPartition("t", PartitionId(number)) for number in (0, 1))
    assert (driver.group.members[A].epoch, driver.group.members[B].assigned) == (3, parts(1))
    assert driver.group.commit_error(A, 2, [kept]) is ErrorCode.NONE
    assert driver.group.commit_error(A, 1, [kept]) is ErrorCode.STALE_MEMBER_EPOCH
    assert driver.group.commit_error(A, 2, [kept, moved]) is ErrorCode.STALE_MEMBER_EPOCH
    assert driver.group.commit_error(A, 4, [kept]) is ErrorCode.STALE_MEMBER_EPOCH
    assert driver.group.commit_error(B, 2, [moved]) is ErrorCode.STALE_MEMBER_EPOCH
    assert driver.group.commit_error(A, 2) is ErrorCode.STALE_MEMBER_EPOCH


def test_a_heartbeat_of_the_former_epoch_is_heard_of_who_has_given_up_what_moved() -> None:
    """ConsumerGroup's member may have missed an answer: it is let in unless it owns what is not its own any more."""
    driver = two()
    driver.at(START_MS + 1_000)
    driver.beat("a", 2, owned=parts(0, 1))
    assert driver.beat("a", 2, owned=parts(0)).epoch == 3
    assert driver.beat("a", 2, owned=parts(0, 1)).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert driver.beat("a", 2).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert driver.beat("a", 2, owned=parts(0)).error is ErrorCode.NONE


def at_its_target(owed: Partitions, *topics: str) -> tuple[ConsumerMember, TargetAssignment]:
    """Return a member that has what its target says and may owe partitions that it gave up, and that target."""
    member = ConsumerMember(
        member_id=MemberId("a"),
        epoch=2,
        previous_epoch=1,
        state=MemberState.UNREVOKED_PARTITIONS if owed else MemberState.STABLE,
        assigned=parts(0),
        revoking=owed,
        subscribed_topics=frozenset(topics),
    )
    return member, TargetAssignment(partitions=parts(0), epoch=2)


@pytest.mark.parametrize(("owed", "says"), [(parts(), True), (parts(1), True), (parts(), False)])
@pytest.mark.parametrize(
    ("release", "has_changed", "kept", "previous_epoch"),
    [("4.1", True, parts(0), 1), ("4.3", False, parts(0), 1), ("4.2", True, parts(), 1), ("4.3", True, parts(), 2)],
)
def test_a_member_that_stays_where_it_is_loses_what_it_reads_no_more_if_it_has_just_said_so(
    release: str, has_changed: bool, kept: Partitions, previous_epoch: int, owed: Partitions, says: bool
) -> None:
    """CurrentAssignmentBuilder: who is at its target, or still owes, is only looked at for a new subscription (4.2).

    Since 4.3 this is a step like any other: the member's epoch is its previous one from then on. Who does not say what
    it owns owns what it did.
    """
    member, target = at_its_target(owed, "u")
    report = HeartbeatReport(owned=parts(0) | owed if says else None, has_subscription_changed=has_changed)
    moved = reconciled(member, target, report, owner_epoch=lambda p: -1, release=Release(release))
    assert (moved.assigned, moved.revoking, moved.epoch) == (kept, owed | parts(0) - kept, 2)
    assert moved.previous_epoch == previous_epoch


def test_options_come_from_the_settings_of_a_release() -> None:
    given = Settings.of(Scope.BROKER, {"group.consumer.assignment.interval.ms": 250})
    assert ConsumerOptions.of(given).assignment_interval_ms == 250
    for release, interval_ms in (("4.2", 0), ("4.3", 1_000)):
        options = ConsumerOptions.of(Settings.of(Scope.BROKER, {}, release=Release(release)))
        assert (options.release, options.assignment_interval_ms) == (Release(release), interval_ms)
        assert ConsumerOptions(release=Release(release)).assignment_interval_ms == interval_ms


SOUND = ConsumerGroup(
    group_id="g",
    epoch=5,
    target_epoch=5,
    members={
        A: ConsumerMember(member_id=A, epoch=5, assigned=parts(0), assignment_epochs=dict.fromkeys(parts(0), 5)),
        B: ConsumerMember(
            member_id=B,
            epoch=4,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=parts(1),
            revoking=parts(2),
        ),
    },
    target={A: parts(0), B: parts(1)},
)


def changed(name: MemberId, **changes: Any) -> ConsumerGroup:
    return SOUND.with_member(attrs.evolve(SOUND.members[name], **changes))


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(changed(B, assigned=parts(0, 1)), id="two are assigned the same partition"),
        pytest.param(changed(B, revoking=parts(0)), id="one revokes what another is assigned"),
        pytest.param(changed(B, assigned=parts(1, 2)), id="one is assigned what it revokes"),
        pytest.param(attrs.evolve(SOUND, target_epoch=6), id="the target is of an epoch to come"),
        pytest.param(attrs.evolve(SOUND, target={MemberId("c"): parts(3)}), id="the target names a stranger"),
        pytest.param(changed(B, epoch=6), id="a member is in an epoch to come"),
        pytest.param(changed(A, assignment_epochs=dict.fromkeys(parts(9), 5)), id="an epoch of a partition not held"),
        pytest.param(
            changed(A, assigned=parts(), assignment_epochs={}), id="a stable member holds less than its target"
        ),
        pytest.param(changed(A, assigned=parts(0, 3)), id="a stable member holds more than its target"),
        pytest.param(attrs.evolve(SOUND, target={B: parts(1)}), id="a stable member holds what no target gives it"),
        pytest.param(
            attrs.evolve(changed(A, assigned=parts(3), assignment_epochs={}), epoch=6),
            id="it holds another than its old target",
        ),
    ],
)
def test_each_broken_invariant_is_noticed(broken: ConsumerGroup) -> None:
    with pytest.raises(AssertionError):
        broken.check_invariants()


def test_a_stable_member_may_hold_less_than_a_target_that_is_about_to_be_replaced() -> None:
    """A changed subscription takes partitions away at once; the next target, which is due, knows of it."""
    attrs.evolve(changed(A, assigned=parts(), assignment_epochs={}), epoch=6).check_invariants()
