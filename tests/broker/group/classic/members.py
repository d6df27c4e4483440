"""Requests of a classic group's members: those that the group waits for, and any, sound and unsound.

Members use what they were answered, and now and then a wrong id, instance, generation or protocol.
"""

from __future__ import annotations

from typing import Any, Final

from broker.group.classic import (
    HeartbeatRequest,
    InstanceId,
    JoinGroupRequest,
    LeaveGroupRequest,
    MemberId,
    Protocol,
    SyncGroupRequest,
    Ticket,
)
from broker.units import DurationMs
from tests.broker.group.classic.reference import COMPLETING, PREPARING, ReferenceGroup
from tests.support.drawing import Draws

_INSTANCES: Final = (None, None, None, InstanceId("i1"), InstanceId("i2"))
_NAMES: Final = ("range", "sticky", "roundrobin")


class ClassicMembers:
    """What members know, and the requests that they draw; `reference` is the group as they should find it."""

    _reference: ReferenceGroup

    def begin_members(self, draws: Draws) -> None:
        """Forget all members; half of the groups are calm: members mostly send what the group waits for."""
        self._draws = draws
        self._is_calm = draws.is_one_in(2)
        self._names = draws.some(_NAMES, 2)
        self._ticket = 0
        self._stores: list[int] = []
        """The records that are being stored."""
        self._ids: dict[str, tuple[InstanceId | None, int]] = {}
        """The instance of each member id, and the generation that it knows."""
        self._asked: dict[int, InstanceId | None] = {}

    def drawn(self) -> Any:
        """Return the next request."""
        draws = self._draws
        self._ticket += 1
        if self._is_calm and not draws.is_one_in(4):
            return self._awaited()
        kinds = [self._join, self._join, self._sync, self._sync, self._heartbeat, self._leave]
        if self._reference.state == COMPLETING:
            kinds += [self._sync] * 8
        return draws.one(kinds)()

    def _held(self) -> list[InstanceId]:
        return [InstanceId(one.instance) for one in self._reference.members.values() if one.instance]

    def _again(self, name: str) -> JoinGroupRequest:
        """Return the JoinGroup of a member that has an id."""
        return self._join_of(MemberId(name), self._ids.get(name, (None, 0))[0])

    def _member(self) -> tuple[MemberId, InstanceId | None, int]:
        """Return a member id, its instance and its generation, now and then wrong ones."""
        draws = self._draws
        name = draws.one(["", *self._ids, *self._reference.members])
        instance, generation = self._ids.get(name, (None, -1))
        if draws.is_one_in(12):
            name = "stranger"
        if draws.is_one_in(12):
            instance = draws.one(_INSTANCES)
        if name in self._reference.members and not draws.is_one_in(10):
            generation = self._reference.generation
        return MemberId(name), instance, generation

    def _awaited(self) -> Any:
        """Return what the group waits for; if it waits for nothing, let a process start again, or say anything."""
        reference, draws = self._reference, self._draws
        if reference.state == COMPLETING and not self._stores:
            return self._sync()
        late = [*reference.pending, *(name for name, one in reference.members.items() if one.joins is None)]
        if reference.state == PREPARING and late:
            return self._again(draws.one(sorted(late)))
        held = self._held()
        if held and draws.is_one_in(2):
            return self._join_of(MemberId(""), draws.one(held))
        if reference.members and draws.is_one_in(3):
            return self._again(draws.one(sorted(reference.members)))
        if len(reference.members) < 3:
            return self._join_of(MemberId(""), draws.one(_INSTANCES))
        return draws.one((self._join, self._sync, self._heartbeat, self._leave))()

    def _join(self) -> JoinGroupRequest:
        draws = self._draws
        name, instance, _ = self._member()
        if not name:
            instance = draws.one((*_INSTANCES, *self._held()))
        return self._join_of(name, instance)

    def _join_of(self, name: MemberId, instance: InstanceId | None) -> JoinGroupRequest:
        draws = self._draws
        self._asked[self._ticket] = instance
        names = draws.some(_NAMES, 0 if draws.is_one_in(12) else 2)
        if self._is_calm and not draws.is_one_in(8):
            names = self._names
        said = (0,) if self._is_calm and not draws.is_one_in(4) else (0, 1)
        return JoinGroupRequest(
            ticket=Ticket(self._ticket),
            client_id="c",
            member_id=name,
            instance_id=instance,
            protocols=tuple(Protocol(each, each.encode() + bytes([draws.one(said)])) for each in names),
            session_timeout_ms=DurationMs(draws.one((6_000, 10_000, 60_000, 5_999 if draws.is_one_in(4) else 9_000))),
            rebalance_timeout_ms=DurationMs(draws.one((2_000, 3_001, 6_001, 5_000, 20_000, 20_000))),
            protocol_type=draws.one(("connect", "connect", "")) if draws.is_one_in(15) else "consumer",
            knows_two_steps=not draws.is_one_in(4),
            can_skip_assignment=draws.is_one_in(2),
        )

    def _sync(self) -> SyncGroupRequest:
        draws = self._draws
        name, instance, generation = self._member()
        if self._reference.leader and (self._is_calm or draws.is_one_in(2)):
            name = MemberId(self._reference.leader)
            instance = self._ids.get(name, (None, 0))[0]
            generation = self._reference.generation
        shares = tuple((MemberId(each), each[-3:].encode()) for each in draws.some([*self._reference.members, "x"]))
        return SyncGroupRequest(
            ticket=Ticket(self._ticket),
            member_id=name,
            generation=generation,
            instance_id=instance,
            protocol_type=draws.one((None, "consumer", "consumer", "connect" if draws.is_one_in(4) else None)),
            protocol_name=draws.one((None, self._reference.chosen, "other" if draws.is_one_in(4) else None)),
            assignments=shares,
        )

    def _heartbeat(self) -> HeartbeatRequest:
        name, instance, generation = self._member()
        return HeartbeatRequest(
            ticket=Ticket(self._ticket), member_id=name, generation=generation, instance_id=instance
        )

    def _leave(self) -> LeaveGroupRequest:
        pairs = []
        for _ in range(self._draws.number(1, 2)):
            name, instance, _ = self._member()
            pairs.append((name, instance))
        if not self._draws.is_one_in(3):
            stranger = InstanceId("i3")
            pairs = [(MemberId(""), self._draws.one((stranger, stranger, *self._held())))]
        return LeaveGroupRequest(ticket=Ticket(self._ticket), members=tuple(pairs))
