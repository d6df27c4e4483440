"""What a consumer group's coordinator did in earlier releases: a row a difference, each by hand from its source."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.error_codes import ErrorCode
from broker.group.consumer.member import NOT_OWNED, HeartbeatReport, MemberState, TargetAssignment, reconciled
from broker.group.consumer.target import new_group
from broker.group.members import MemberId
from broker.ids import PartitionId, TopicPartition
from broker.releases import Release
from tests.broker.group.consumer.test_consumer_group import START_MS, A, at_its_target, moving, parts, two


def taken_back(release: Release) -> object:
    """CurrentAssignmentBuilder: what a member gives back is free for the member itself (4.1)."""
    member, _ = at_its_target(parts(1), "t")
    target, report = TargetAssignment(partitions=parts(0, 1), epoch=3), HeartbeatReport(owned=parts(0))
    return reconciled(member, target, report, owner_epoch=lambda p: 2, release=release).assigned


def revoked_twice(release: Release) -> object:
    """CurrentAssignmentBuilder: a member that is asked twice in a row to give back stays in its epoch (4.2)."""
    driver = two(release)
    epoch = driver.group.members[A].epoch
    driver.at(START_MS + 1_000)
    driver.beat("a", epoch, owned=parts(0, 1))
    driver.plan.plan = {"b": parts(0, 1)}
    driver.join("c")
    driver.at(START_MS + 3_000)
    driver.beat("a", epoch, owned=parts(0, 1))
    return driver.beat("a", epoch, owned=parts(0)).epoch - epoch


def rejoined(release: Release) -> object:
    """GroupMetadataManager.throwIfConsumerGroupMemberEpochIsInvalid: epoch 0 of a known member is taken (4.2)."""
    driver = moving(release)
    driver.beat("a", driver.group.members[A].epoch, owned=parts(0, 1))
    driver.beat("a", driver.group.members[A].epoch, owned=parts(0))
    return driver.join("a").error


def unsubscribed(release: Release) -> object:
    """CurrentAssignmentBuilder: a partition of a topic that the member reads no more is no part of its share (4.2)."""
    member, _ = at_its_target(parts(), "t")
    target = TargetAssignment(partitions=parts(0) | parts(0, topic="u"), epoch=3)
    report = HeartbeatReport(owned=parts(0))
    return len(reconciled(member, target, report, owner_epoch=lambda p: NOT_OWNED, release=release).assigned)


def committed(release: Release) -> object:
    """ConsumerGroup.validateOffsetCommit: a former epoch counts for a partition held since then (4.3, KIP-1251)."""
    driver = two(release)
    first = driver.group.members[A].epoch
    driver.at(START_MS + 1_000)
    driver.beat("a", first, owned=parts(0, 1))
    driver.beat("a", first, owned=parts(0))
    assert driver.group.members[A].epoch == first + 1
    return driver.group.commit_error(A, first, [TopicPartition("t", PartitionId(0))])


def joined_late(release: Release) -> object:
    """TargetAssignmentBuilder: a target is computed at most once an interval (4.3, KIP-1263)."""
    member = two(release).group.members[MemberId("b")]
    return member.state


def dated(release: Release) -> object:
    """The record of a target has its time (4.3)."""
    return two(release).group.target_ms


def begun(release: Release) -> object:
    """A group begins at epoch 1 (4.3)."""
    return new_group("g", release).epoch


@pytest.mark.parametrize(
    ("fact", "since", "before", "after"),
    [
        (taken_back, "4.1", parts(0), parts(0, 1)),
        (revoked_twice, "4.2", 1, 0),
        (rejoined, "4.2", ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.NONE),
        (unsubscribed, "4.2", 2, 1),
        (committed, "4.3", ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.NONE),
        (joined_late, "4.3", MemberState.UNRELEASED_PARTITIONS, MemberState.STABLE),
        (dated, "4.3", None, START_MS),
        (begun, "4.3", 0, 1),
    ],
)
def test_a_difference_begins_with_its_release(
    fact: Callable[[Release], object], since: str, before: object, after: object
) -> None:
    releases = [Release(name) for name in ("4.0", "4.1", "4.2", "4.3", "4.4")]
    assert [fact(each) for each in releases] == [before if each < Release(since) else after for each in releases]
