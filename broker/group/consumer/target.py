"""Compute the target assignment of a consumer group, at most once in an interval, with pure functions.

What it decides: whether a heartbeat computes the target anew, and which assignor does.

Constraints: only heartbeats compute a target; there is no timer, and no other thread. A target is due if the group's
epoch is above the target's. Since 4.3 it must also be older than group.consumer.assignment.interval.ms, counted on the
wall clock from the end of the last computation; the first target of a group, one of unknown age and an interval of 0
never wait. Whatever raised the epoch waits alike: a join, a leave, a fenced member, a subscription, a topic.

How: while a target waits, each member reconciles with the old target and its epoch. A member that joins meanwhile is in
no target: it gets the old target's epoch and no partitions. The partitions of a member that left stay unowned.

Example: with an interval of 1,000 ms, a joins at 5,000 ms and gets all partitions at epoch 2; b joins at 5,400 ms and
gets none, at epoch 2 as well, while the group is ASSIGNING at epoch 3. The next heartbeat from 6,000 ms on, of either
member, computes the target of epoch 3; heartbeats come every five seconds.

Left out: group.consumer.assignor.offload.enable, which 4.3.1 reads and does not use.

Source: GroupMetadataManager (maybeUpdateTargetAssignment, canComputeNextTargetAssignment), ConsumerGroup
(computePreferredServerAssignor) and TargetAssignmentBuilder, 4.2.1 and 4.3.1; KIP-1263.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from broker.config.settings import Settings
from broker.group.assignors import ServerAssignor, Subscriber
from broker.group.consumer.group import ConsumerGroup
from broker.group.consumer.member import NOTHING, Partitions
from broker.java.string_hash import java_map_order
from broker.releases import NEWEST, Release
from broker.units import DurationMs, TimeMs

BATCHES_SINCE: Final = Release("4.3")
"""The first release that spares assignments, and the first whose groups begin at epoch 1 (KIP-1263)."""
_INTERVAL: Final = "group.consumer.assignment.interval.ms"
_INTERVAL_MS: Final = DurationMs(1_000)


@attrs.frozen(kw_only=True)
class ConsumerOptions:
    """Hold the broker's settings for consumer groups and its release; the defaults are Kafka's."""

    size_max: int = 2**31 - 1
    session_timeout_ms: DurationMs = attrs.field(default=DurationMs(45_000))
    heartbeat_interval_ms: DurationMs = attrs.field(default=DurationMs(5_000))
    release: Release = NEWEST
    assignment_interval_ms: DurationMs = attrs.field()
    """The shortest time between two targets; 0 before 4.3, which has no such setting."""

    @assignment_interval_ms.default
    def _default_interval_ms(self) -> DurationMs:
        return _INTERVAL_MS if self.release >= BATCHES_SINCE else DurationMs(0)

    @classmethod
    def of(cls, settings: Settings) -> ConsumerOptions:
        """Return the options set by a broker's settings, of the settings' release."""
        return cls(
            size_max=settings.count("group.consumer.max.size"),
            session_timeout_ms=settings.duration_ms("group.consumer.session.timeout.ms"),
            heartbeat_interval_ms=settings.duration_ms("group.consumer.heartbeat.interval.ms"),
            release=settings.release,
            assignment_interval_ms=settings.duration_ms(_INTERVAL) if _INTERVAL in settings else DurationMs(0),
        )


@attrs.frozen(kw_only=True)
class GroupContext:
    """Hold the coordinator's settings, topics and assignors; the first assignor is the default."""

    options: ConsumerOptions
    assignors: Sequence[ServerAssignor]
    topics: Mapping[str, int]

    def assignor(self, name: str | None) -> ServerAssignor:
        """Return the assignor called `name`; the default assignor for None."""
        return next((assignor for assignor in self.assignors if assignor.name == name), self.assignors[0])


def new_group(group_id: str, release: Release) -> ConsumerGroup:
    """Return a group without members at the epochs with which a release creates it: 0, and 1 since 4.3."""
    epoch = 1 if release >= BATCHES_SINCE else 0
    return ConsumerGroup(group_id=group_id, epoch=epoch, target_epoch=epoch)


def is_target_due(group: ConsumerGroup, options: ConsumerOptions, now_ms: TimeMs) -> bool:
    """Return whether a heartbeat at `now_ms` computes the target anew."""
    if group.epoch == group.target_epoch:
        return False
    if not group.target_ms or options.assignment_interval_ms == 0:
        return True
    return now_ms >= group.target_ms + options.assignment_interval_ms


def with_target(group: ConsumerGroup, context: GroupContext, now_ms: TimeMs) -> ConsumerGroup:
    """Return the group, with a new target assignment if its group epoch rose and the assignment interval has passed."""
    if not is_target_due(group, context.options, now_ms):
        return group
    subscribers = tuple(
        Subscriber(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack=member.rack,
            subscribed_topics=member.subscribed_topics,
            target=group.target.get(member.member_id, NOTHING),
        )
        for member in group.ordered()
    )
    target = context.assignor(_preferred_assignor(group)).assign(subscribers, group.topics)
    shares = {name: _recorded(group.target.get(name), target.get(name, NOTHING)) for name in group.members}
    target_ms = (now_ms or None) if context.options.release >= BATCHES_SINCE else None
    return attrs.evolve(group, target=shares, target_epoch=group.epoch, target_ms=target_ms)


def _recorded(before: Partitions | None, now: Partitions) -> Partitions:
    """Return a member's part of the target; an equal one is not written again, and keeps the order of its record."""
    return now if before is None or before != now else before


def _preferred_assignor(group: ConsumerGroup) -> str | None:
    """Return the assignor that most members ask for; among equals, the first in a Java HashMap's order."""
    votes = Counter(member.assignor for member in group.ordered() if member.assignor is not None)
    return max(java_map_order(votes), key=lambda name: votes[str(name)]) if votes else None
