"""Static members whose processes start again while something else is under way (KIP-345)."""

from __future__ import annotations

from typing import Any

import pytest

from broker.error_codes import ErrorCode
from broker.group.classic import GroupState, InstanceId, JoinGroupResponse
from broker.units import DurationMs
from tests.broker.group.classic.driver import Driver


def two_static(driver: Driver, **named: Any) -> tuple[str, str]:
    """Bring in the instances i, which leads, and j, with an assignment; return their member ids."""
    first, second = (driver.join(instance_id=InstanceId(name), **named) for name in ("i", "j"))
    driver.at(6_000)
    leader, other = driver.joined(first).member_id, driver.joined(second).member_id
    driver.sync(leader, 1, (leader, b"A"), (other, b"B"), instance="i")
    driver.sync(other, 1, instance="j")
    assert driver.group.state is GroupState.STABLE
    return leader, other


def test_a_process_that_starts_again_has_joined_and_may_be_the_last_that_was_awaited() -> None:
    driver = Driver()
    leader, other = two_static(driver)
    waiting = driver.join(leader, instance_id=InstanceId("i"))
    assert waiting not in driver.answers
    again = driver.joined(driver.join(instance_id=InstanceId("j")))
    assert driver.joined(waiting).generation == again.generation == 2
    assert again.member_id not in ("", other)


def test_static_members_of_whom_none_joins_are_given_the_rebalance_timeout_again() -> None:
    """completeClassicGroupJoin, 4.3.1: without a member that has joined nobody can lead."""
    driver = Driver()
    patient = {"session_timeout_ms": DurationMs(1_000_000), "rebalance_timeout_ms": DurationMs(60_000)}
    leader, _ = two_static(driver, **patient)
    driver.leave((driver.enter(**patient)[0], None))
    start_ms = driver.now_ms
    driver.at(start_ms + 60_000)
    assert (driver.group.state, driver.group.generation) == (GroupState.PREPARING_REBALANCE, 1)
    waiting = driver.join(leader, instance_id=InstanceId("i"), **patient)
    driver.at(start_ms + 119_999)
    assert waiting not in driver.answers
    driver.at(start_ms + 120_000)
    assert driver.joined(waiting).generation == 2


def starting_again() -> tuple[Driver, int]:
    """Return a coordinator that is storing the new member id of j, and the JoinGroup that waits for it."""
    driver = Driver()
    two_static(driver)
    driver.stores_at_once = False
    return driver, driver.join(instance_id=InstanceId("j"))


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS])
def test_who_leaves_while_its_new_id_is_being_stored_is_answered_once(error: ErrorCode) -> None:
    driver, again = starting_again()
    (record,) = driver.stores[1:]
    assert driver.leave(("", "j")).member_errors == (ErrorCode.NONE,)
    assert driver.answer(JoinGroupResponse, again).error is ErrorCode.UNKNOWN_MEMBER_ID
    driver.stored(record.token, error)
    assert driver.group.static_members.keys() == {"i"}


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS])
def test_who_starts_again_twice_before_its_new_id_is_stored_is_the_last_one(error: ErrorCode) -> None:
    driver, second = starting_again()
    third = driver.join(instance_id=InstanceId("j"))
    first_record, second_record = driver.stores[1:]
    driver.stored(first_record.token, error)
    assert driver.answer(JoinGroupResponse, second).error is ErrorCode.FENCED_INSTANCE_ID
    assert third not in driver.answers
    driver.stored(second_record.token)
    assert driver.group.static_members["j"] == driver.joined(third).member_id
