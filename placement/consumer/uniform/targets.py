"""Hold the target assignment that the uniform assignor of Kafka 3.9 changes step by step.

What it decides: who has which partition, how full each member is, and which members can take more, the least
loaded first.

Constraints: a partition has one owner, the last member to which it was assigned; what two members claim stays with both
and counts for both. A claim counts even if the partition does not exist, so that a member can have more than all that
there is for it. Members are numbered in the order of Java's map, partitions by id.

Example: a member that may have t of 2 and has t-0 and t-1 is full, and not among those that can take more.

Source: UniformHeterogeneousAssignmentBuilder.AssignmentManager, 3.9.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from sortedcontainers import SortedList

from placement.consumer.group import Group


@attrs.define(eq=False)
class Targets:
    """Track each member's partitions, its size and the most it may have, and the owner of each partition.

    `ranks` are those of the member ids. `open` has (size, rank, member) of those that are not full, which Kafka keeps
    in a TreeSet.
    """

    topics: list[set[int]]
    ranks: list[int]
    most: list[int]
    held: list[set[int]]
    sizes: list[int]
    owners: dict[int, int]
    open: SortedList[tuple[int, int, int]]

    @classmethod
    def of(cls, group: Group, rows: Sequence[Sequence[int]]) -> Targets:
        """Return the empty assignment for members that subscribe to the topics in `rows`."""
        ranks = group.member_ranks[group.member_hash_order].tolist()
        counts = group.partition_counts.tolist()
        most = [sum(counts[topic] for topic in row) for row in rows]
        members = SortedList((0, ranks[member], member) for member in range(len(rows)) if most[member] > 0)
        held: list[set[int]] = [set() for _ in rows]
        return cls([set(row) for row in rows], ranks, most, held, [0] * len(rows), {}, members)

    def add(self, partition: int, member: int) -> None:
        """Assign a partition to a member."""
        self.held[member].add(partition)
        self.owners[partition] = member
        self._resize(member, self.sizes[member] + 1)

    def remove(self, partition: int, member: int) -> None:
        """Take a partition from a member that owns it."""
        self.held[member].discard(partition)
        del self.owners[partition]
        self._resize(member, max(0, self.sizes[member] - 1))

    def is_full(self, member: int) -> bool:
        """Return whether a member has as many partitions as its topics have, or more."""
        return self.sizes[member] >= self.most[member]

    def least_loaded(self, topic: int) -> int | None:
        """Return the member with the least (size, member id) that is not full and subscribes to the topic."""
        return next((member for _, _, member in self.open if topic in self.topics[member]), None)

    def owner_sizes(self, partition_count: int) -> np.ndarray:
        """Return int64[P]: the size of each partition's owner, 0 where it has none."""
        sizes = np.zeros(partition_count, np.int64)
        owned = [(one, self.sizes[member]) for one, member in self.owners.items() if one < partition_count]
        if owned:
            places, values = zip(*owned, strict=True)
            sizes[list(places)] = values
        return sizes

    def _resize(self, member: int, size: int) -> None:
        if not self.is_full(member):
            self.open.remove((self.sizes[member], self.ranks[member], member))
        self.sizes[member] = size
        if not self.is_full(member):
            self.open.add((size, self.ranks[member], member))
