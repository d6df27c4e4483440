"""Hold a consumer group as a frozen value: members, epochs, target assignment, and the owner of each partition.

Source: org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup, 4.2.1 and 4.3.1.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.group.consumer.member import NOT_OWNED, NOTHING, ConsumerMember, Partitions
from broker.group.members import InstanceId, MemberId
from broker.ids import TopicPartition
from broker.java.string_hash import java_map_order
from broker.units import TimeMs


class ConsumerGroupState(enum.Enum):
    """List the states of a consumer group, derived from members and epochs; names are Kafka's."""

    EMPTY = enum.auto()
    """It has no members."""

    ASSIGNING = enum.auto()
    """Something has changed, and the target for it is yet to be computed."""

    RECONCILING = enum.auto()
    """Some member has not arrived at the target."""

    STABLE = enum.auto()
    """Every member owns what the target gives it."""


_EPOCH_AT_FIRST_MAX: Final = 1
"""A group begins at epoch 0, or 1 since 4.3; once it has had a member and is empty, it is at 2 or more."""
_NO_MEMBERS: Final[Mapping[MemberId, ConsumerMember]] = MappingProxyType({})
_NO_TARGET: Final[Mapping[MemberId, Partitions]] = MappingProxyType({})
_NO_TOPICS: Final[Mapping[str, int]] = MappingProxyType({})


@attrs.frozen(kw_only=True)
class ConsumerGroup:
    """Describe one consumer group at one moment; `topics` maps the target's topics to partition counts.

    `target_ms` is when the target was computed; None if that is not known, as before 4.3.
    """

    group_id: str
    epoch: int = 0
    target_epoch: int = 0
    members: Mapping[MemberId, ConsumerMember] = _NO_MEMBERS
    target: Mapping[MemberId, Partitions] = _NO_TARGET
    topics: Mapping[str, int] = _NO_TOPICS
    target_ms: TimeMs | None = None

    @property
    def is_new(self) -> bool:
        """Return whether no member has ever joined the group."""
        return not self.members and self.epoch <= _EPOCH_AT_FIRST_MAX

    @property
    def state(self) -> ConsumerGroupState:
        """Return the group's state."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def ordered(self) -> list[ConsumerMember]:
        """Return the members in the order in which a Java HashMap of their ids iterates, as assignors see them."""
        return [self.members[MemberId(key)] for key in java_map_order(self.members) if key is not None]

    def static_member(self, instance_id: InstanceId | None) -> ConsumerMember | None:
        """Return the member with the instance id `instance_id`; None if there is none."""
        if instance_id is None:
            return None
        return next((member for member in self.members.values() if member.instance_id == instance_id), None)

    def owner_epoch(self, partition: TopicPartition) -> int:
        """Return the epoch of the member that owns or is revoking `partition`; NOT_OWNED if none does."""
        for member in self.members.values():
            if partition in member.assigned or partition in member.revoking:
                return member.epoch
        return NOT_OWNED

    def subscribed_topics(self) -> frozenset[str]:
        """Return the topics to which any member subscribes."""
        return frozenset().union(*(member.subscribed_topics for member in self.members.values()))

    def with_member(self, member: ConsumerMember) -> ConsumerGroup:
        """Return the group with `member` added or replaced."""
        return attrs.evolve(self, members={**self.members, member.member_id: member})

    def without_member(self, member_id: MemberId) -> ConsumerGroup:
        """Return the group without the member and its target, at the next group epoch."""
        members = {name: member for name, member in self.members.items() if name != member_id}
        target = {name: partitions for name, partitions in self.target.items() if name != member_id}
        return attrs.evolve(self, members=members, target=target, epoch=self.epoch + 1)

    def commit_error(
        self, member_id: MemberId, member_epoch: int, partitions: Collection[TopicPartition] = ()
    ) -> ErrorCode:
        """Return the error of an offset commit, NONE if accepted; a negative epoch is a consumer outside the group.

        A former epoch is accepted since 4.3 if the member has held each of `partitions` in it already (KIP-1251).
        """
        if member_epoch < 0 and not self.members:
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member.epoch == member_epoch:
            return ErrorCode.NONE
        is_held = bool(partitions) and all(member.may_commit(each, member_epoch) for each in partitions)
        return ErrorCode.NONE if is_held else ErrorCode.STALE_MEMBER_EPOCH

    def check_invariants(self) -> None:
        """Assert the group's invariants (G2, G4, G5 and G6 of its model)."""
        held = [p for member in self.members.values() for p in (*member.assigned, *member.revoking)]
        assert len(held) == len(set(held)), "a partition is held twice"
        assert self.target_epoch <= self.epoch
        assert self.target.keys() <= self.members.keys()
        for member in self.members.values():
            assert not member.assigned & member.revoking
            assert member.epoch <= self.epoch
            assert member.assignment_epochs.keys() <= member.assigned | member.revoking, member
            if member.is_reconciled_to(self.target_epoch):
                target = self.target.get(member.member_id, NOTHING)
                # A changed subscription takes partitions away before the next target does.
                assert member.assigned == target or (self.epoch > self.target_epoch and member.assigned < target), (
                    member
                )
