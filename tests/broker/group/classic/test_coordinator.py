"""What a classic group's coordinator answers, told as stories."""

from __future__ import annotations

from typing import Any

import pytest

from broker.error_codes import ErrorCode
from broker.group.classic import (
    GroupState,
    InstanceId,
    JoinGroupResponse,
    Protocol,
)
from broker.units import DurationMs
from tests.broker.group.classic.driver import Driver

TWO = (Protocol("range", b"r"), Protocol("roundrobin", b"rr"))


def test_a_first_group_of_three_one_second_apart_has_one_generation() -> None:
    driver = Driver()
    tickets = []
    for second in range(3):
        driver.at(1000 * second)
        tickets.append(driver.enter()[1])
    # Somebody came during the first three seconds, so another three are waited for.
    driver.at(5999)
    assert not any(ticket in driver.answers for ticket in tickets)
    driver.at(6000)
    assert [driver.joined(ticket).generation for ticket in tickets] == [1, 1, 1]
    assert driver.group.state is GroupState.COMPLETING_REBALANCE


def test_the_first_member_leads_and_alone_is_told_of_the_others() -> None:
    driver = Driver()
    (first, first_ticket), (second, second_ticket) = driver.enter(), driver.enter()
    driver.at(3000)
    driver.at(6000)
    leader, follower = driver.joined(first_ticket), driver.joined(second_ticket)
    assert (leader.leader_id, follower.leader_id) == (first, first)
    assert {member.member_id for member in leader.members} == {first, second}
    assert follower.members == ()


def test_the_leaders_assignment_reaches_every_member_once_it_is_stored() -> None:
    driver = Driver(stores_at_once=False)
    (first, _), (second, _) = driver.enter(), driver.enter()
    driver.at(6000)
    waiting = driver.sync(second, 1)
    leading = driver.sync(first, 1, (first, b"A"), (second, b"B"))
    assert waiting not in driver.answers
    assert leading not in driver.answers
    (store,) = driver.stores
    assert {member.member_id: member.assignment for member in store.record.members} == {first: b"A", second: b"B"}
    driver.stored(store.token)
    assert (driver.synced(leading).assignment, driver.synced(waiting).assignment) == (b"A", b"B")
    assert driver.group.state is GroupState.STABLE


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
def test_an_assignment_that_cannot_be_stored_is_given_to_nobody(stored: ErrorCode, told: ErrorCode) -> None:
    driver = Driver(stores_at_once=False)
    member, _ = driver.enter()
    driver.at(3000)
    ticket = driver.sync(member, 1, (member, b"A"))
    driver.stored(driver.stores[0].token, stored)
    assert (driver.synced(ticket).error, driver.synced(ticket).assignment) == (told, b"")
    assert driver.group.state is GroupState.PREPARING_REBALANCE


