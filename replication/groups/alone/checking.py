"""Looks at a life after every event and notes each invariant that does not hold, once.

Decides when which invariant is looked at; what it says is in `invariants`.

Constraints: a finding names the time; the same code and text is noted the first time only.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from broker.error_codes import ErrorCode
from broker.group.classic import GroupState, Ticket
from broker.group.consumer import ConsumerGroup
from broker.group.messages import OffsetCommitRequest, OffsetCommitResponse
from broker.group.records import CommittedOffset
from broker.group.service import GroupEntry, GroupService, OffsetRecord, Request, Response
from broker.ids import TopicPartition
from replication.groups.alone.processes import Process
from replication.groups.alone.world import Watcher, World
from replication.groups.client import invariants
from replication.groups.client.invariants import Broken
from replication.groups.client.messages import Given, Note, Taken
from replication.groups.client.views import fingerprint


@attrs.frozen
class Finding:
    """A rule that was broken, and when first."""

    at_ms: int
    broken: Broken

    def __str__(self) -> str:
        return f"at {self.at_ms:,} ms {self.broken.code}: {self.broken.what}"


class Checker(Watcher):
    """A watcher that holds the group to G1 to G9."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._noted: set[Broken] = set()
        self._accepted: dict[TopicPartition, CommittedOffset] = {}
        self._zombies: set[Ticket] = set()
        """Commits under way of those who were no current members when they asked."""
        self._must_compare = True
        """Whether offsets were stored since they were last compared; only then, and by a take-over, do they change."""
        self._coordinator: GroupService | None = None
        self._has_changed = True
        self._seen: object = None
        self._before: ConsumerGroup | None = None
        self._service: GroupService | None = None

    def noted(self, world: World, process: Process, note: Note) -> None:
        """Look again when somebody owns more or less."""
        self._has_changed |= isinstance(note, Given | Taken)

    def asked(self, world: World, ticket: Ticket, request: Request) -> None:
        """Remember the commits that must not be taken."""
        service = world.hosting.service
        if isinstance(request, OffsetCommitRequest) and service is not None and not is_from_current(service, request):
            self._zombies.add(ticket)

    def answered(self, world: World, ticket: Ticket, response: Response) -> None:
        """G7: a commit of who is no current member is refused."""
        if ticket in self._zombies and isinstance(response, OffsetCommitResponse):
            self._zombies.discard(ticket)
            if ErrorCode.NONE in response.errors:
                self._note(world, [Broken("G7", "a commit was taken from who is no current member")])

    def appended(self, world: World, entries: tuple[GroupEntry, ...]) -> None:
        """G8: what is to be forgotten may be."""
        service = world.hosting.service
        assert service is not None
        for entry in entries:
            if isinstance(entry, OffsetRecord) and entry.value is None:
                value = service.offsets.fetch(entry.key.group_id, TopicPartition(entry.key.topic, entry.key.partition))
                if value is not None:
                    retention_ms = service.offsets.options.retention_ms
                    topic = entry.key.topic
                    found = invariants.premature_expiry(value, topic, service, retention_ms, world.now_ms)
                    self._note(world, found)

    def stored(self, world: World, entries: tuple[GroupEntry, ...]) -> None:
        """Remember what was accepted."""
        self._must_compare = True
        for entry in entries:
            if isinstance(entry, OffsetRecord):
                partition = TopicPartition(entry.key.topic, entry.key.partition)
                if entry.value is None:
                    self._accepted.pop(partition, None)
                else:
                    self._accepted[partition] = entry.value

    def stepped(self, world: World) -> None:
        """G1 to G7 and G9, after every event."""
        service = world.hosting.service
        if service is None:
            return
        if self._must_compare or service is not self._coordinator:
            self._must_compare, self._coordinator = False, service
            self._note(world, invariants.commits_fenced(self._accepted, service))
        seen = fingerprint(service)
        if not self._has_changed and seen == self._seen:
            return
        self._has_changed, self._seen = False, seen
        clients = [process.client for process in world.alive()]
        self._note(world, invariants.single_owners(service, clients))
        if service.is_consumer_group:
            self._check_consumer(world, service)
        else:
            self._note(world, invariants.legal_transition(service.classic.group))
            self._note(world, invariants.generation_ownership(service.classic.group))

    def _check_consumer(self, world: World, service: GroupService) -> None:
        group = service.consumer.group
        for check in invariants.CONSUMER_CHECKS:
            self._note(world, check(group))
        if self._before is not None and service is self._service:
            self._note(world, invariants.legal_epochs(self._before, group))
        self._before, self._service = group, service

    def _note(self, world: World, found: Iterable[Broken]) -> None:
        for broken in found:
            if broken not in self._noted:
                self._noted.add(broken)
                self.findings.append(Finding(world.now_ms, broken))


def is_from_current(service: GroupService, request: OffsetCommitRequest) -> bool:
    """Whether a commit comes from a member, in the group's own generation; between join and sync from none."""
    if service.is_consumer_group:
        member = service.consumer.group.members.get(request.member_id)
        return member is not None and member.epoch == request.generation
    group = service.classic.group
    is_member = request.member_id in group.members and request.generation == group.generation
    return is_member and group.state is not GroupState.COMPLETING_REBALANCE
