"""Since 4.3 a group's target is computed at most once in an interval; before, at the first heartbeat that misses it."""

from __future__ import annotations

import attrs
import pytest

from broker.config.setting import Scope
from broker.config.settings import Settings
from broker.error_codes import ErrorCode
from broker.group.consumer.coordinator import ConsumerCoordinator
from broker.group.consumer.group import ConsumerGroup, ConsumerGroupState
from broker.group.consumer.member import MemberState
from broker.group.consumer.records import TopicIds, applied, changes
from broker.group.consumer.target import ConsumerOptions
from broker.group.members import InstanceId, MemberId
from broker.ids import PartitionId, TopicPartition
from broker.releases import NEWEST, Release
from broker.units import DurationMs, TimeMs
from tests.broker.group.consumer.test_consumer_group import AT_ONCE, Driver, parts

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


def test_the_first_member_of_a_group_waits_for_nothing_and_gets_epoch_two() -> None:
    driver = Driver(release=NEWEST)
    driver.plan.plan = {"a": parts(0, 1)}
    driver.at(START_MS)
    answer = driver.join("a")
    assert (answer.epoch, answer.assignment) == (2, parts(0, 1))
    assert (driver.group.epoch, driver.group.target_epoch, driver.group.target_ms) == (2, 2, START_MS)


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


def test_before_4_3_the_target_is_computed_at_once() -> None:
    driver = two(AT_ONCE)
    assert (driver.group.epoch, driver.group.target_epoch, driver.group.target_ms) == (2, 2, None)
    assert driver.group.members[B].state is MemberState.UNRELEASED_PARTITIONS


def test_an_interval_of_zero_computes_every_target_at_once() -> None:
    driver = two()
    options = attrs.evolve(driver.context.options, assignment_interval_ms=DurationMs(0))
    driver.coordinator.context = attrs.evolve(driver.context, options=options)
    driver.beat("b", 2, owned=frozenset())
    assert driver.group.target_epoch == 3


def test_the_partitions_of_a_member_that_leaves_wait_for_the_interval() -> None:
    driver = two()
    driver.at(START_MS + 500)
    driver.beat("a", -1)
    driver.plan.plan = {"b": parts(0, 1)}
    driver.beat("b", 2, owned=frozenset())
    assert (driver.group.members[B].assigned, driver.group.target_epoch) == (frozenset(), 2)
    driver.at(START_MS + 1_000)
    assert driver.beat("b", 2).assignment == parts(0, 1)


def test_a_static_member_that_is_replaced_keeps_its_partitions_without_a_new_target() -> None:
    driver = Driver(release=NEWEST)
    driver.at(START_MS)
    driver.plan.plan = {"a": parts(0, 1)}
    driver.join("a", instance_id=InstanceId("i"))
    driver.beat("a", -2, instance_id=InstanceId("i"))
    back = driver.join("a2", instance_id=InstanceId("i"))
    assert (back.epoch, back.assignment, driver.group.epoch) == (2, parts(0, 1), 2)
    assert set(driver.group.members[MemberId("a2")].assignment_epochs.values()) == {0}


def test_a_topic_is_taken_away_at_once_from_a_member_that_does_not_want_it_any_more() -> None:
    driver = two()
    subscribed = {"subscribed_topics": frozenset({"u"}), "rebalance_timeout_ms": DurationMs(300_000)}
    asked = driver.beat("a", 2, owned=parts(0, 1), **subscribed)
    assert (asked.epoch, asked.assignment, driver.group.target_epoch) == (2, frozenset(), 2)
    member = driver.group.members[A]
    assert (member.state, member.revoking) == (MemberState.UNREVOKED_PARTITIONS, parts(0, 1))


def test_the_time_of_a_target_survives_a_failover() -> None:
    driver = two()
    ids, before, read = TopicIds({"t": bytes(16)}), ConsumerGroup(group_id="g"), ConsumerGroup(group_id="g")
    for record in changes(before, driver.group, ids):
        read = applied(read, record, ids)
    taken = ConsumerCoordinator(read, driver.context, driver.coordinator.entropy)
    taken.loaded(TimeMs(START_MS + 600))
    assert taken.group.target_ms == START_MS
    driver.coordinator = taken
    driver.at(START_MS + 999)
    driver.beat("b", 2, owned=frozenset())
    assert driver.group.target_epoch == 2


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


def test_before_4_3_a_commit_needs_the_present_epoch() -> None:
    driver = two(AT_ONCE)
    driver.beat("a", 1, owned=parts(0, 1))
    driver.beat("a", 1, owned=parts(0))
    assert driver.group.commit_error(A, 1, [TopicPartition("t", PartitionId(0))]) is ErrorCode.STALE_MEMBER_EPOCH


@pytest.mark.parametrize(
    ("release", "error"),
    [("4.1", ErrorCode.FENCED_MEMBER_EPOCH), ("4.2", ErrorCode.NONE), ("4.3", ErrorCode.NONE)],
)
def test_a_known_member_may_come_anew_with_epoch_zero_since_4_2(release: str, error: ErrorCode) -> None:
    driver = two(Release(release))
    driver.beat("b", driver.group.members[B].epoch)
    driver.at(START_MS + 1_000)
    driver.beat("a", driver.group.members[A].epoch, owned=parts(0, 1))
    driver.beat("a", driver.group.members[A].epoch, owned=parts(0))
    assert driver.join("a").error is error


@pytest.mark.parametrize(("release", "epoch"), [("4.1", 2), ("4.2", 1)])
def test_a_member_asked_twice_to_give_back_stays_in_its_epoch_since_4_2(release: str, epoch: int) -> None:
    driver = two(Release(release))
    driver.beat("a", 1, owned=parts(0, 1))
    driver.plan.plan = {"b": parts(0, 1)}
    driver.join("c")
    again = driver.beat("a", 1, owned=parts(0))
    assert (again.epoch, driver.group.members[A].revoking) == (epoch, parts(0))


def test_options_come_from_the_settings_of_a_release() -> None:
    given = Settings.of(Scope.BROKER, {"group.consumer.assignment.interval.ms": 250})
    assert ConsumerOptions.of(given).assignment_interval_ms == 250
    for release, interval_ms in (("4.2", 0), ("4.3", 1_000)):
        options = ConsumerOptions.of(Settings.of(Scope.BROKER, {}, release=Release(release)))
        assert (options.release, options.assignment_interval_ms) == (Release(release), interval_ms)
        assert ConsumerOptions(release=Release(release)).assignment_interval_ms == interval_ms
