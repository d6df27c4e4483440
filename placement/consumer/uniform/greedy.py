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

Whether all is balanced is asked after each move. The last pair that was not, of an owner and a subscriber of one topic,
answers most of these questions; where it is level, all topics are looked through for another one.

Cost: partitions x subscribers, and for each pair that gets level the subscriptions.

Example: t of 3 for {a, b}, u of 1 for {b}: t has 1.5 partitions per subscriber and comes first. t-0 goes to a, t-1 to
b, t-2 to a, and u-0 to b.

Source: UniformHeterogeneousAssignmentBuilder, 3.9.2, of which 4.0 has nothing left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import attrs
import numpy as np

from placement.consumer.assignment import NOBODY
from placement.consumer.errors import NoSuchElementError, PartitionAssignorError
from placement.consumer.group import Group
from placement.consumer.ragged import Ragged, grouped
from placement.consumer.topic_ids import id_text, topic_ids
from placement.consumer.uniform.greedy_order import named_topics, sorted_partitions
from placement.consumer.uniform.targets import Targets


@attrs.define(eq=False)
class Moves:
    """Hold what the passes work on: targets, and the moves so far.

    `moved` are the partitions that moved, `ways` the (topic, from, to) of these moves. `sound`: no partition is with
    two members. `floors` are the least sizes of topics' subscribers since the last move. `uneven` is an (owner, member,
    topic) found not level: the member subscribes to the topic and could take a partition of the owner's.
    """

    group: Group
    ids: Sequence[bytes]
    targets: Targets
    sound: bool
    moved: set[int] = attrs.field(factory=set)
    ways: set[tuple[int, int, int]] = attrs.field(factory=set)
    floors: dict[int, int] = attrs.field(factory=dict)
    uneven: tuple[int, int, int] | None = None

    @cached_property
    def shares(self) -> list[dict[int, int]]:
        """Return how many partitions of each topic each of their owners has, counted when it is asked first."""
        shares: list[dict[int, int]] = [{} for _ in self.group.topics]
        topics = self.group.partition_topics[: self.group.partition_count].tolist()
        owners = self.targets.owners
        for partition, topic in enumerate(topics):
            if partition in owners:
                of_topic, owner = shares[topic], owners[partition]
                of_topic[owner] = of_topic.get(owner, 0) + 1
        return shares

    def passes(self, partitions: Sequence[int]) -> None:
        """Pass over the partitions until all is balanced or a pass moves none; raise as Kafka throws."""
        topics, floors = self.group.partition_topics.tolist(), self.floors
        sizes, owners = self.targets.sizes, self.targets.owners
        any_moved, just_moved = True, False
        while any_moved:
            any_moved = just_moved = False
            # What has moved is taken out of Kafka's set of partitions: it stays where it is.
            partitions = [partition for partition in partitions if partition not in self.moved]
            for partition in partitions:
                if just_moved and self.is_balanced():
                    return
                topic = topics[partition]
                floor = floors[topic] if topic in floors else self._floor(topic)
                just_moved = sizes[owners[partition]] > floor + 1
                if just_moved:
                    self._move(partition, topic)
                    any_moved = True

    def _floor(self, topic: int) -> int:
        """Return the least size of a topic's subscribers, full or not, and keep it until the next move."""
        least = self.targets.least_loaded(topic)
        members = [member for member in self.targets.full if topic in self.targets.topics[member]]
        members += [] if least is None else [least]
        self.floors[topic] = min(self.targets.sizes[member] for member in members)
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
        of_topic = self.shares[topic]
        self.moved.add(partition)
        self.ways.add((topic, source, target))
        self.targets.remove(partition, source)
        self.targets.add(partition, target)
        of_topic[source] -= 1
        if not of_topic[source]:
            del of_topic[source]
        of_topic[target] = of_topic.get(target, 0) + 1
        self.floors.clear()

    def is_balanced(self) -> bool:
        """Return whether members that are not full differ by one at most, or none of them can take any; as Kafka."""
        if not self.targets.open:
            raise NoSuchElementError("the uniform assignor of Kafka 3.9 finds no member that can take more partitions")
        least, largest = self.targets.open_span()
        if least >= largest - 1:
            return True
        if not self._is_still_uneven():
            self.uneven = self._find_uneven()
        return self.uneven is None

    def _is_still_uneven(self) -> bool:
        # Where two members have one partition, it takes more than the sizes to tell who can take what.
        if self.uneven is None or not self.sound:
            return False
        owner, member, topic = self.uneven
        sizes = self.targets.sizes
        return member not in self.targets.full and owner in self.shares[topic] and sizes[owner] > sizes[member] + 1

    def _find_uneven(self) -> tuple[int, int, int] | None:
        """Return an owner, a member with at least two fewer that is not full, and a topic of which it can take one."""
        sizes = self.targets.sizes
        largest = [max(owners, key=sizes.__getitem__, default=None) for owners in self.shares]
        for member in self.targets.open_members():
            for topic in self.targets.topics[member]:
                owner = largest[topic]
                if (
                    owner is not None
                    and sizes[owner] > sizes[member] + 1
                    and (self.sound or self._can_take(member, topic))
                ):
                    return owner, member, topic
        return None

    def _can_take(self, member: int, topic: int) -> bool:
        """Return whether a member lacks a partition of the topic whose owner has at least two more."""
        begin, end = self.group.partition_starts[topic : topic + 2].tolist()
        sizes, owners = self.targets.sizes, self.targets.owners
        least, held = sizes[member] + 1, self.targets.held[member]
        return any(sizes[owners[one]] > least and one not in held for one in range(begin, end))


def assign_greedily(group: Group) -> Ragged:
    """Return each member's partitions by id; raise PartitionAssignorError and NoSuchElementError as Kafka throws."""
    ids = topic_ids(group)
    rows = named_topics(group, ids)
    targets = Targets.of(group, rows)
    subscriber_counts = Counter(topic for row in rows for topic in row)
    ordered = sorted_partitions(group, rows, ids).tolist()
    sound = len(targets.owners) == sum(targets.sizes)
    topics = group.partition_topics.tolist()
    for partition in ordered:
        if partition not in targets.owners:
            least = targets.least_loaded(topics[partition])
            if least is None:
                raise PartitionAssignorError("Some partitions were left unassigned")
            targets.add(partition, least)
    shared = [partition for partition in ordered if subscriber_counts[topics[partition]] > 1]
    Moves(group, ids, targets, sound).passes(shared)
    return _rows(group, targets, sound)


def _rows(group: Group, targets: Targets, sound: bool) -> Ragged:
    order = group.member_hash_order
    if not sound:
        return Ragged.of(sorted(targets.held[place]) for place in np.argsort(order).tolist())
    owners = np.full(len(group.partition_topics), NOBODY, np.int32)
    owners[list(targets.owners)] = order[list(targets.owners.values())]
    return grouped(owners, len(order))
