"""Since 4.3 a group's target is computed at most once in an interval; before, at the first heartbeat that misses it."""

from __future__ import annotations

from broker.config.setting import Scope
from broker.config.settings import Settings
from broker.error_codes import ErrorCode
from broker.group.consumer.group import ConsumerGroupState
from broker.group.consumer.member import MemberState
from broker.group.consumer.target import ConsumerOptions
from broker.group.members import MemberId
from broker.ids import PartitionId, TopicPartition
from broker.releases import NEWEST, Release
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


def test_options_come_from_the_settings_of_a_release() -> None:
    given = Settings.of(Scope.BROKER, {"group.consumer.assignment.interval.ms": 250})
    assert ConsumerOptions.of(given).assignment_interval_ms == 250
    for release, interval_ms in (("4.2", 0), ("4.3", 1_000)):
        options = ConsumerOptions.of(Settings.of(Scope.BROKER, {}, release=Release(release)))
        assert (options.release, options.assignment_interval_ms) == (Release(release), interval_ms)
        assert ConsumerOptions(release=Release(release)).assignment_interval_ms == interval_ms
