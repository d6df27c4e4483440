"""Track the partitions that a consumer owns, and the position in each.

Constraints: only partitions that are owned, have a position and are not paused are read. A position is the offset after
the last returned record. Partitions that are given up lose their position.

Source: org.apache.kafka.clients.consumer.internals.SubscriptionState and FetchCollector, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from broker.group.offsets import Commit
from broker.ids import Offset, TopicPartition
from broker.units import TimeMs
from replication.groups.client.messages import Read


class Feed(Protocol):
    """Define the records that a consumer can read, known by their offsets alone."""

    def end_offset(self, partition: TopicPartition, now_ms: TimeMs) -> Offset:
        """Return the offset after the last record that may be read."""
        ...


class SubscriptionState:
    """Hold the owned partitions of one consumer and their positions."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._positions: dict[TopicPartition, Offset | None] = {}
        self._paused: frozenset[TopicPartition] = frozenset()
        self._first: TopicPartition | None = None

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """Return the partitions that the consumer owns in its own view."""
        return frozenset(self._positions)

    def assign(self, partitions: frozenset[TopicPartition]) -> None:
        """Replace the owned partitions; those that were owned before keep their position."""
        self._positions = {one: self._positions.get(one) for one in sorted(partitions)}
        self._paused = frozenset()

    def pause(self, partitions: frozenset[TopicPartition]) -> None:
        """Stop reading these partitions, which are about to be revoked."""
        self._paused = partitions & self.owned

    def without_position(self) -> tuple[TopicPartition, ...]:
        """Return the owned partitions whose committed offset is not known yet."""
        return tuple(one for one, position in self._positions.items() if position is None)

    def seek(self, partition: TopicPartition, offset: Offset) -> None:
        """Set the offset from which a partition is read next; do nothing if it is no longer owned."""
        if partition in self._positions:
            self._positions[partition] = offset

    def commits(self) -> tuple[Commit, ...]:
        """Return a commit of every position."""
        return tuple(Commit(one, position) for one, position in self._positions.items() if position is not None)

    def read(self, count_max: int, now_ms: TimeMs) -> tuple[Read, ...]:
        """Return the records of one poll, at most `count_max`, and move the positions after them.

        After a full poll, the next poll begins with the next partition, so that none starves.
        """
        reads: list[Read] = []
        left = count_max
        for partition in self._in_turn():
            position = self._positions[partition]
            if position is None or partition in self._paused:
                continue
            end = Offset(min(self._feed.end_offset(partition, now_ms), position + left))
            if end > position:
                reads.append(Read(partition, position, end))
                self._positions[partition] = end
                left -= end - position
                self._first = partition
        if left:
            self._first = None
        return tuple(reads)

    def _in_turn(self) -> Iterable[TopicPartition]:
        partitions = list(self._positions)
        if self._first not in self._positions:
            return partitions
        place = partitions.index(self._first) + 1
        return partitions[place:] + partitions[:place]
