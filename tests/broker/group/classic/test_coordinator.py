"""Scenarios of a classic group that KIPs name; test_machine compares everything else with the reference."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import attrs
import pytest

from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.classic import (
    UNKNOWN_MEMBER,
    ClassicCoordinator,
    ClassicGroup,
    ClassicOptions,
    GroupState,
    HeartbeatRequest,
    HeartbeatResponse,
    InstanceId,
    JoinGroupRequest,
    JoinGroupResponse,
    MemberId,
    Output,
    Protocol,
    Request,
    Response,
    Store,
    SyncGroupRequest,
    SyncGroupResponse,
    Ticket,
)
from broker.units import DurationMs, TimeMs

Answer = TypeVar("Answer", bound=Response)

STATIC: Final = InstanceId("i")


class Driver:
    """One group and its clients; records are stored at once."""

    def __init__(self, **options: Any) -> None:
        self.group = ClassicGroup("g")
        self.coordinator = ClassicCoordinator(self.group, ClassicOptions(**options), SplitMix64(1))
        self.now_ms = 0
        self.ticket = 0
        self.answers: dict[int, Response] = {}

    def take(self, outputs: tuple[Output, ...]) -> None:
        self.group.check_invariants()
        for output in outputs:
            if isinstance(output, Store):
                self.take(self.coordinator.stored(output.token, ErrorCode.NONE, TimeMs(self.now_ms)))
            else:
                assert output.ticket not in self.answers, "a request is answered once"
                self.answers[output.ticket] = output

    def at(self, now_ms: int) -> None:
        """Let time pass, stopping at every timer on the way."""
        while (next_ms := self.coordinator.next_ms()) is not None and next_ms <= now_ms:
            self.now_ms = max(self.now_ms, next_ms)
            self.take(self.coordinator.advance(TimeMs(self.now_ms)))
        self.now_ms = now_ms

    def send(self, request: Request) -> int:
        self.take(self.coordinator.handle(request, TimeMs(self.now_ms)))
        return request.ticket

    def next_ticket(self) -> Ticket:
        self.ticket += 1
        return Ticket(self.ticket)

    def join(self, member_id: str = UNKNOWN_MEMBER, **named: Any) -> int:
        """Send a join and return its ticket."""
        fields: dict[str, Any] = {
            "client_id": "c",
            "protocols": (Protocol("range", b"topics"),),
            "session_timeout_ms": DurationMs(45_000),
            "rebalance_timeout_ms": DurationMs(300_000),
            **named,
        }
        return self.send(JoinGroupRequest(ticket=self.next_ticket(), member_id=MemberId(member_id), **fields))

    def enter(self, **named: Any) -> tuple[MemberId, int]:
        """Join in the two steps of a new dynamic member; return its name and the ticket of the second join."""
        first = self.answer(JoinGroupResponse, self.join(**named))
        assert first.error is ErrorCode.MEMBER_ID_REQUIRED
        return first.member_id, self.join(first.member_id, **named)

    def sync(
        self, member_id: str, generation: int, *assignments: tuple[str, bytes], instance: InstanceId | None = None
    ) -> int:
        request = SyncGroupRequest(
            ticket=self.next_ticket(),
            member_id=MemberId(member_id),
            generation=generation,
            assignments=tuple((MemberId(name), assignment) for name, assignment in assignments),
            instance_id=instance,
        )
        return self.send(request)

    def answer(self, kind: type[Answer], ticket: int) -> Answer:
        found = self.answers[ticket]
        assert isinstance(found, kind)
        return found

    def joined(self, ticket: int) -> JoinGroupResponse:
        found = self.answer(JoinGroupResponse, ticket)
        assert found.error is ErrorCode.NONE, found
        return found

    def synced(self, ticket: int) -> SyncGroupResponse:
        return self.answer(SyncGroupResponse, ticket)


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


def test_the_first_rebalance_waits_no_longer_than_the_longest_rebalance_timeout() -> None:
    """KIP-134: 3 s, 3 s more as somebody came, and then what is left of 7 s."""
    driver = Driver()
    tickets = []
    for second in range(7):
        driver.at(1000 * second)
        tickets.append(driver.enter(rebalance_timeout_ms=DurationMs(7_000))[1])
    driver.at(6_999)
    assert not any(ticket in driver.answers for ticket in tickets)
    driver.at(7_000)
    assert {driver.joined(ticket).generation for ticket in tickets} == {1}


@pytest.mark.parametrize("generation", [0, 2])
def test_requests_of_another_generation_are_refused(generation: int) -> None:
    driver = Driver()
    member, _ = driver.enter()
    driver.at(3_000)
    assert driver.synced(driver.sync(member, generation)).error is ErrorCode.ILLEGAL_GENERATION
    beat = HeartbeatRequest(ticket=driver.next_ticket(), member_id=member, generation=generation)
    assert driver.answer(HeartbeatResponse, driver.send(beat)).error is ErrorCode.ILLEGAL_GENERATION
    assert driver.group.commit_error(member, None, generation) is ErrorCode.ILLEGAL_GENERATION


def test_a_static_member_commits_in_its_present_generation_only() -> None:
    """ClassicGroup.validateMember looks at the instance id first, and at the generation all the same."""
    driver = Driver()
    joining = driver.join(instance_id=STATIC)
    driver.at(3_000)
    member = driver.joined(joining).member_id
    driver.sync(member, 1, (member, b"A"), instance=STATIC)
    for generation, error in (
        (0, ErrorCode.ILLEGAL_GENERATION),
        (1, ErrorCode.NONE),
        (2, ErrorCode.ILLEGAL_GENERATION),
    ):
        assert driver.group.commit_error(member, STATIC, generation) is error


def test_a_leader_that_dies_between_join_and_sync_is_dropped_and_the_rest_begin_anew() -> None:
    driver = Driver()
    (leader, _), (other, _) = driver.enter(), driver.enter()
    driver.at(6000)
    waiting = driver.sync(other, 1)
    driver.at(6000 + 45_000)
    assert leader not in driver.group.members
    assert driver.synced(waiting).error is ErrorCode.REBALANCE_IN_PROGRESS
    response = driver.joined(driver.join(other))
    assert (response.generation, response.leader_id) == (2, other)


def test_a_static_member_that_bounces_keeps_its_assignment_without_a_rebalance() -> None:
    driver = Driver()
    first = driver.join(instance_id=STATIC)
    driver.at(3000)
    old = driver.joined(first).member_id
    driver.sync(old, 1, (old, b"A"), instance=STATIC)
    driver.at(20_000)
    again = driver.joined(driver.join(instance_id=STATIC))
    assert again.member_id not in ("", old)
    assert (again.generation, again.leader_id, again.skip_assignment) == (1, again.member_id, True)
    assert driver.group.state is GroupState.STABLE
    assert driver.synced(driver.sync(again.member_id, 1, instance=STATIC)).assignment == b"A"
    beat = HeartbeatRequest(ticket=driver.next_ticket(), member_id=old, generation=1, instance_id=STATIC)
    assert driver.answer(HeartbeatResponse, driver.send(beat)).error is ErrorCode.FENCED_INSTANCE_ID


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
    (leader, _), (follower, _) = driver.enter(), driver.enter()
    driver.at(6_000)
    driver.sync(leader, 1)
    driver.sync(follower, 1)
    driver.coordinator.options = attrs.evolve(driver.coordinator.options, size_max=1)
    waiting = driver.join(leader)
    assert driver.answer(JoinGroupResponse, driver.join(follower)).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert list(driver.group.members) == [leader]
    driver.at(driver.now_ms + 300_000)
    assert driver.joined(waiting).generation == 2
