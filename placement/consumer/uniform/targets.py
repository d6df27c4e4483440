"""Hold the target assignment that the uniform assignor of Kafka 3.9 changes step by step.

What it decides: who has which partition, how full each member is, and which members can take more, the least
loaded first.

Constraints: a partition has one owner, the last member to which it was assigned; what two members claim stays with both
and counts for both. A claim counts even if the partition does not exist, so that a member can have more than all that
there is for it. Members are numbered in the order of Java's map, partitions by id.

How: `open` holds one number for each member that is not full, size x members + rank of its id, in ascending order.

Example: a member that may have t of 2 and has t-0 and t-1 is full, and not among those that can take more.

Source: UniformHeterogeneousAssignmentBuilder.AssignmentManager, 3.9.2.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import attrs

from placement.consumer.group import Group


@attrs.define(eq=False)
class Targets:
    """Track each member's partitions, its size and the most it may have, and the owner of each partition.

    `ranks` are those of the member ids, and `by_rank` the members in that order. `full` are the members that have as
    many partitions as their topics have, or more; `open` are the others, which Kafka keeps in a TreeSet.
    """

    topics: list[set[int]]
    ranks: list[int]
    by_rank: list[int]
    most: list[int]
    held: list[set[int]]
    sizes: list[int]
    owners: dict[int, int]
    full: set[int]
    open: list[int]

    @classmethod
    def of(cls, group: Group, rows: Sequence[Sequence[int]]) -> Targets:
        """Return what members keep that subscribe to the topics in `rows`: what they hold of these topics."""
        ranks = group.member_ranks[group.member_hash_order].tolist()
        by_rank = sorted(range(len(rows)), key=ranks.__getitem__)
        assert [ranks[member] for member in by_rank] == list(range(len(rows)))
        counts = group.partition_counts.tolist()
        most = [sum(counts[topic] for topic in row) for row in rows]
        topics = [set(row) for row in rows]
        held = list(_kept(group, topics))
        owners = {partition: member for member, row in enumerate(held) for partition in row}
        sizes = [len(row) for row in held]
        full = {member for member in range(len(rows)) if sizes[member] >= most[member]}
        members = sorted(sizes[member] * len(rows) + ranks[member] for member in range(len(rows)) if member not in full)
        return cls(topics, ranks, by_rank, most, held, sizes, owners, full, members)

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

    def least_loaded(self, topic: int) -> int | None:
        """Return the member with the least (size, member id) that is not full and subscribes to the topic."""
        topics, by_rank, count = self.topics, self.by_rank, len(self.sizes)
        for key in self.open:
            member = by_rank[key % count]
            if topic in topics[member]:
                return member
        return None

    def open_members(self) -> Iterator[int]:
        """Yield the members that are not full, by (size, member id)."""
        return (self.by_rank[key % len(self.sizes)] for key in self.open)

    def open_span(self) -> tuple[int, int]:
        """Return the least and the largest size of members that are not full, of which there is one at least."""
        return self.open[0] // len(self.sizes), self.open[-1] // len(self.sizes)

    def _resize(self, member: int, size: int) -> None:
        count, rank, members = len(self.sizes), self.ranks[member], self.open
        if member in self.full:
            self.full.remove(member)
        else:
            del members[bisect_left(members, self.sizes[member] * count + rank)]
        self.sizes[member] = size
        if size < self.most[member]:
            key = size * count + rank
            members.insert(bisect_left(members, key), key)
        else:
            self.full.add(member)


def _kept(group: Group, topics: Sequence[set[int]]) -> Iterator[set[int]]:
    """Yield what each member keeps, in the order of Java's map: what it holds of topics it subscribes to."""
    of_partition = group.partition_topics.tolist()
    for place, member in enumerate(group.member_hash_order.tolist()):
        yield {one for one in group.owned.row(member).tolist() if of_partition[one] in topics[place]}
