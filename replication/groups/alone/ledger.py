"""Count what a group's rebalances cost: owners over time, records read twice, commits refused, latencies.

What it decides: what is counted. The ledger observes clients and the coordinator; the run does not depend on it.

Constraints:
- A partition is unowned while no living process owns it, counted from its first owner on.
- A duplicate is a record that is handed to an application when it was handed to one before.
- A move is a partition whose next owner is another member than its last one. A return is a partition that its owner
  gave up and got again, with no owner between: the owner could have kept it.
- The least number of moves is counted between two moments at which the group was settled (every partition owned, by
  living members): the partitions that the most even assignment at the second moment cannot leave where they were.

Source: ours; latencies are those of Java's rebalance-latency-avg, -max and rebalance-total.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import attrs

from broker.ids import TopicPartition
from placement.consumer.group import Group, Member, Topic
from placement.consumer.optimum import optimum_of
from replication.groups.alone.processes import Process
from replication.groups.alone.simulation import GROUP_ID, GroupSimulation, Watcher
from replication.groups.client.messages import (
    Died,
    Note,
    PartitionsAssigned,
    PartitionsRevoked,
    PollExpired,
)
from replication.groups.common.counts import GroupCounts
from replication.groups.common.events import Event
from replication.groups.common.views import fingerprint, is_settled

_SAMPLE_MS: Final = 1_000
_POLL: Final = "max.poll.interval.ms"
"""The reason of a departure by a client whose application did not poll."""


@attrs.frozen
class OwnershipSpan:
    """State that one member owned one partition from start_ms to end_ms (exclusive)."""

    partition: TopicPartition
    member: str
    start_ms: int
    end_ms: int


@attrs.frozen
class Mark:
    """Describe an event at a time, as text."""

    at_ms: int
    text: str


class Ledger(Watcher):
    """Count what rebalances cost in one simulation."""

    def __init__(self) -> None:
        self.spans: list[OwnershipSpan] = []
        self.marks: list[Mark] = []
        self.counts = GroupCounts()
        self.skipped: list[Mark] = []
        """The records that no member was handed though the group went past them."""
        self.move_count = 0
        self.return_count = 0
        self.least_move_count = 0
        self.departures: Counter[str] = Counter()
        self.deaths: list[Mark] = []
        self.generation_count = 0
        self.generations_ms: list[int] = []
        self.unowned_ms: Counter[TopicPartition] = Counter()
        self.shared_ms: Counter[TopicPartition] = Counter()
        self.settled_ms: int | None = None
        self._holders: dict[TopicPartition, dict[str, int]] = {}
        self._last_owner: dict[TopicPartition, str] = {}
        self._changed_ms: dict[TopicPartition, int] = {}
        self._expired: set[str] = set()
        self._seen: object = None
        self._generation = 0
        self._settled: dict[TopicPartition, str] = {}
        self._sampled_ms = 0
        self._has_changed = True

    # What the simulation shows.

    def noted(self, simulation: GroupSimulation, process: Process, note: Note) -> None:
        """Count one note of a client, and follow the owners of partitions."""
        skipped = self.counts.note(GROUP_ID, note)
        if skipped:
            self.skipped.append(Mark(simulation.now_ms, skipped))
        match note:
            case PartitionsAssigned():
                self._has_changed = True
                for partition in sorted(note.partitions):
                    self._give(partition, process.name, simulation.now_ms)
            case PartitionsRevoked():
                self._has_changed = True
                for partition in sorted(note.partitions):
                    self._take(partition, process.name, simulation.now_ms)
            case PollExpired():
                self._expired.add(process.name)
            case Died():
                self.deaths.append(Mark(simulation.now_ms, f"{process.name}: {note.reason}"))

    def happened(self, simulation: GroupSimulation, event: Event) -> None:
        """Record an event of the scenario as a mark."""
        self.marks.append(Mark(simulation.now_ms, str(event)))

    def stepped(self, simulation: GroupSimulation) -> None:
        """Record lag, generation and owners after an event."""
        if simulation.now_ms - self._sampled_ms >= _SAMPLE_MS:
            self._sampled_ms = simulation.now_ms
            self._sample_lag(simulation)
        service = simulation.hosting.service
        if service is None:
            return
        for name, why in service.take_departed():
            self.departures[_POLL if name in self._expired else why.value] += 1
            self._expired.discard(name)
        generation = service.rebalance_count
        if generation > self._generation:
            self.generation_count += generation - self._generation
            self.generations_ms.append(simulation.now_ms)
        self._generation = generation
        seen = fingerprint(service)
        if self._has_changed or seen != self._seen:
            self._has_changed, self._seen = False, seen
            clients = [process.client for process in simulation.alive()]
            if is_settled(service, clients, simulation.topics):
                self._settle(simulation)

    def finish(self, simulation: GroupSimulation) -> None:
        """Close the spans that are open at the end of the scenario."""
        for partition, holders in sorted(self._holders.items()):
            self._account(partition, simulation.now_ms)
            for name, start_ms in sorted(holders.items()):
                self.spans.append(OwnershipSpan(partition, name, start_ms, simulation.now_ms))
        self.spans.sort(key=lambda span: (span.partition, span.start_ms, span.member))

    # Ownership.

    def _give(self, partition: TopicPartition, name: str, now_ms: int) -> None:
        last = self._last_owner.get(partition)
        if last is not None:
            self._account(partition, now_ms)
            if last == name:
                self.return_count += 1
            else:
                self.move_count += 1
        self._changed_ms[partition] = now_ms
        self._last_owner[partition] = name
        self._holders.setdefault(partition, {})[name] = now_ms

    def _take(self, partition: TopicPartition, name: str, now_ms: int) -> None:
        self._account(partition, now_ms)
        start_ms = self._holders[partition].pop(name)
        self.spans.append(OwnershipSpan(partition, name, start_ms, now_ms))

    def _account(self, partition: TopicPartition, now_ms: int) -> None:
        """Add the time since the partition's last change to its unowned or shared time."""
        elapsed_ms = now_ms - self._changed_ms[partition]
        self._changed_ms[partition] = now_ms
        count = len(self._holders.get(partition, {}))
        if count == 0:
            self.unowned_ms[partition] += elapsed_ms
        elif count > 1:
            self.shared_ms[partition] += elapsed_ms

    def _sample_lag(self, simulation: GroupSimulation) -> None:
        lag = sum(
            simulation.records.end_offset(partition, simulation.now_ms)
            - self.counts.highs.get((GROUP_ID, partition), 0)
            for partition in simulation.records.made_ms
        )
        self.counts.lag_max = max(self.counts.lag_max, lag)

    # Membership, and what a settled group holds.

    def _settle(self, simulation: GroupSimulation) -> None:
        """Count the moves that were needed since the group was last settled, of those that were made.

        A group may settle before it is balanced: what it puts off is needed when it is made.
        """
        held = {
            partition: process.name
            for process in simulation.alive()
            for partition in process.client.subscriptions.owned
        }
        self.settled_ms = simulation.now_ms
        subscriptions = {process.name: process.client.spec.topics for process in simulation.alive()}
        topics = [Topic(name=name, partition_count=count) for name, count in sorted(simulation.topics.items())]
        members = [
            Member(
                id=name,
                topics=subscribed,
                owned=tuple(sorted(one for one, owner in self._settled.items() if owner == name)),
            )
            for name, subscribed in sorted(subscriptions.items())
        ]
        optimum = optimum_of(Group.of(members, topics)) if members else None
        if optimum is not None:
            there = [one for one in self._settled if one in held]
            moved_count = sum(held[one] != self._settled[one] for one in there)
            self.least_move_count += min(len(there) - optimum.kept_count, moved_count)
        self._settled = held
