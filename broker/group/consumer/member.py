"""Move one member of a consumer group towards its target assignment, with pure functions.

What it decides: which partitions a member must revoke, which it may take, and when it has reached the target.

Goals, most important first:
1. No member is assigned a partition that another member may still be reading.
2. Each member moves at its own pace: a member with nothing to revoke waits for no other member.

Constraints: a member's epoch never falls, except when it leaves. Partitions in `revoking` still belong to the member
until it reports that it no longer owns them.

How: a member with an assignment and a newer target keeps the partitions that are in both. It must revoke those that
are only in its assignment, and until it has, it stays in its epoch, UNREVOKED. Then it moves to the target's epoch and
takes the free partitions of the target; while other members hold some of them, it is UNRELEASED.

Example: a owns {p0, p1}, b joins and the target gives p1 to b. a must revoke p1 and stays in its epoch; b moves to the
new epoch without p1 and waits; a reports {p0} and moves; b's next heartbeat gives it p1.

Source: org.apache.kafka.coordinator.group.modern.consumer.CurrentAssignmentBuilder, trunk 1eb7644 (2024-10); KIP-848.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final, TypeAlias

import attrs

from broker.group.members import InstanceId, MemberId
from broker.ids import TopicPartition
from broker.units import DurationMs

Partitions: TypeAlias = frozenset[TopicPartition]

NOTHING: Final[Partitions] = frozenset()
NOT_OWNED: Final = -1
"""The epoch of a partition that no member holds."""
JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1
STATIC_LEAVING_EPOCH: Final = -2
"""A static member that will be back; its partitions are kept for it."""


class MemberState(enum.Enum):
    """List the states of a member on the way to its target assignment; names are Kafka's."""

    STABLE = enum.auto()
    """The member owns the target assignment of its epoch."""

    UNREVOKED_PARTITIONS = enum.auto()
    """The member must revoke partitions and has not yet reported that it did."""

    UNRELEASED_PARTITIONS = enum.auto()
    """The member waits for partitions that other members have not yet revoked."""


@attrs.frozen(kw_only=True)
class ConsumerMember:
    """Describe a member as the coordinator stores it; `assigned` and `revoking` are its partitions at `epoch`."""

    member_id: MemberId
    instance_id: InstanceId | None = None
    client_id: str = ""
    rack: str | None = None
    subscribed_topics: frozenset[str] = frozenset()
    assignor: str | None = None
    rebalance_timeout_ms: DurationMs = attrs.field(default=DurationMs(300_000))
    state: MemberState = MemberState.STABLE
    epoch: int = JOINING_EPOCH
    previous_epoch: int = -1
    assigned: Partitions = NOTHING
    revoking: Partitions = NOTHING

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Return whether the member has reached the target assignment of `target_epoch`."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def moved(self, state: MemberState, epoch: int, assigned: Partitions, revoking: Partitions) -> ConsumerMember:
        """Return the member with this state, epoch and partitions; the present epoch becomes the previous epoch."""
        return attrs.evolve(
            self, state=state, epoch=epoch, previous_epoch=self.epoch, assigned=assigned, revoking=revoking
        )


def reconciled(
    member: ConsumerMember,
    target: Partitions,
    target_epoch: int,
    *,
    owned: Partitions | None,
    owner_epoch: Callable[[TopicPartition], int],
) -> ConsumerMember:
    """Return the member one step closer to its target assignment; the same member if it must wait.

    `owned` is what it reports to own, None when it did not say. `owner_epoch` tells at which epoch a partition is
    held by any member, NOT_OWNED when by none.
    """
    match member.state:
        case MemberState.STABLE:
            if member.epoch == target_epoch:
                return member
            epoch = member.epoch
        case MemberState.UNREVOKED_PARTITIONS:
            if _still_owns(owned, member.revoking):
                return member
            epoch = member.epoch + 1
        case MemberState.UNRELEASED_PARTITIONS:
            epoch = member.epoch
    kept = member.assigned & target
    revoking = member.assigned - kept
    if revoking and _still_owns(owned, revoking):
        return member.moved(MemberState.UNREVOKED_PARTITIONS, epoch, kept, revoking)
    wanted = target - kept
    free = frozenset(partition for partition in wanted if owner_epoch(partition) == NOT_OWNED)
    state = MemberState.STABLE if free == wanted else MemberState.UNRELEASED_PARTITIONS
    return member.moved(state, target_epoch, kept | free, NOTHING)


def _still_owns(owned: Partitions | None, revoking: Partitions) -> bool:
    """Return whether the member may still read partitions of `revoking`; it may if it did not report what it owns."""
    return owned is None or bool(owned & revoking)
