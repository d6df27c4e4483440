"""Check one coordinator's group step by step: its state by G1, G3 to G6 and G9, and refused commits by G7.

Constraints: a group is checked only when its fingerprint has changed. A coordinator that begins anew is compared with
its own first state, never with another coordinator's.

Source: ours; the invariants name theirs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

import attrs

from broker.error_codes import ErrorCode
from broker.group.classic import GroupState
from broker.group.consumer import ConsumerGroup
from broker.group.members import MemberId
from broker.group.messages import OffsetCommitRequest, OffsetCommitResponse
from broker.group.service import GroupService, Request
from replication.groups.client.messages import Response
from replication.groups.common import invariants
from replication.groups.common.invariants import Broken
from replication.groups.common.views import fingerprint

Key = TypeVar("Key", bound=Hashable)


@attrs.define
class ServiceChecker:
    """Check one coordinator's group without looking at any client."""

    service: GroupService
    _fingerprint: object = None
    _before: ConsumerGroup | None = None

    def has_changed(self) -> bool:
        """Return whether the group has changed since the last call."""
        before, self._fingerprint = self._fingerprint, fingerprint(self.service)
        return before != self._fingerprint

    def broken(self) -> Iterator[Broken]:
        """Yield the invariants that the group breaks now, or broke since the state last checked."""
        if not self.service.is_consumer_group:
            yield from invariants.legal_transition(self.service.classic.group)
            yield from invariants.generation_ownership(self.service.classic.group)
            return
        group = self.service.consumer.group
        for check in invariants.CONSUMER_CHECKS:
            yield from check(group)
        if self._before is not None:
            yield from invariants.legal_epochs(self._before, group)
        self._before = group


class CommitFence(Generic[Key]):
    """Track commits under way whose sender was no current member when they arrived; `Key` names a request."""

    def __init__(self) -> None:
        self._stale: dict[Key, MemberId] = {}

    def asked(self, key: Key, service: GroupService, request: Request) -> None:
        """Record a commit that the coordinator must refuse."""
        if isinstance(request, OffsetCommitRequest) and not is_from_current(service, request):
            self._stale[key] = request.member_id

    def accepted(self, key: Key, response: Response) -> MemberId | None:
        """Return the sender of a wrongly accepted commit (G7); None for all other responses."""
        if not isinstance(response, OffsetCommitResponse):
            return None
        member_id = self._stale.pop(key, None)
        return member_id if ErrorCode.NONE in response.errors else None


def is_from_current(service: GroupService, request: OffsetCommitRequest) -> bool:
    """Return whether a current member sent this commit; a classic group between JoinGroup and SyncGroup has none.

    A member of a consumer group may use a former epoch for partitions that it has held since then (KIP-1251).
    """
    if service.is_consumer_group:
        member = service.consumer.group.members.get(request.member_id)
        if member is None or not request.commits:
            return member is not None and member.epoch == request.generation
        epochs = member.assignment_epochs
        held_from = max(epochs.get(each.partition, member.epoch) for each in request.commits)
        return held_from <= request.generation <= member.epoch
    group = service.classic.group
    is_member = request.member_id in group.members and request.generation == group.generation
    return is_member and group.state is not GroupState.COMPLETING_REBALANCE