def test_a_member_of_whom_nothing_is_heard_is_dropped_and_the_others_join_again() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    driver.at(driver.now_ms + 44_999)
    assert driver.heartbeat(leader, 1) is ErrorCode.NONE
    driver.at(driver.now_ms + 1)
    assert follower not in driver.group.members
    assert driver.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    (response,) = driver.rejoin_all([leader])
    assert (response.generation, response.leader_id) == (2, leader)
    assert driver.heartbeat(follower, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_zombies_commit_after_a_rebalance_is_refused() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    driver.join(leader)
    driver.join(follower)
    assert driver.group.generation == 2
    assert driver.group.commit_error(follower, None, 1) is ErrorCode.ILLEGAL_GENERATION
    assert driver.group.commit_error(follower, None, 2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_leader_that_dies_between_join_and_sync_is_dropped_and_the_rest_begin_anew() -> None:
    driver = Driver()
    (leader, _), (other, _) = driver.enter(), driver.enter()
    driver.at(6000)
    waiting = driver.sync(other, 1)
    driver.at(6000 + 45_000)
    assert leader not in driver.group.members
    assert driver.synced(waiting).error is ErrorCode.REBALANCE_IN_PROGRESS
    (response,) = driver.rejoin_all([other])
    assert (response.generation, response.leader_id) == (2, other)


def test_a_static_member_that_bounces_keeps_its_assignment_without_a_rebalance() -> None:
    driver = Driver()
    first = driver.join(instance_id=InstanceId("i"))
    driver.at(3000)
    old = driver.joined(first).member_id
    driver.sync(old, 1, (old, b"A"), instance="i")
    driver.at(20_000)
    again = driver.joined(driver.join(instance_id=InstanceId("i")))
    assert again.member_id not in ("", old)
    assert (again.generation, again.leader_id, again.skip_assignment) == (1, again.member_id, True)
    assert driver.group.state is GroupState.STABLE
    assert driver.synced(driver.sync(again.member_id, 1, instance="i")).assignment == b"A"
    assert driver.heartbeat(old, 1, "i") is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_comes_back_with_another_protocol_rebalances_the_group() -> None:
    driver = Driver()
    ticket = driver.join(instance_id=InstanceId("i"), protocols=TWO)
    driver.at(3000)
    old = driver.joined(ticket).member_id
    driver.sync(old, 1, (old, b"A"), instance="i")
    again = driver.joined(driver.join(instance_id=InstanceId("i"), protocols=(Protocol("roundrobin"),)))
    assert (again.generation, again.protocol_name) == (2, "roundrobin")


def test_leaving_begins_a_rebalance_at_once() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    assert driver.leave((leader, None)).member_errors == (ErrorCode.NONE,)
    assert driver.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.group.leader_id == follower


def test_the_last_one_to_leave_empties_the_group_and_that_is_stored() -> None:
    driver = Driver()
    (member,) = driver.stable(1)
    driver.leave((member, None))
    assert (driver.group.state, driver.group.generation) == (GroupState.EMPTY, 2)
    assert (driver.stores[-1].record.members, driver.stores[-1].record.protocol_name) == ((), None)


def test_a_member_that_was_named_and_never_came_holds_up_nobody_for_long() -> None:
    driver = Driver()
    (leader,) = driver.stable(1)
    driver.join(session_timeout_ms=DurationMs(10_000))
    waiting = driver.join(leader)
    driver.at(driver.now_ms + 9_999)
    assert waiting not in driver.answers
    driver.at(driver.now_ms + 1)
    assert driver.joined(waiting).generation == 2


@pytest.mark.parametrize("who", ["leader", "changed follower"])
def test_a_leader_that_joins_again_and_a_member_that_changed_rebalance_the_group(who: str) -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    if who == "leader":
        driver.join(leader)
    else:
        driver.join(follower, protocols=(Protocol("range", b"other topics"),))
    assert driver.group.state is GroupState.PREPARING_REBALANCE


def test_the_protocol_is_the_first_that_all_support_by_votes() -> None:
    driver = Driver()
    _, first = driver.enter(protocols=TWO)
    driver.enter(protocols=(TWO[1], TWO[0]))
    driver.enter(protocols=(TWO[1], Protocol("sticky")))
    driver.at(6000)
    assert driver.joined(first).protocol_name == "roundrobin"


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ({"protocols": (Protocol("sticky"),)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"session_timeout_ms": DurationMs(5999)}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": DurationMs(1_800_001)}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "stranger", "instance_id": InstanceId("i")}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_join_that_does_not_fit_is_refused_and_changes_nothing(named: dict[str, Any], error: ErrorCode) -> None:
    driver = Driver()
    (member,) = driver.stable(1)
    assert driver.answer(JoinGroupResponse, driver.join(**named)).error is error
    assert (list(driver.group.members), driver.group.state) == ([member], GroupState.STABLE)


def test_a_full_group_takes_nobody_in_and_keeps_its_own() -> None:
    driver = Driver(size_max=2)
    leader, follower = driver.stable(2)
    assert driver.answer(JoinGroupResponse, driver.join()).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert driver.rejoin_all([follower, leader][:1])[0].generation == 1


def test_requests_of_the_wrong_generation_or_time_are_told_so() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    assert driver.heartbeat(leader, 0) is ErrorCode.ILLEGAL_GENERATION
    assert driver.synced(driver.sync(leader, 0)).error is ErrorCode.ILLEGAL_GENERATION
    assert driver.synced(driver.sync("stranger", 1)).error is ErrorCode.UNKNOWN_MEMBER_ID
    driver.join(leader)
    assert driver.synced(driver.sync(follower, 1)).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_coordinator_that_moves_sends_everybody_to_the_new_one() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    joining = driver.join(leader)
    driver.take(driver.coordinator.unload(driver.coordinator.now_ms))
    assert driver.answer(JoinGroupResponse, joining).error is ErrorCode.NOT_COORDINATOR
    assert driver.heartbeat(follower, 1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.answer(JoinGroupResponse, driver.join()).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.coordinator.next_ms() is None
