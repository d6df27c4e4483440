"""What a classic group's coordinator answers, told as stories."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.group.classic import (
    UNKNOWN_MEMBER,
    ClassicGroup,
    GroupState,
    InstanceId,
    JoinGroupResponse,
    MemberId,
    Protocol,
)
from broker.group.members import GroupRecord
from broker.group.offsets import ExpiryRule
from broker.units import DurationMs, TimeMs
from tests.broker.group.classic.driver import RANGE, Driver

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


def test_nobody_else_coming_the_first_delay_is_the_only_one() -> None:
    driver = Driver()
    _, ticket = driver.enter()
    driver.at(2999)
    assert ticket not in driver.answers
    driver.at(3000)
    assert driver.joined(ticket).generation == 1


def test_the_initial_delays_together_end_at_the_rebalance_timeout() -> None:
    driver = Driver()
    tickets = []
    for step in range(20):
        driver.at(500 * step)
        tickets.append(driver.enter(rebalance_timeout_ms=DurationMs(7000))[1])
    # 3,000 ms, then what is left of 7,000: 3,000 and once more 1,000.
    assert driver.joined(tickets[0]).generation == 1
    assert driver.group.state_time_ms == 7000


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


def test_an_assignment_that_is_stored_late_is_not_given_to_the_next_generation() -> None:
    driver = Driver(stores_at_once=False)
    (first, _), (second, _) = driver.enter(), driver.enter()
    driver.at(6000)
    driver.sync(first, 1, (first, b"A"), (second, b"B"))
    (late,) = driver.stores
    driver.leave((second, None))
    assert driver.joined(driver.join(first)).generation == 2
    driver.stored(late.token)
    assert driver.group.state is GroupState.COMPLETING_REBALANCE
    assert driver.group.members[first].assignment == b""


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


def test_a_member_too_slow_to_join_again_goes_when_the_rebalance_timeout_is_over() -> None:
    driver = Driver()
    leader, slow = driver.stable(2, session_timeout_ms=DurationMs(1_000_000))
    driver.join(leader, session_timeout_ms=DurationMs(1_000_000))
    start_ms = driver.now_ms
    driver.at(start_ms + 299_999)
    assert slow in driver.group.members
    driver.at(start_ms + 300_000)
    assert (list(driver.group.members), driver.group.generation) == ([leader], 2)
    assert driver.group.commit_error(slow, None, 1) is ErrorCode.UNKNOWN_MEMBER_ID


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


def test_members_that_never_sync_go_when_the_rebalance_timeout_is_over() -> None:
    driver = Driver()
    (leader, _), (lazy, _) = driver.enter(), driver.enter()
    driver.at(6000)
    driver.sync(leader, 1, (leader, b"A"))
    for now_ms in range(6000, 306_000, 30_000):
        driver.at(now_ms)
        assert driver.heartbeat(leader, 1) is ErrorCode.NONE
        assert driver.heartbeat(lazy, 1) is ErrorCode.NONE
    driver.at(306_000)
    assert list(driver.group.members) == [leader]
    assert driver.group.state is GroupState.PREPARING_REBALANCE


def test_the_initial_delay_ends_with_the_rebalance_timeout_to_the_millisecond() -> None:
    """The delay is 3,000 ms, the timeout 6,001 ms: members that keep coming lengthen the delay to that and no more."""
    driver = Driver()
    patient = {"rebalance_timeout_ms": DurationMs(6_001), "knows_two_steps": False}
    first = driver.join(**patient)
    for now_ms in (1_000, 4_000):
        driver.at(now_ms)
        driver.join(**patient)
    driver.at(6_000)
    driver.join(**patient)
    assert first not in driver.answers
    driver.at(6_001)
    assert driver.joined(first).generation == 1


def test_who_came_when_no_more_time_was_left_lengthens_the_first_delay_of_the_group_when_it_begins_again() -> None:
    """ClassicGroup.newMemberAdded is taken back only where the delay is extended (GroupMetadataManager, 4.3.1)."""
    driver = Driver()
    hasty = {"rebalance_timeout_ms": DurationMs(3_000)}
    first, _ = driver.enter(**hasty)
    driver.at(1_000)
    second, _ = driver.enter(**hasty)
    driver.at(3_000)
    assert driver.group.generation == 1
    driver.leave((first, None), (second, None))
    assert driver.group.state is GroupState.EMPTY
    _, ticket = driver.enter()
    driver.at(8_999)
    assert ticket not in driver.answers
    driver.at(9_000)
    assert driver.joined(ticket).generation == 3


def test_who_came_to_a_later_rebalance_does_not_lengthen_the_first_delay() -> None:
    driver = Driver()
    members = [*driver.stable(1), driver.enter()[0], driver.enter()[0]]
    driver.leave(*((member, None) for member in members))
    assert driver.group.state is GroupState.EMPTY
    _, ticket = driver.enter()
    driver.at(driver.now_ms + 3_000)
    assert driver.joined(ticket).generation == 3


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


def test_a_static_member_that_bounces_before_it_has_synced_lets_the_group_rebalance_though_nobody_is_late() -> None:
    """Kafka awaits the SyncGroup of the former member id, which never comes: rebalance.timeout later all join again."""
    driver = Driver()
    patient = {"rebalance_timeout_ms": DurationMs(20_000)}
    first, second = (driver.join(instance_id=InstanceId(name), **patient) for name in ("i", "j"))
    driver.at(6_000)
    leader, old = driver.joined(first).member_id, driver.joined(second).member_id
    driver.sync(leader, 1, (leader, b"A"), (old, b"B"), instance="i")
    again = driver.joined(driver.join(instance_id=InstanceId("j"), **patient))
    assert driver.synced(driver.sync(again.member_id, 1, instance="j")).assignment == b"B"
    driver.at(25_999)
    assert driver.group.state is GroupState.STABLE
    driver.at(26_000)
    assert driver.group.state is GroupState.PREPARING_REBALANCE
    assert set(driver.group.members) == {leader, again.member_id}


def test_a_client_that_cannot_skip_the_assignment_is_told_of_its_former_self_as_leader() -> None:
    driver = Driver()
    old = driver.join(instance_id=InstanceId("i"))
    driver.at(3000)
    old_id = driver.joined(old).member_id
    driver.sync(old_id, 1, (old_id, b"A"), instance="i")
    again = driver.joined(driver.join(instance_id=InstanceId("i"), can_skip_assignment=False))
    assert (again.leader_id, again.members, again.skip_assignment) == (old_id, (), False)


def test_a_replacement_that_cannot_be_stored_leaves_the_old_process_in_its_place() -> None:
    driver = Driver()
    ticket = driver.join(instance_id=InstanceId("i"))
    driver.at(3000)
    old = driver.joined(ticket).member_id
    driver.sync(old, 1, (old, b"A"), instance="i")
    driver.stores_at_once = False
    again = driver.join(instance_id=InstanceId("i"), session_timeout_ms=DurationMs(10_000))
    driver.stored(driver.stores[-1].token, ErrorCode.REQUEST_TIMED_OUT)
    refused = driver.answer(JoinGroupResponse, again)
    assert (refused.error, refused.member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    assert driver.heartbeat(old, 1, "i") is ErrorCode.NONE
    assert driver.group.members[old].session_timeout_ms == 45_000


def test_a_static_member_that_comes_back_with_another_protocol_rebalances_the_group() -> None:
    driver = Driver()
    ticket = driver.join(instance_id=InstanceId("i"), protocols=TWO)
    driver.at(3000)
    old = driver.joined(ticket).member_id
    driver.sync(old, 1, (old, b"A"), instance="i")
    again = driver.joined(driver.join(instance_id=InstanceId("i"), protocols=(Protocol("roundrobin"),)))
    assert (again.generation, again.protocol_name) == (2, "roundrobin")


def test_a_static_member_that_is_late_stays_and_a_dynamic_one_goes() -> None:
    driver = Driver()
    patient = {"session_timeout_ms": DurationMs(1_000_000), "rebalance_timeout_ms": DurationMs(60_000)}
    static = driver.join(instance_id=InstanceId("i"), **patient)
    dynamic, second = driver.enter(**patient)
    driver.at(6000)
    static_id = driver.joined(static).member_id
    assert driver.joined(second).leader_id == static_id
    driver.sync(static_id, 1, instance="i")
    driver.sync(dynamic, 1)
    newcomer, ticket = driver.enter(**patient)
    driver.at(driver.now_ms + 60_000)
    assert driver.joined(ticket).leader_id == newcomer
    assert set(driver.group.members) == {static_id, newcomer}


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


def test_a_static_member_is_put_out_by_its_instance_alone() -> None:
    driver = Driver()
    driver.join(instance_id=InstanceId("i"))
    driver.at(3000)
    errors = driver.leave(("", "i"), ("", "nobody"), ("stranger", None)).member_errors
    assert errors == (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID)
    assert driver.group.state is GroupState.EMPTY


def test_a_member_that_was_named_and_never_came_holds_up_nobody_for_long() -> None:
    driver = Driver()
    (leader,) = driver.stable(1)
    driver.join(session_timeout_ms=DurationMs(10_000))
    waiting = driver.join(leader)
    driver.at(driver.now_ms + 9_999)
    assert waiting not in driver.answers
    driver.at(driver.now_ms + 1)
    assert driver.joined(waiting).generation == 2


@pytest.mark.parametrize("instance", ["held", "free"])
def test_a_member_that_was_named_cannot_become_static(instance: str) -> None:
    driver = Driver()
    driver.join(instance_id=InstanceId("held"))
    driver.at(3_000)
    named = driver.answer(JoinGroupResponse, driver.join())
    refused = driver.answer(JoinGroupResponse, driver.join(named.member_id, instance_id=InstanceId(instance)))
    assert (refused.error, refused.member_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, UNKNOWN_MEMBER)
    assert driver.group.static_members.keys() == {"held"}
    assert driver.group.pending_joins == {named.member_id}


def test_a_new_member_waits_for_its_first_answer_for_five_minutes_and_no_longer() -> None:
    """classicGroupNewMemberJoinTimeoutMs, 4.3.1: whoever waits needs no heartbeat, but a first join has an end."""
    patient = {"session_timeout_ms": DurationMs(1_000_000), "rebalance_timeout_ms": DurationMs(1_000_000)}
    driver = Driver(session_timeout_ms_max=DurationMs(1_000_000))
    leader, _ = driver.stable(2, **patient)
    known = driver.join(leader, **patient)
    newcomer, ticket = driver.enter(**patient)
    driver.at(driver.now_ms + 299_999)
    assert newcomer in driver.group.members
    driver.at(driver.now_ms + 1)
    assert driver.answer(JoinGroupResponse, ticket).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert newcomer not in driver.group.members
    assert (leader in driver.group.members, known in driver.answers) == (True, False)


def test_a_member_that_joins_unchanged_while_the_group_is_stable_is_answered_as_before() -> None:
    driver = Driver()
    _, follower = driver.stable(2)
    assert driver.joined(driver.join(follower)).generation == 1
    assert driver.group.state is GroupState.STABLE


@pytest.mark.parametrize("who", ["leader", "changed follower"])
def test_a_leader_that_joins_again_and_a_member_that_changed_rebalance_the_group(who: str) -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    if who == "leader":
        driver.join(leader)
    else:
        driver.join(follower, protocols=(Protocol("range", b"other topics"),))
    assert driver.group.state is GroupState.PREPARING_REBALANCE


def test_a_lost_answer_is_given_again_while_the_assignment_is_waited_for() -> None:
    driver = Driver()
    leader, _ = driver.enter()
    driver.at(3000)
    again = driver.joined(driver.join(leader))
    assert (again.generation, [member.member_id for member in again.members]) == (1, [leader])


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


def test_a_coordinator_that_moves_does_first_nothing_that_is_due() -> None:
    """CoordinatorRuntime cancels the timers of what it unloads, and then answers those who wait (4.3.1)."""
    driver = Driver()
    _, joining = driver.enter()
    driver.take(driver.coordinator.unload(TimeMs(3_000)))
    refused = driver.answer(JoinGroupResponse, joining)
    assert (refused.error, driver.group.generation, driver.stores) == (ErrorCode.NOT_COORDINATOR, 0, [])


def test_offsets_age_from_when_the_group_became_empty_and_not_while_it_rebalances() -> None:
    driver = Driver()
    topics = frozenset({"t"})
    assert driver.group.expiry_rule(None) == ExpiryRule()
    leader, follower = driver.stable(2)
    assert driver.group.expiry_rule(topics) == ExpiryRule(kept_topics=topics)
    assert driver.group.expiry_rule(None) is None
    driver.join(leader)
    assert driver.group.expiry_rule(topics) is None
    driver.leave((leader, None), (follower, None))
    assert driver.group.expiry_rule(None) == ExpiryRule(since_ms=TimeMs(driver.now_ms))


def test_a_group_whose_record_names_no_kind_of_members_is_of_none_yet() -> None:
    """GroupMetadataManager.replay takes an empty protocol type for none, so that each offset ages from its commit."""
    record = GroupRecord(
        group_id="g", protocol_type="", generation=0, protocol_name=None, leader_id=None, state_time_ms=5, members=()
    )
    assert ClassicGroup.of_record(record).expiry_rule(None) == ExpiryRule()
    kept = ClassicGroup.of_record(attrs.evolve(record, protocol_type="consumer"))
    assert kept.expiry_rule(None) == ExpiryRule(since_ms=TimeMs(5))


@pytest.mark.parametrize("named", [{"protocol_type": ""}, {"protocols": ()}])
def test_an_empty_group_takes_in_nobody_without_a_kind_or_an_assignor(named: dict[str, Any]) -> None:
    driver = Driver()
    assert driver.answer(JoinGroupResponse, driver.join(**named)).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_consumer_outside_an_empty_group_may_commit_and_nobody_else() -> None:
    driver = Driver()
    assert driver.group.commit_error(MemberId(""), None, -1) is ErrorCode.NONE
    driver.stable(1, protocols=RANGE)
    assert driver.group.commit_error(MemberId(""), None, -1) is ErrorCode.UNKNOWN_MEMBER_ID
