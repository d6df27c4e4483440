"""Compute the sticky assignment when members subscribe to different topics.

Goals, most important first: no partition can move to a member with at least two fewer; members keep what they hold.

How:
1. Members keep what they hold of topics they still subscribe to, and, where racks are looked at, within their rack.
2. Topics are sorted by (number of subscribers, name). Each partition that is free goes to the subscriber with the
   least (count, member id); where racks are looked at, to one of its racks first.
3. Topics with one subscriber, and members whom nothing can be taken from or given to, are set aside.
4. Passes over the partitions (balance.py): one whose member has at least two more than some subscriber moves to the
   subscriber with the least (count, member id); or, if it was held by another in an older generation, to that one when
   it has at least two fewer. If partitions of that topic went the opposite way before, one of those moves back instead.
   The first passes are over free partitions only, unless something had to be revoked; then over all, until a pass moves
   none.
5. If anything moved in the last passes and the sum of differences over pairs of members did not fall, all of 4 is
   undone; but not when all members started with nothing.

Kafka asks before each step whether all is balanced, which takes most of its time. As no step moves anything once it is,
the question is only asked here where the answer shows: where claims are unsound, and a partition can go back to
a member that does not subscribe to its topic. `corrected` forgets such older owners.

Example: t of 3 for {a, b}, u of 1 for {b}; a holds all of t: b gets u, then t-0 moves to b.

Source: AbstractStickyAssignor.GeneralAssignmentBuilder, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int64Array
from placement.consumer.group import Group
from placement.consumer.sticky.claims import holding_order
from placement.consumer.sticky.racks import StickyRacks


@attrs.define(eq=False)
class Holdings:
    """Track owners and possible owners during an assignment: lists in Kafka's order, lengths as int64[M].

    `potential` has for each topic its subscribers in the order of Java's map, as often as they name it; `candidates`
    has them once and by member id. `active` are the members that have not been set aside; `topics` has the topic
    of each partition, also of claimed ones that do not exist, and `sizes` what `counts` has, as numbers that Python
    reads faster.
    """

    group: Group
    racks: StickyRacks
    lists: list[list[int]]
    counts: Int64Array
    owner: dict[int, int]
    potential: list[list[int]]
    candidates: list[Int64Array]
    active: NDArray[np.bool_]
    topics: list[int]
    sizes: list[int]

    @classmethod
    def of(cls, group: Group, racks: StickyRacks, held: Iterable[list[int]]) -> Holdings:
        """Return the partitions that members hold, before any check."""
        lists = list(held)
        potential: list[list[int]] = [[] for _ in group.topics]
        for member in group.member_hash_order.tolist():
            for topic in group.subscribed.row(member).tolist():
                potential[topic].append(member)
        by_rank = [sorted(set(members), key=group.member_ranks.__getitem__) for members in potential]
        return cls(
            group,
            racks,
            lists,
            np.array([len(one) for one in lists], np.int64),
            {partition: member for member in holding_order(group).tolist() for partition in lists[member]},
            potential,
            [np.array(members, np.int64) for members in by_rank],
            np.ones(len(lists), np.bool_),
            group.partition_topics.tolist(),
            [len(one) for one in lists],
        )

    def drop_invalid(self) -> bool:
        """Remove partitions that a member does not subscribe to or that mismatch its rack; return whether any were."""
        any_dropped = False
        topics = self.topics
        for member, held in enumerate(self.lists):
            if not held:
                continue
            subscribed = set(self.group.subscribed.row(member).tolist())
            kept = [one for one in held if topics[one] in subscribed and not self.racks.mismatch(member, one)]
            any_dropped |= len(kept) < len(held)
            self.lists[member] = kept
            self.counts[member] = self.sizes[member] = len(kept)
        return any_dropped

    def in_order(self, partitions: Iterable[int]) -> list[int]:
        """Return the partitions ordered by (subscribers of the topic, topic, number), as sortPartitions."""
        topics, sharers = self.topics, [len(members) for members in self.potential]
        if not self.group.nonexistent_count:
            # Ids are in order of (topic, number), and sorting is stable.
            return sorted(sorted(partitions), key=lambda one: sharers[topics[one]])
        numbers = self.group.partition_numbers
        return sorted(partitions, key=lambda one: (sharers[topics[one]], topics[one], numbers[one]))

    def least_loaded(self, topic: int) -> int:
        """Return the subscriber with the least (count, member id)."""
        members = self.candidates[topic]
        return int(members[self.counts[members].argmin()])

    def give(self, partition: int, member: int) -> None:
        """Append an unowned partition to a member's list."""
        self.lists[member].append(partition)
        self.counts[member] += 1
        self.sizes[member] += 1
        self.owner[partition] = member

    def take(self, partition: int) -> int:
        """Remove a partition from its owner's list; return the owner."""
        member = self.owner[partition]
        self.lists[member].remove(partition)
        self.counts[member] -= 1
        self.sizes[member] -= 1
        return member

    def assign_free(self, partitions: Sequence[int]) -> None:
        """Assign each free partition to the least loaded subscriber; if rack-aware, first to one in its racks."""
        topics = self.topics
        left = []
        for partition in partitions if self.racks.looked_at else ():
            members = self.candidates[topics[partition]].tolist()
            fitting = [member for member in members if not self.racks.mismatch(member, partition)]
            # Kafka keeps subscribers sorted by (size, member id); `candidates` are in order of id, and min keeps the
            # first.
            if fitting:
                self.give(partition, min(fitting, key=self.sizes.__getitem__))
            else:
                left.append(partition)
        for partition in left if self.racks.looked_at else partitions:
            self.give(partition, self.least_loaded(topics[partition]))

    def set_aside(self) -> None:
        """Set aside members that hold all they can and nothing that another could hold (Kafka's fixed assignments)."""
        topics = self.topics
        # canParticipateInReassignment: a member that can neither take nor give would only weigh in the score.
        for member, held in enumerate(self.lists):
            shared = any(len(self.potential[topics[one]]) > 1 for one in held)
            self.active[member] = shared or len(held) < self.most_of(member)

    def topics_of(self, member: int) -> list[int]:
        """Return the subscribed topics with metadata; a topic that the member lists twice comes twice."""
        return [topic for topic in self.group.subscribed.row(member).tolist() if self.group.partition_counts[topic] > 0]

    def most_of(self, member: int) -> int:
        """Return Kafka's bound on how many partitions a member can hold."""
        mine, counts = self.topics_of(member), self.group.partition_counts
        # Kafka takes a member that subscribes to as many topics as there are to subscribe to all of them.
        if len(mine) == sum(1 for topic, members in enumerate(self.potential) if members and counts[topic] > 0):
            return int(
                sum(counts[topic] for topic, members in enumerate(self.potential) if members and counts[topic] > 0)
            )
        return int(counts[mine].sum())

    def score(self) -> int:
        """Return Kafka's balance score: the sum of size differences over all pairs of active members, as a Java int."""
        # Sorted sizes: in the sum over pairs, the size at place i counts i times plus and n - 1 - i times minus. Java
        # adds in 32 bits, so that very large groups overflow; the result is compared, so the overflow has to be kept.
        counts = np.sort(self.counts[self.active])
        weights = 2 * np.arange(len(counts)) - len(counts) + 1
        return int(np.int64((counts * weights).sum()).astype(np.int32))


def older_owners(group: Group, max_generation: int, *, corrected: bool) -> dict[int, int]:
    """Return for each partition its owner of the newest generation below `max_generation`.

    With `corrected`, only members that subscribe to the topic.
    """
    found: dict[int, tuple[int, int]] = {}
    for member in group.member_hash_order.tolist():
        generation = int(group.generations[member])
        if generation < max_generation:
            subscribed = set(group.subscribed.row(member).tolist())
            for partition in group.owned.row(member).tolist():
                if corrected and int(group.partition_topics[partition]) not in subscribed:
                    continue
                if partition not in found or generation > found[partition][1]:
                    found[partition] = (member, generation)
    return {partition: member for partition, (member, _) in found.items()}
