"""Read a group of either protocol: its fingerprint, its assignment, whether it is settled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker.group.classic import GroupState
from broker.group.consumer import ConsumerGroupState
from broker.group.members import MemberId
from broker.group.protocol import read_assignment
from broker.group.service import GroupService
from broker.ids import TopicPartition
from replication.groups.client.client import Client


def fingerprint(service: GroupService) -> object:
    """Return a value that changes when the group's members, generation, state or assignments do."""
    if service.is_consumer_group:
        return id(service), service.consumer.group
    group = service.classic.group
    return id(service), group.state, group.generation, tuple(group.members)


def given(service: GroupService) -> Mapping[MemberId, frozenset[TopicPartition]] | None:
    """Return each member's assignment in a stable group; None where the group is not stable."""
    if service.is_consumer_group:
        modern = service.consumer.group
        return dict(modern.target) if modern.state is ConsumerGroupState.STABLE else None
    group = service.classic.group
    if group.state is not GroupState.STABLE:
        return None
    return {
        member_id: read_assignment(member.assignment) if member.assignment else frozenset()
        for member_id, member in group.members.items()
    }


def is_settled(service: GroupService, clients: Iterable[Client], partition_counts: Mapping[str, int]) -> bool:
    """Return whether the group is stable, all members run, and they own every partition as assigned."""
    shares = given(service)
    alive = {client.member_id: client for client in clients}
    if shares is None or shares.keys() - alive.keys():
        return False
    if any(alive[member_id].subscriptions.owned != share for member_id, share in shares.items()):
        return False
    topics = {topic for client in alive.values() for topic in client.spec.topics}
    return sum(map(len, shares.values())) == sum(partition_counts.get(topic, 0) for topic in topics)
