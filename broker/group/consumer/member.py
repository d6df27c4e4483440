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

Since 4.1 a partition that the member itself gives back counts as free for it. Since 4.2 the target's partitions of a
topic without a subscription of the member are left out, a changed subscription takes such partitions away before the
next target, and a member that revokes twice in a row stays in its epoch both times, which before was one more. Since
4.3 each partition carries the epoch at which the member got it (KIP-1251).

Example: a owns {p0, p1}, b joins and the target gives p1 to b. a must revoke p1 and stays in its epoch; b moves to the
new epoch without p1 and waits; a reports {p0} and moves; b's next heartbeat gives it p1.

Left out: subscriptions by regular expression.

Source: org.apache.kafka.coordinator.group.modern.consumer.CurrentAssignmentBuilder, 4.0.1, 4.1.2, 4.2.1 and 4.3.1;
KIP-848, KIP-1251.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import attrs

from broker.error_codes import ErrorCode
from broker.group.members import UNKNOWN_MEMBER, InstanceId, MemberId
from broker.ids import TopicPartition
from broker.releases import NEWEST, Release
from broker.units import DurationMs

Partitions: TypeAlias = frozenset[TopicPartition]

NOTHING: Final[Partitions] = frozenset()
NOT_OWNED: Final = -1
"""The epoch of a partition that no member holds."""
JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1
STATIC_LEAVING_EPOCH: Final = -2
"""A static member that will be back; its partitions are kept for it."""
_NO_EPOCHS: Final[Mapping[TopicPartition, int]] = MappingProxyType({})
_TAKES_BACK_SINCE: Final = Release("4.1")
_FOLLOWS_SUBSCRIPTION_SINCE: Final = Release("4.2")
_NOTES_EPOCHS_SINCE: Final = Release("4.3")


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
    """Describe a member as the coordinator stores it; `assigned` and `revoking` are its partitions at `epoch`.

    `assignment_epochs` maps each of them to the epoch at which the member got it; empty before 4.3.
    """

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
    assignment_epochs: Mapping[TopicPartition, int] = attrs.field(default=_NO_EPOCHS, hash=False)

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Return whether the member has reached the target assignment of `target_epoch`."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def moved(self, state: MemberState, epoch: int, assigned: Partitions, revoking: Partitions) -> ConsumerMember:
        """Return the member with this state, epoch and partitions; the present epoch becomes the previous epoch."""
        held = assigned | revoking
        epochs = {partition: at for partition, at in self.assignment_epochs.items() if partition in held}
        return attrs.evolve(
            self,
            state=state,
            epoch=epoch,
            previous_epoch=self.epoch,
            assigned=assigned,
            revoking=revoking,
            assignment_epochs=epochs,
        )

    def gone_for_a_while(self) -> ConsumerMember:
        """Return the static member after it has left to come back; its successor has its partitions from epoch 0."""
        epochs = {partition: 0 for partition in self.assignment_epochs if partition in self.assigned}
        return attrs.evolve(self, epoch=STATIC_LEAVING_EPOCH, revoking=NOTHING, assignment_epochs=epochs)

    def may_commit(self, partition: TopicPartition, epoch: int) -> bool:
        """Return whether the member may commit an offset of `partition` in a former member epoch (KIP-1251)."""
        return self.assignment_epochs.get(partition, self.epoch) <= epoch < self.epoch


@attrs.frozen(kw_only=True)
class TargetAssignment:
    """Hold a member's part of the target assignment, and the target's epoch."""

    partitions: Partitions
    epoch: int


@attrs.frozen(kw_only=True)
class HeartbeatReport:
    """Hold what a heartbeat reports: the partitions its member owns, None if absent, and a new subscription."""

    owned: Partitions | None
    has_subscription_changed: bool = False


