"""Note the partitions that a cooperative rebalance leaves unassigned for one that never comes (L8).

What it decides: which partitions of a stable classic group nobody need own, as Kafka gives them to nobody.

Goals, most important first:
1. Nothing but that hole is excused: not in the next generation, and not where no static member has begun anew.

Constraints: what was withheld is read from the coordinator's group as it becomes stable, before anybody replaces a
member in it.

How: in the first of two rebalances a cooperative assignor gives a partition that moves to nobody; its owner gives it up
and joins again, which is the second one (KIP-429). A static owner that begins anew in between owns nothing, has nothing
to give up, and is let in with the stored assignment and without a rebalance (KIP-345,
GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin, 4.3.1). Nobody joins again, and the partition waits
for the next rebalance, whatever brings that. KAFKA-13435 is about partitions that are added meanwhile; no ticket for
this one is known.

Example: member 0 owns a-1 and b-0 and is given b-0 in generation 8; it dies, and its next process is given b-0.

Source: ConsumerCoordinator.onJoinComplete (only who gives something up joins again), 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker.group.classic import ClassicGroup, GroupState
from broker.group.members import InstanceId, MemberId
from broker.group.protocol import read_assignment, read_subscription
from broker.group.service import GroupService
from broker.ids import TopicPartition

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
