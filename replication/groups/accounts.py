"""Check a coordinator's responses against an account of generations, members and sessions, kept from what it was asked.

Constraints: the account of one coordinator is its own, as one that was replaced may go on; only what leaders of
generations have assigned is kept for all coordinators of a group.

How, for classic groups:
- G11: a Heartbeat and a SyncGroup succeed only for the generation that was joined last, and only for the member id that
  an instance id was given last. A generation has no dynamic member that did not ask to join it.
- G12: a SyncGroup is answered with what a leader has assigned in that generation, to the member or to the former member
  of its instance id.
- G13: a member that nothing came from, and that waits for nothing, is gone when its session timeout is over; a static
  member that has its assignment stays for as long, whoever joins.
For consumer groups, whose members stay as long as their removal cannot be stored:
- G11: a heartbeat succeeds only with the member epoch that was told last, or before last, or to join or leave.
- G12: a static member that has left for a while, or its successor, keeps target and partitions until the next target.

Source: Kafka group-coordinator GroupMetadataManager and ClassicGroup, 4.4.0; KIP-345, KIP-848.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.group.classic import (
    GroupState,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from broker.group.consumer import ConsumerGroup, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from broker.group.consumer.member import JOINING_EPOCH, STATIC_LEAVING_EPOCH
from broker.group.members import InstanceId, MemberId
from broker.group.service import GroupService
from replication.groups.client.messages import Request, Response
from replication.groups.invariants import Broken

_NONE: Final = ErrorCode.NONE
_TOLD_COUNT: Final = 2
Given = dict[tuple[str, int], list[dict[MemberId, bytes]]]
"""What leaders have assigned, by group and generation."""


@attrs.frozen
class Answered:
    """Hold a request and its response."""

    request: Request
    response: Response


class GroupAccount:
    """Keep the account of one coordinator's group."""

    def __init__(self, service: GroupService, given: Given, now_ms: int) -> None:
        self.service = service
        self._given = given
        self._began_ms = now_ms
        self._heard_ms: dict[MemberId, int] = {}
        self._static: dict[InstanceId, list[MemberId]] = {}
        """The member ids that each instance id was given, the last one last."""
        self._asked: set[MemberId] = set()
        """Who has asked to join since the last generation."""
        self._told: dict[MemberId, list[int]] = {}
        self._generation = service.classic.group.generation
        self._renewed_ms: dict[MemberId, int] = {}
        """When a heartbeat of each member last renewed its session."""
        self._synced: set[MemberId] = set()
        """Who has its assignment of this generation; the others go when the time to ask for it is over."""
        self._kept: dict[InstanceId, int] = {}
        """Until when the session of each static member lasts at least that was in the last stable group."""
        self._before = service.consumer.group

    def asked(self, request: Request, now_ms: int) -> None:
        """Note a request as it arrives."""
        named = getattr(request, "member_id", None)
        if named:
            self._heard_ms[named] = now_ms
        if isinstance(request, JoinGroupRequest) and named:
            self._asked.add(named)
        if isinstance(request, LeaveGroupRequest):
            self._kept.clear()
        if isinstance(request, SyncGroupRequest) and request.assignments:
            generation = self.service.group_id, request.generation
            self._given.setdefault(generation, []).append(dict(request.assignments))

    def answered(self, each: Answered, now_ms: int) -> Iterator[Broken]:
        """Check a response as it is sent, and note what it says."""
        request, response = each.request, each.response
        if getattr(response, "error", ErrorCode.UNKNOWN_SERVER_ERROR) is not _NONE:
            if isinstance(request, JoinGroupRequest) and request.instance_id is not None:
                # Its place, which was not stored as another's, is its former one's again, whose session begins anew.
                former = self.service.classic.group.static_members.get(request.instance_id)
                if former is not None:
                    self._heard_ms[former] = now_ms
            return
        if isinstance(request, JoinGroupRequest) and isinstance(response, JoinGroupResponse):
            self._heard_ms[response.member_id] = now_ms
            if request.instance_id is not None:
                ids = self._static.setdefault(request.instance_id, [])
                if response.member_id not in ids:
                    ids.append(response.member_id)
                elif ids[-1] != response.member_id:
                    yield Broken("G11", f"{response.member_id} joins, and {ids[-1]} has taken its place")
        elif isinstance(request, HeartbeatRequest | SyncGroupRequest):
            yield from self._check_current(request)
            if isinstance(request, HeartbeatRequest):
                self._renewed_ms[request.member_id] = now_ms
            if isinstance(response, SyncGroupResponse) and isinstance(request, SyncGroupRequest):
                # Its session begins with the assignment, which may have been long in being stored.
                self._heard_ms[request.member_id] = now_ms
                self._synced.add(request.member_id)
                yield from self._check_assignment(request, response)
        elif isinstance(request, ConsumerGroupHeartbeatRequest) and isinstance(
            response, ConsumerGroupHeartbeatResponse
        ):
            yield from self._check_epoch(request, response)

    def _check_current(self, request: HeartbeatRequest | SyncGroupRequest) -> Iterator[Broken]:
        name = type(request).__name__.removesuffix("Request")
        if request.generation < self._generation:
            what = f"a {name} of {request.member_id} in generation {request.generation} of {self._generation} succeeds"
            yield Broken("G11", what)
        ids = self._static.get(request.instance_id, []) if request.instance_id is not None else []
        if ids and ids[-1] != request.member_id:
            yield Broken("G11", f"a {name} of {request.member_id} succeeds, and {ids[-1]} has taken its place")

    def _check_assignment(self, request: SyncGroupRequest, response: SyncGroupResponse) -> Iterator[Broken]:
        given = self._given.get((self.service.group_id, request.generation))
        if given is None:
            return
        names = [request.member_id]
        if request.instance_id is not None:
            names += [name for each in given for name in each if name.startswith(f"{request.instance_id}-")]
        allowed = {next((each[name] for name in names if name in each), b"") for each in given}
        if response.assignment not in allowed:
            what = f"{request.member_id} is told another assignment than a leader of generation {request.generation}"
            yield Broken("G12", f"{what} gave it")

    def _check_epoch(
        self, request: ConsumerGroupHeartbeatRequest, response: ConsumerGroupHeartbeatResponse
    ) -> Iterator[Broken]:
        # A coordinator that has just loaded its groups lets in by the epoch that another one has told.
        told = self._told.setdefault(response.member_id, [request.epoch] if request.epoch > JOINING_EPOCH else [])
        if request.epoch > JOINING_EPOCH and told and request.epoch not in told:
            yield Broken("G11", f"a heartbeat of {request.member_id} at epoch {request.epoch} succeeds, of {told}")
        if not told or told[-1] != response.epoch:
            self._told[response.member_id] = [*told, response.epoch][-_TOLD_COUNT:]

    def after(self, now_ms: int) -> Iterator[Broken]:
        """Check the group after an event of its coordinator."""
        if self.service.is_consumer_group:
            before, self._before = self._before, self.service.consumer.group
            if before is not self._before:
                yield from _kept_places(before, self._before)
            return
        group = self.service.classic.group
        if group.generation != self._generation:
            for member_id, member in group.members.items():
                if member.instance_id is None and member_id not in self._asked and self._generation:
                    yield Broken("G11", f"{member_id} is in generation {group.generation}, and did not ask to join it")
            for instance_id, until_ms in self._kept.items():
                if instance_id not in group.static_members and now_ms < until_ms:
                    yield Broken("G13", f"the static member {instance_id} is gone, and its session lasts {until_ms} ms")
            self._generation = group.generation
            self._asked = set()
            self._synced = set()
            self._began_ms = now_ms
            self._kept.clear()
        if group.state is GroupState.STABLE:
            self._kept = {
                member.instance_id: self._renewed_ms[member_id] + member.session_timeout_ms
                for member_id, member in group.members.items()
                if member.instance_id is not None and member_id in self._synced & self._renewed_ms.keys()
            }
        yield from self._overdue(now_ms)

    def _overdue(self, now_ms: int) -> Iterator[Broken]:
        """Yield the members whose sessions are over (G13)."""
        if self.service.classic.group.state is not GroupState.STABLE:
            return
        for member_id, member in self.service.classic.group.members.items():
            if member.is_new or member.is_alive_without_heartbeat:
                continue
            heard_ms = max(self._heard_ms.get(member_id, 0), self._began_ms)
            if now_ms - heard_ms > member.session_timeout_ms:
                yield Broken("G13", f"{member_id} is a member, and was heard {now_ms - heard_ms} ms ago")


def _kept_places(before: ConsumerGroup, group: ConsumerGroup) -> Iterator[Broken]:
    """Yield the static members that have lost target or partitions by leaving for a while, or by coming back (G12)."""
    if before.target_epoch != group.target_epoch:
        return
    for former in before.members.values():
        member = group.static_member(former.instance_id)
        if member is None:
            continue
        has_left = member.epoch == STATIC_LEAVING_EPOCH != former.epoch
        if not has_left and member.member_id == former.member_id:
            continue
        target, kept = group.target.get(member.member_id), before.target.get(former.member_id)
        lost = former.assigned & (kept or frozenset()) - member.assigned
        if target != kept or (lost and member.subscribed_topics == former.subscribed_topics):
            what = f"{former.member_id} had the target {kept} and becomes {member.member_id} with {target}"
            yield Broken("G12", f"{what}; it loses {sorted(lost)}")
