"""Compute the uniform assignment of Kafka 3.9 when members subscribe to different topics.

Goals, most important first: no partition can go to a member with at least two fewer; members keep what they hold.

How:
1. Members keep what they hold of topics they subscribe to.
2. Each free partition, in the order of `placement.consumer.uniform.greedy_order`, goes to the subscriber with the least
   (size, member id) that is not full; a member is full when it has as many partitions as its topics have.
3. Passes over the partitions of topics with several subscribers, in the same order: one whose owner has at least two
   more than some subscriber goes to the one with the least (size, member id) that is not full, and stays there. After
   a move Kafka asks before the next partition whether all is balanced, and ends if so; it looks only at members that
   are not full. Else it ends after a pass that moves nothing.

Kafka throws when a partition is to go from one member to another and one of its topic went the other way before. It
means to move that one back, and then takes the owner that it finds for a mistake. This gives Kafka's class and message.

Cost: partitions x subscribers, and for each move the partitions.

Example: t of 3 for {a, b}, u of 1 for {b}: t has 1.5 partitions per subscriber and comes first. t-0 goes to a, t-1 to
b, t-2 to a, and u-0 to b.

Source: UniformHeterogeneousAssignmentBuilder, 3.9.2, of which 4.0 has nothing left.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from placement.consumer.errors import NoSuchElementError, PartitionAssignorError
from placement.consumer.group import Group
from placement.consumer.ragged import Ragged
from placement.consumer.topic_ids import id_text, topic_ids
from placement.consumer.uniform.greedy_order import named_topics, sorted_partitions
from placement.consumer.uniform.targets import Targets


@attrs.define(eq=False)
class Moves:
    """Hold what the passes work on: targets, subscribers of each topic, and the moves so far.

    `moved` are the partitions that moved, `ways` the (topic, from, to) of these moves. `sound`: no partition is with
    two members.
    """

    group: Group
    ids: Sequence[bytes]
    targets: Targets
    subscribers: Sequence[Sequence[int]]
    sound: bool
    moved: set[int] = attrs.field(factory=set)
    ways: set[tuple[int, int, int]] = attrs.field(factory=set)
    floors: dict[int, int] = attrs.field(factory=dict)

    def passes(self, partitions: Sequence[int]) -> None:
        """Pass over the partitions until all is balanced or a pass moves none; raise as Kafka throws."""
        topics, sizes = self.group.partition_topics.tolist(), self.targets.sizes
        any_moved, just_moved = True, False
        while any_moved:
            any_moved = just_moved = False
            # What has moved is taken out of Kafka's set of partitions: it stays where it is.
            partitions = [partition for partition in partitions if partition not in self.moved]
            for partition in partitions:
                if just_moved and self.is_balanced():
                    return
                topic = topics[partition]
                just_moved = sizes[self.targets.owners[partition]] > self._floor(topic) + 1
                if just_moved:
                    self._move(partition, topic)
                    any_moved = True

    def _floor(self, topic: int) -> int:
        """Return the least size of a topic's subscribers, full or not."""
        if topic not in self.floors:
            self.floors[topic] = min(self.targets.sizes[member] for member in self.subscribers[topic])
        return self.floors[topic]

    def _move(self, partition: int, topic: int) -> None:
        source, target = self.targets.owners[partition], self.targets.least_loaded(topic)
        if target is None:
            name = f"{id_text(self.ids[topic])}:{self.group.partition_numbers[partition]}"
            raise PartitionAssignorError(f"No suitable new owner was found for the partition{name}")
        if (topic, target, source) in self.ways:
            raise PartitionAssignorError(
                "Mismatch in partition movement record with respect to partition ownership during a rebalance"
            )
        self.moved.add(partition)
        self.ways.add((topic, source, target))
        self.targets.remove(partition, source)
        self.targets.add(partition, target)
        self.floors.clear()

    def is_balanced(self) -> bool:
        """Return whether members that are not full differ by one at most, or none of them can take any; as Kafka."""
        members, starts = self.targets.open, self.group.partition_starts
        if not members:
            raise NoSuchElementError("the uniform assignor of Kafka 3.9 finds no member that can take more partitions")
        if members[0][0] >= members[-1][0] - 1:
            return True
        owner_sizes = self.targets.owner_sizes(self.group.partition_count)
        most_of_topic = [
            int(owner_sizes[starts[topic] : starts[topic + 1]].max(initial=0)) for topic in range(len(starts) - 1)
        ]
        for size, _, member in members:
            for topic in self.targets.topics[member]:
                if most_of_topic[topic] > size + 1 and (self.sound or self._can_take(member, topic, owner_sizes)):
                    return False
        return True

    def _can_take(self, member: int, topic: int, owner_sizes: np.ndarray) -> bool:
        """Return whether a member lacks a partition of the topic whose owner has at least two more."""
        begin, end = self.group.partition_starts[topic : topic + 2].tolist()
        least, held = self.targets.sizes[member] + 1, self.targets.held[member]
        return any(owner_sizes[one] > least and one not in held for one in range(begin, end))


def assign_greedily(group: Group) -> Ragged:
    """Return each member's partitions by id; raise PartitionAssignorError and NoSuchElementError as Kafka throws."""
    ids = topic_ids(group)
    rows = named_topics(group, ids)
    targets = Targets.of(group, rows)
    _keep(group, targets)
    subscribers: list[list[int]] = [[] for _ in group.topics]
    for member, row in enumerate(rows):
        for topic in row:
            subscribers[topic].append(member)
    ordered = sorted_partitions(group, rows, ids).tolist()
    sound = len(targets.owners) == sum(targets.sizes)
    topics = group.partition_topics.tolist()
    for partition in ordered:
        if partition not in targets.owners:
            least = targets.least_loaded(topics[partition])
            if least is None:
                raise PartitionAssignorError("Some partitions were left unassigned")
            targets.add(partition, least)
    shared = [partition for partition in ordered if len(subscribers[topics[partition]]) > 1]
    Moves(group, ids, targets, subscribers, sound).passes(shared)
    places = np.argsort(group.member_hash_order).tolist()
    return Ragged.of(sorted(targets.held[place]) for place in places)


def _keep(group: Group, targets: Targets) -> None:
    """Let members keep what they hold of topics they subscribe to, in the order of Java's map."""
    topics = group.partition_topics.tolist()
    for place, member in enumerate(group.member_hash_order.tolist()):
        for partition in dict.fromkeys(group.owned.row(member).tolist()):
            if topics[partition] in targets.topics[place]:
                targets.add(partition, place)
