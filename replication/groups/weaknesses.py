"""Note the partitions that static members own and have not reported to their group coordinator, which G2 excuses.

What it decides: which partitions a member of a cooperative group brought into a generation, after a generation without
it had given them to others.

Goals, most important first:
1. Nothing but that hole is excused: what a member has reported, or is given again, is its own as any other partition.

Constraints: what is excused is read from the coordinator's group while that is stable, and given up with the partition.

How: a cooperative member keeps its partitions while it joins, and reports them in its JoinGroup only (KIP-429). A
static one that does not join in time stays in the group (KIP-345), with the report of the last time that it joined
(GroupMetadataManager.completeClassicGroupJoin removes dynamic members only). What it was given since then looks free,
and is given to another without waiting until it has been given up. A member that learns from a heartbeat that it missed
a generation gives up everything; one that still waits for a JoinGroup, and sends it again, comes into the next
generation with what it owns (AbstractCoordinator.joinGroupIfNeeded prepares once), until its poll takes the assignment,
for which the later of two claims wins (KAFKA-14639). No ticket of Kafka's is known for the time between. If a
generation in between came to nothing, both have reported the partition with the same generation: where members differ
in their topics the sticky assignor then gives it to either, and the other owns it until its own assignment comes.

Example: member 0 reports nothing, is given a-0 in generation 5, and joins generation 6 as its process is frozen and its
coordinator dies. The next coordinator gives a-0 to member 2 in generation 6. Both have it in generation 7.

Source: GroupMetadataManager, AbstractCoordinator and AbstractStickyAssignor, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker.group.classic import ClassicGroup, GroupState
from broker.group.members import InstanceId, MemberId
from broker.group.protocol import read_assignment, read_subscription
from broker.group.service import GroupService
from broker.ids import TopicPartition
from replication.groups.client.assigning import COOPERATIVE
from replication.groups.client.client import Client

_Partitions = frozenset[TopicPartition]
_NOTHING: _Partitions = frozenset()


class UnreportedPartitions:
    """Hold, by member id, the partitions of static members that a generation they missed gave to others.

    Where such a partition comes back to its member, the other has it until it hears of that, and is excused instead.
    """

    def __init__(self) -> None:
        self._noted: dict[MemberId, _Partitions] = {}

    def note(self, service: GroupService, clients: Iterable[Client]) -> None:
        """Note the partitions of `clients` that a stable generation, of which they have not heard, gave to others."""
        group = service.classic.group
        if group.state is not GroupState.STABLE or group.protocol_name not in COOPERATIVE:
            return
        clients = tuple(clients)
        given = {
            member_id: read_assignment(member.assignment) if member.assignment else _NOTHING
            for member_id, member in group.members.items()
        }
        back = _NOTHING.union(*(self.of(client) & given.get(client.member_id, _NOTHING) for client in clients))
        for client in clients:
            member = group.members.get(client.member_id)
            if member is None:
                continue
            missed = client.subscriptions.owned & back
            if member.instance_id is not None and client.generation < group.generation:
                reported = read_subscription(member.metadata(group.protocol_name)).owned
                others = _NOTHING.union(*(share for each, share in given.items() if each != client.member_id))
                missed |= (client.subscriptions.owned - frozenset(reported)) & others
            self._noted[client.member_id] = (self.of(client) | missed) - given[client.member_id]

    def look(self, client: Client) -> None:
        """Forget the noted partitions that a member has given up."""
        if client.member_id in self._noted:
            self._noted[client.member_id] = self.of(client)

    def of(self, client: Client) -> frozenset[TopicPartition]:
        """Return the partitions that a member still owns without having reported them in time."""
        return self._noted.get(client.member_id, _NOTHING) & client.subscriptions.owned


_Owners = Mapping[TopicPartition, tuple[InstanceId, MemberId]]
_Step = tuple[str, int, frozenset[TopicPartition]]
"""A group's first rebalance of two: its id, its generation, and what it gives."""


class WithheldPartitions:
    """Note what static members of classic groups owned and were not given, by group and generation."""

    def __init__(self) -> None:
        self._owners: dict[_Step, _Owners] = {}

    def note(self, service: GroupService) -> None:
        """Note the owners of what a stable group gives to nobody; what was noted first stands."""
        group = service.classic.group
        if group.state is GroupState.STABLE:
            step = _step(service)
            if step not in self._owners:
                self._owners[step] = _owners(group, step[2])

    def of(self, service: GroupService) -> frozenset[TopicPartition]:
        """Return the partitions that were withheld from a static member which has begun anew in this generation."""
        group = service.classic.group
        if group.state is not GroupState.STABLE:
            return frozenset()
        owners = self._owners.get(_step(service), {})
        return frozenset(
            partition
            for partition, (instance_id, member_id) in owners.items()
            if group.static_members.get(instance_id, member_id) != member_id
        )


def _step(service: GroupService) -> _Step:
    group = service.classic.group
    shares = (read_assignment(member.assignment) for member in group.members.values() if member.assignment)
    return service.group_id, group.generation, frozenset[TopicPartition]().union(*shares)


def _owners(group: ClassicGroup, given: frozenset[TopicPartition]) -> _Owners:
    """Return the static owner of each partition that is given to nobody, by what members said as they joined."""
    return {
        partition: (member.instance_id, member.member_id)
        for member in group.members.values()
        if member.instance_id is not None
        for partition in read_subscription(member.metadata(group.protocol_name)).owned
        if partition not in given
    }
