"""The account of a coordinator's group sees responses and states that cannot be (G11 to G13), and no others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.group.classic import (
    ClassicGroup,
    GroupState,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
    Ticket,
)
from broker.group.classic.group import Member
from broker.group.consumer import ConsumerGroup, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from broker.group.consumer.member import STATIC_LEAVING_EPOCH, ConsumerMember
from broker.group.members import InstanceId, MemberId
from broker.units import DurationMs
from replication.groups.accounts import Answered, GroupAccount
from tests.replication.groups.builders import t

A, B, NEW = MemberId("a"), MemberId("b"), MemberId("one-2")
ONE = InstanceId("one")
NO_TICKET: Final = Ticket(0)


def account(group: ClassicGroup, given: Any = None) -> tuple[Any, GroupAccount]:
    """A coordinator with this group, and its account."""
    service: Any = SimpleNamespace(
        group_id="g",
        is_consumer_group=False,
        classic=SimpleNamespace(group=group),
        consumer=SimpleNamespace(group=ConsumerGroup(group_id="g")),
    )
    return service, GroupAccount(service, {} if given is None else given, 0)


def join(member: MemberId, instance: InstanceId | None = None) -> JoinGroupRequest:
    return JoinGroupRequest(
        ticket=NO_TICKET,
        client_id="client",
        protocols=(),
        session_timeout_ms=DurationMs(10_000),
        rebalance_timeout_ms=DurationMs(30_000),
        member_id=member,
        instance_id=instance,
    )


def answered(made: GroupAccount, request: Any, response: Any) -> list[str]:
    made.asked(request, 0)
    return [broken.code for broken in made.answered(Answered(request, response), 0)]


@pytest.mark.parametrize(("generation", "found"), [(3, []), (2, ["G11"])])
def test_a_heartbeat_of_a_former_generation_must_fail(generation: int, found: list[str]) -> None:
    _, made = account(ClassicGroup("g", generation=3))
    request = HeartbeatRequest(ticket=NO_TICKET, member_id=A, generation=generation)
    assert answered(made, request, HeartbeatResponse(ticket=NO_TICKET)) == found
    refused = HeartbeatResponse(ticket=NO_TICKET, error=ErrorCode.ILLEGAL_GENERATION)
    assert answered(made, request, refused) == []


def test_a_former_process_of_a_static_member_must_fail() -> None:
    _, made = account(ClassicGroup("g", generation=3))
    for name in (A, NEW):
        assert answered(made, join(MemberId(""), ONE), JoinGroupResponse(ticket=NO_TICKET, member_id=name)) == []
    assert (
        answered(
            made,
            HeartbeatRequest(ticket=NO_TICKET, member_id=NEW, generation=3, instance_id=ONE),
            HeartbeatResponse(ticket=NO_TICKET),
        )
        == []
    )
    assert answered(
        made,
        HeartbeatRequest(ticket=NO_TICKET, member_id=A, generation=3, instance_id=ONE),
        HeartbeatResponse(ticket=NO_TICKET),
    ) == ["G11"]
    assert answered(made, join(A, ONE), JoinGroupResponse(ticket=NO_TICKET, member_id=A)) == ["G11"]


def test_a_dynamic_member_of_a_generation_has_asked_to_join_it() -> None:
    group = ClassicGroup("g", generation=3, members={name: Member.joining(name, join(name)) for name in (A, B)})
    _, made = account(group)
    made.asked(join(A), 0)
    group.generation = 4
    assert [broken.what for broken in made.after(0)] == ["b is in generation 4, and did not ask to join it"]


@pytest.mark.parametrize(
    ("member", "instance", "told", "found"),
    [(A, None, b"x", []), (A, None, b"y", ["G12"]), (NEW, ONE, b"z", []), (NEW, ONE, b"", ["G12"])],
)
def test_a_member_is_told_what_its_leader_gave(
    member: MemberId, instance: InstanceId | None, told: bytes, found: list[str]
) -> None:
    _, made = account(ClassicGroup("g", generation=3))
    made.asked(
        SyncGroupRequest(
            ticket=NO_TICKET, member_id=A, generation=3, assignments=((A, b"x"), (MemberId("one-1"), b"z"))
        ),
        0,
    )
    request = SyncGroupRequest(ticket=NO_TICKET, member_id=member, generation=3, instance_id=instance)
    assert answered(made, request, SyncGroupResponse(ticket=NO_TICKET, assignment=told)) == found


@pytest.mark.parametrize(("is_synced", "found"), [(True, ["G13"]), (False, [])])
def test_a_silent_member_is_gone_when_its_session_is_over_and_a_static_one_stays_till_then(
    is_synced: bool, found: list[str]
) -> None:
    """A static member that does not ask for its assignment goes when the time for it is over (expirePendingSync)."""
    member = attrs.evolve(Member.joining(A, join(A, ONE)), is_new=False, join_ticket=None)
    group = ClassicGroup("g", generation=3, state=GroupState.STABLE, members={A: member})
    _, made = account(group)
    if is_synced:
        sync = SyncGroupRequest(ticket=NO_TICKET, member_id=A, generation=3, instance_id=ONE)
        assert answered(made, sync, SyncGroupResponse(ticket=NO_TICKET, assignment=b"")) == []
    request = HeartbeatRequest(ticket=NO_TICKET, member_id=A, generation=3, instance_id=ONE)
    made.asked(request, 5_000)
    assert list(made.answered(Answered(request, HeartbeatResponse(ticket=NO_TICKET)), 5_000)) == []
    assert list(made.after(15_000)) == []
    assert [broken.code for broken in made.after(15_001)] == ["G13"]
    group.state = GroupState.PREPARING_REBALANCE
    assert list(made.after(14_000)) == []
    group.members, group.generation, group.state = {}, 4, GroupState.COMPLETING_REBALANCE
    assert [broken.code for broken in made.after(14_999)] == found


def test_a_member_whose_assignment_or_place_was_long_in_being_stored_has_a_session_from_then_on() -> None:
    member = attrs.evolve(Member.joining(A, join(A, ONE)), is_new=False, join_ticket=None)
    group = ClassicGroup("g", generation=3, state=GroupState.STABLE, members={A: member}, static_members={ONE: A})
    _, made = account(group)
    sync = SyncGroupRequest(ticket=NO_TICKET, member_id=A, generation=3, instance_id=ONE)
    assert list(made.answered(Answered(sync, SyncGroupResponse(ticket=NO_TICKET)), 20_000)) == []
    assert list(made.after(30_000)) == []
    refused = JoinGroupResponse(ticket=NO_TICKET, error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert list(made.answered(Answered(join(MemberId(""), ONE), refused), 35_000)) == []
    assert list(made.after(45_000)) == []
    assert [broken.code for broken in made.after(45_001)] == ["G13"]


def test_a_coordinator_that_has_loaded_its_group_lets_in_by_the_epoch_before() -> None:
    _, made = account(ClassicGroup("g"))
    request = ConsumerGroupHeartbeatRequest(member_id=A, epoch=7)
    for _ in range(2):
        assert answered(made, request, ConsumerGroupHeartbeatResponse(member_id=A, epoch=8)) == []
    request = ConsumerGroupHeartbeatRequest(member_id=A, epoch=6)
    assert answered(made, request, ConsumerGroupHeartbeatResponse(member_id=A, epoch=8)) == ["G11"]


@pytest.mark.parametrize(("epoch", "found"), [(5, []), (4, []), (3, ["G11"]), (0, [])])
def test_a_heartbeat_at_an_epoch_long_gone_must_fail(epoch: int, found: list[str]) -> None:
    _, made = account(ClassicGroup("g"))
    for told in (3, 4, 5):
        response = ConsumerGroupHeartbeatResponse(member_id=A, epoch=told)
        assert answered(made, ConsumerGroupHeartbeatRequest(member_id=A, epoch=max(told - 1, 3)), response) == []
    request = ConsumerGroupHeartbeatRequest(member_id=A, epoch=epoch)
    assert answered(made, request, ConsumerGroupHeartbeatResponse(member_id=A, epoch=5)) == found


@pytest.mark.parametrize(
    ("changes", "target", "found"),
    [
        ({"epoch": STATIC_LEAVING_EPOCH}, {A: {t(0)}}, []),
        ({"epoch": STATIC_LEAVING_EPOCH, "assigned": frozenset()}, {A: {t(0)}}, ["G12"]),
        ({"member_id": NEW}, {NEW: {t(0)}}, []),
        ({"member_id": NEW}, {NEW: set()}, ["G12"]),
        ({"member_id": NEW, "assigned": frozenset()}, {NEW: {t(0)}}, ["G12"]),
    ],
)
def test_a_static_member_keeps_its_place_while_it_is_away(
    changes: dict[str, Any], target: dict[MemberId, set[Any]], found: list[str]
) -> None:
    service, made = account(ClassicGroup("g"))
    service.is_consumer_group = True
    member = ConsumerMember(member_id=A, instance_id=ONE, epoch=2, assigned=frozenset({t(0)}))
    service.consumer.group = ConsumerGroup(
        group_id="g", epoch=2, target_epoch=2, members={A: member}, target={A: frozenset({t(0)})}
    )
    assert list(made.after(0)) == []
    after = attrs.evolve(member, **changes)
    given = {name: frozenset(share) for name, share in target.items()}
    service.consumer.group = attrs.evolve(service.consumer.group, members={after.member_id: after}, target=given)
    assert [broken.code for broken in made.after(0)] == found
