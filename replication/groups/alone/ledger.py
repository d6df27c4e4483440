"""Count what a group's rebalances cost: owners over time, moves, departures, generations.

A partition is unowned while no living process owns it, from its first owner on. A return is a partition that its owner
gave up and got again, with no owner between. The least number of moves is counted between two moments at which the
group was settled: the partitions that the most even assignment at the second cannot leave where they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from broker.group.service import GroupService
from broker.ids import TopicPartition
from placement.consumer.group import Group, Topic
from placement.consumer.group import Member as GroupMember
from placement.consumer.optimum import optimum_of
from replication.groups.checker import fingerprint, is_settled
from replication.groups.client.messages import Died, Note, PartitionsAssigned, PartitionsRevoked, PollExpired
from replication.groups.member import Member

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
class Death:
    """State that an application ended by an error."""

    at_ms: int
    text: str


class Ledger:
    """Count what rebalances cost in one run; times are those of the scenario, in ms."""

    def __init__(self) -> None:
        self.spans: list[OwnershipSpan] = []
        self.deaths: list[Death] = []
        self.move_count = 0
        self.return_count = 0
        self.least_move_count = 0
        self.departures: Counter[str] = Counter()
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
        self._has_changed = True

    def noted(self, name: str, note: Note, now_ms: int) -> None:
        """Follow the owners of partitions by one note of a member."""
        match note:
            case PartitionsAssigned():
                self._has_changed = True
                for partition in sorted(note.partitions):
                    self._give(partition, name, now_ms)
            case PartitionsRevoked():
                self._has_changed = True
                for partition in sorted(note.partitions):
                    self._take(partition, name, now_ms)
            case PollExpired():
                self._expired.add(name)
            case Died():
                self.deaths.append(Death(now_ms, f"{name}: {note.reason}"))

    def stepped(self, service: GroupService, alive: Sequence[Member], topics: Mapping[str, int], now_ms: int) -> None:
        """Record departures, generation and settled owners after an event."""
        for name, why in service.take_departed():
            self.departures[_POLL if name in self._expired else why.value] += 1
            self._expired.discard(name)
        generation = service.rebalance_count
        if generation > self._generation:
            self.generation_count += generation - self._generation
            self.generations_ms.append(now_ms)
        self._generation = generation
        seen = fingerprint(service)
        if self._has_changed or seen != self._seen:
            self._has_changed, self._seen = False, seen
            if is_settled(service, [member.client for member in alive if member.client is not None], topics):
                self._settle(alive, topics, now_ms)

    def finish(self, now_ms: int) -> None:
        """Close the spans that are open at the end of the scenario."""
        for partition, holders in sorted(self._holders.items()):
            self._account(partition, now_ms)
            for name, start_ms in sorted(holders.items()):
                self.spans.append(OwnershipSpan(partition, name, start_ms, now_ms))
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

    def _settle(self, alive: Sequence[Member], topics: Mapping[str, int], now_ms: int) -> None:
        """Count the moves that were needed since the group was last settled, of those that were made.

        A group may settle before it is balanced: what it puts off is needed when it is made.
        """
        held = {
            partition: member.plan.spec.name
            for member in alive
            if member.client is not None
            for partition in member.client.subscriptions.owned
        }
        self.settled_ms = now_ms
        members = [
            GroupMember(
                id=member.plan.spec.name,
                topics=member.plan.spec.topics,
                owned=tuple(sorted(one for one, owner in self._settled.items() if owner == member.plan.spec.name)),
            )
            for member in alive
        ]
        counts = [Topic(name=name, partition_count=count) for name, count in sorted(topics.items())]
        optimum = optimum_of(Group.of(members, counts)) if members else None
        if optimum is not None:
            there = [one for one in self._settled if one in held]
            moved_count = sum(held[one] != self._settled[one] for one in there)
            self.least_move_count += min(len(there) - optimum.kept_count, moved_count)
        self._settled = held
