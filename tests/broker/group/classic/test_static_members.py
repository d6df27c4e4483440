"""Static members whose processes start again while something else is under way (KIP-345)."""

from __future__ import annotations

import pytest

from broker.error_codes import ErrorCode
from broker.group.classic import GroupState, InstanceId, JoinGroupResponse
from tests.broker.group.classic.driver import Driver


def two_static(driver: Driver) -> tuple[str, str]:
    """Bring in the instances i, which leads, and j, with an assignment; return their member ids."""
    first, second = (driver.join(instance_id=InstanceId(name)) for name in ("i", "j"))
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


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS])
def test_who_leaves_while_its_new_id_is_being_stored_is_answered_once(error: ErrorCode) -> None:
    driver = Driver()
    two_static(driver)
    driver.stores_at_once = False
    again = driver.join(instance_id=InstanceId("j"))
    (record,) = driver.stores[1:]
    assert driver.leave(("", "j")).member_errors == (ErrorCode.NONE,)
    assert driver.answer(JoinGroupResponse, again).error is ErrorCode.UNKNOWN_MEMBER_ID
    driver.stored(record.token, error)
    assert driver.group.static_members.keys() == {"i"}


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS])
def test_who_starts_again_twice_before_its_new_id_is_stored_is_the_last_one(error: ErrorCode) -> None:
    driver = Driver()
    two_static(driver)
    driver.stores_at_once = False
    second = driver.join(instance_id=InstanceId("j"))
    third = driver.join(instance_id=InstanceId("j"))
    first_record, second_record = driver.stores[1:]
    driver.stored(first_record.token, error)
    assert driver.answer(JoinGroupResponse, second).error is ErrorCode.FENCED_INSTANCE_ID
    assert third not in driver.answers
    driver.stored(second_record.token)
    assert driver.group.static_members["j"] == driver.joined(third).member_id