def reconciled(
    member: ConsumerMember,
    target: TargetAssignment,
    report: HeartbeatReport,
    *,
    owner_epoch: Callable[[TopicPartition], int],
    release: Release = NEWEST,
) -> ConsumerMember:
    """Return the member one step closer to its target assignment; the same member if it must wait.

    `owner_epoch` returns the epoch at which any member holds a partition, NOT_OWNED when by none.
    """
    follows = release >= _FOLLOWS_SUBSCRIPTION_SINCE
    epoch = member.epoch
    if member.state is MemberState.STABLE and member.epoch == target.epoch:
        return _subscribed(member, report, release) if follows and report.has_subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _still_owns(report.owned, member.revoking):
            return _subscribed(member, report, release) if follows and report.has_subscription_changed else member
        epoch = member.epoch if follows else member.epoch + 1
    wished = target.partitions
    if follows:
        wished = frozenset(each for each in wished if each.topic in member.subscribed_topics)
    kept = member.assigned & wished
    revoking = member.assigned - kept
    if revoking and _still_owns(report.owned, revoking):
        return member.moved(MemberState.UNREVOKED_PARTITIONS, epoch, kept, revoking)
    wanted = wished - kept
    own = member.revoking if release >= _TAKES_BACK_SINCE else NOTHING
    free = frozenset(partition for partition in wanted if partition in own or owner_epoch(partition) == NOT_OWNED)
    state = MemberState.STABLE if free == wanted else MemberState.UNRELEASED_PARTITIONS
    arrived = member.moved(state, target.epoch, kept | free, NOTHING)
    if release < _NOTES_EPOCHS_SINCE:
        return arrived
    epochs = {**arrived.assignment_epochs, **dict.fromkeys(sorted(free), target.epoch)}
    return attrs.evolve(arrived, assignment_epochs=epochs)


def _subscribed(member: ConsumerMember, report: HeartbeatReport, release: Release) -> ConsumerMember:
    """Return the member without the partitions of topics to which it does not subscribe any more."""
    lost = frozenset(each for each in member.assigned if each.topic not in member.subscribed_topics)
    if not lost:
        return member
    kept, revoking = member.assigned - lost, member.revoking | lost
    before = member.previous_epoch
    if _still_owns(report.owned, revoking):
        moved = member.moved(MemberState.UNREVOKED_PARTITIONS, member.epoch, kept, revoking)
    else:
        moved = member.moved(member.state, member.epoch, kept, member.revoking)
    return moved if release >= _NOTES_EPOCHS_SINCE else attrs.evolve(moved, previous_epoch=before)


def _still_owns(owned: Partitions | None, revoking: Partitions) -> bool:
    """Return whether the member may still read partitions of `revoking`; it may if it did not report what it owns."""
    return owned is None or bool(owned & revoking)


@attrs.frozen(kw_only=True)
class ConsumerGroupHeartbeatRequest:
    """Join (epoch 0), report, leave (-1) or leave for a while (-2); None means an unchanged field."""

    member_id: MemberId = UNKNOWN_MEMBER
    epoch: int = JOINING_EPOCH
    instance_id: InstanceId | None = None
    client_id: str = ""
    rack: str | None = None
    rebalance_timeout_ms: DurationMs | None = None
    subscribed_topics: frozenset[str] | None = None
    assignor: str | None = None
    owned: Partitions | None = None

    @property
    def is_full(self) -> bool:
        """Return whether every optional field is set, as in the first heartbeat of a member or after an error."""
        return None not in (self.rebalance_timeout_ms, self.subscribed_topics, self.owned)


@attrs.frozen(kw_only=True)
class ConsumerGroupHeartbeatResponse:
    """Answer a ConsumerGroupHeartbeat; `assignment` is None if it has not changed."""

    error: ErrorCode = ErrorCode.NONE
    member_id: MemberId = UNKNOWN_MEMBER
    epoch: int = JOINING_EPOCH
    heartbeat_interval_ms: DurationMs = attrs.field(default=DurationMs(0))
    assignment: Partitions | None = None
