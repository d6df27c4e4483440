"""Whom a classic group refuses, and what it does for nobody: the corners of its rules."""

from __future__ import annotations

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.group.classic import (
    InstanceId,
    JoinGroupResponse,
    MemberId,
    SyncGroupRequest,
    SyncGroupResponse,
)
from broker.units import TimeMs
from tests.broker.group.classic.driver import Driver

NOBODY = MemberId("")


def test_a_group_that_fills_up_takes_in_nobody_else_and_hears_again_those_who_wait() -> None:
    """acceptJoiningMember, 4.3.1: while members join, those who wait fill the group, and may ask once more."""
    driver = Driver(size_max=2)
    (_, first), (again, second) = driver.enter(), driver.enter()
    refused = driver.answer(JoinGroupResponse, driver.join())
    assert (refused.error, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    third = driver.join(again)
    driver.at(6_000)
    assert driver.joined(first).generation == driver.joined(third).generation == 1
    assert second not in driver.answers


def test_a_group_larger_than_it_may_be_shrinks_when_it_rebalances() -> None:
    """KIP-389: group.max.size was made smaller; those who join first stay, and the others are refused and out."""
    driver = Driver()
    leader, follower = driver.stable(2)
    driver.coordinator.options = attrs.evolve(driver.coordinator.options, size_max=1)
    waiting = driver.join(leader)
    assert driver.answer(JoinGroupResponse, driver.join(follower)).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert list(driver.group.members) == [leader]
    driver.at(driver.now_ms + 300_000)
    assert driver.joined(waiting).generation == 2


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ({}, ErrorCode.NONE),
        ({"protocol_type": "consumer", "protocol_name": "range"}, ErrorCode.NONE),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_sync_that_names_another_kind_or_assignor_than_the_group_has_is_refused(
    named: dict[str, str], error: ErrorCode
) -> None:
    """KIP-559: both are optional in SyncGroup."""
    driver = Driver()
    (member,) = driver.stable(1)
    ticket = driver.send(SyncGroupRequest(ticket=driver.next_ticket(), member_id=member, generation=1, **named))
    assert driver.answer(SyncGroupResponse, ticket).error is error


@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_commit_is_of_the_instance_that_it_names_whatever_else_it_says(in_transaction: bool) -> None:
    driver = Driver()
    driver.join(instance_id=InstanceId("i"))
    driver.at(3_000)

    def told(instance: str | None) -> ErrorCode:
        instance_id = None if instance is None else InstanceId(instance)
        return driver.group.commit_error(NOBODY, instance_id, -1, in_transaction=in_transaction)

    assert told("i") is ErrorCode.FENCED_INSTANCE_ID
    assert told("j") is ErrorCode.UNKNOWN_MEMBER_ID
    assert told(None) is (ErrorCode.NONE if in_transaction else ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_transaction_may_commit_while_the_group_waits_for_its_assignment() -> None:
    driver = Driver()
    member, _ = driver.enter()
    driver.at(3_000)
    told = [driver.group.commit_error(member, None, 1, in_transaction=each) for each in (False, True)]
    assert told == [ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NONE]


@pytest.mark.parametrize(("is_stable", "end_ms"), [(False, 48_000), (True, 65_000)])
def test_a_commit_keeps_a_member_alive_unless_the_group_waits_for_its_assignment(is_stable: bool, end_ms: int) -> None:
    """OffsetMetadataManager.commitOffset, 4.3.1: in Stable and PreparingRebalance."""
    driver = Driver()
    member, _ = driver.enter()
    driver.at(3_000)
    if is_stable:
        driver.sync(member, 1, (member, b"A"))
    driver.at(20_000)
    driver.take(driver.coordinator.advance(TimeMs(20_000)))
    driver.coordinator.renew_session(member, TimeMs(20_000))
    driver.coordinator.renew_session(MemberId("stranger"), TimeMs(20_000))
    driver.at(end_ms - 1)
    assert member in driver.group.members
    driver.at(end_ms)
    assert member not in driver.group.members
