"""Check the invariants of a group alone, G1 to G9 after every event and G10 now and then; note each breach once.

What it decides: which invariant is checked after which event; `replication.groups.common.invariants` defines them.

Constraints: a finding names the time; the same code and text is recorded once.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from broker.group.classic import Ticket
from broker.group.records import CommittedOffset
from broker.group.service import GroupEntry, GroupService, OffsetRecord, Request, Response
from broker.ids import TopicPartition
from broker.units import MINUTE_MS
from replication.groups.alone.processes import Process
from replication.groups.alone.simulation import GroupSimulation, Watcher
from replication.groups.client.messages import Note, PartitionsAssigned, PartitionsRevoked
from replication.groups.common import invariants
from replication.groups.common.coordinator_checks import CommitFence, ServiceChecker
from replication.groups.common.invariants import Broken


@attrs.frozen
class GroupFinding:
    """Describe an invariant that was broken, and when it was first."""

    at_ms: int
    broken: Broken

    def __str__(self) -> str:
        return f"at {self.at_ms:,} ms {self.broken.code}: {self.broken.what}"


class Checker(Watcher):
    """Check G1 to G9 after every event of a simulation."""

    def __init__(self) -> None:
        self.findings: list[GroupFinding] = []
        self._noted: set[Broken] = set()
        self._accepted: dict[TopicPartition, CommittedOffset] = {}
        self._fence: CommitFence[Ticket] = CommitFence()
        self._read_ms = 0
        """When the stored records were last read."""
        self._must_compare = True
        """Whether offsets were stored since they were last compared; only then, and by a take-over, do they change."""
        self._coordinator: GroupService | None = None
        self._has_changed = True
        self._checker: ServiceChecker | None = None

    def noted(self, simulation: GroupSimulation, process: Process, note: Note) -> None:
        """Mark the owners as changed when a client gains or loses partitions."""
        self._has_changed |= isinstance(note, PartitionsAssigned | PartitionsRevoked)

    def asked(self, simulation: GroupSimulation, ticket: Ticket, request: Request) -> None:
        """Record the commits that the coordinator must refuse."""
        service = simulation.hosting.service
        if service is not None:
            self._fence.asked(ticket, service, request)

    def answered(self, simulation: GroupSimulation, ticket: Ticket, response: Response) -> None:
        """Check G7: a commit is refused unless a current member sent it."""
        if self._fence.accepted(ticket, response) is not None:
            self._note(simulation, [Broken("G7", "a commit was taken from who is no current member")])

    def appended(self, simulation: GroupSimulation, entries: tuple[GroupEntry, ...]) -> None:
        """Check G8: an offset is deleted only when its retention allows."""
        service = simulation.hosting.service
        assert service is not None
        for entry in entries:
            if isinstance(entry, OffsetRecord) and entry.value is None:
                value = service.offsets.fetch(entry.key.group_id, TopicPartition(entry.key.topic, entry.key.partition))
                if value is not None:
                    retention_ms = service.offsets.options.retention_ms
                    topic = entry.key.topic
                    found = invariants.premature_expiry(value, topic, service, retention_ms, simulation.now_ms)
                    self._note(simulation, found)

    def stored(self, simulation: GroupSimulation, entries: tuple[GroupEntry, ...]) -> None:
        """Record the offsets that the coordinator accepted."""
        self._must_compare = True
        for entry in entries:
            if isinstance(entry, OffsetRecord):
                partition = TopicPartition(entry.key.topic, entry.key.partition)
                if entry.value is None:
                    self._accepted.pop(partition, None)
                else:
                    self._accepted[partition] = entry.value

    def stepped(self, simulation: GroupSimulation) -> None:
        """Check G1 to G7 and G9 after an event."""
        service = simulation.hosting.service
        if service is None:
            return
        if self._must_compare or service is not self._coordinator:
            self._must_compare, self._coordinator = False, service
            self._note(simulation, invariants.commits_fenced(self._accepted, service))
        if simulation.now_ms - self._read_ms >= MINUTE_MS:
            self._check_stored(simulation, service)
        if self._checker is None or self._checker.service is not service:
            self._checker = ServiceChecker(service)
        has_group_changed = self._checker.has_changed()
        if not self._has_changed and not has_group_changed:
            return
        self._has_changed = False
        clients = [process.client for process in simulation.alive()]
        self._note(simulation, invariants.single_owners(service, clients))
        self._note(simulation, self._checker.broken())

    def _check_stored(self, simulation: GroupSimulation, service: GroupService) -> None:
        """Check G10, unless something is being stored."""
        if not simulation.hosting.is_storing:
            self._read_ms = simulation.now_ms
            self._note(simulation, invariants.stored_is_known(service, simulation.hosting.reader(simulation.now_ms)))

    def _note(self, simulation: GroupSimulation, found: Iterable[Broken]) -> None:
        for broken in found:
            if broken not in self._noted:
                self._noted.add(broken)
                self.findings.append(GroupFinding(simulation.now_ms, broken))
