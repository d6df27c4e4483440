"""Compute the uniform assignment when members subscribe to different topics.

Goals, most important first: subscribers of a topic differ by one at most; members keep what they hold.

How:
1. Members keep what they hold of topics they subscribe to.
2. Topics are sorted by (partitions per subscriber, descending; subscribers; id). The free partitions of each go to the
   least loaded subscribers (`placement.consumer.uniform.levels`).
3. In at most 16 rounds over the topics with several subscribers, in the same order, the last partition of each most
   loaded subscriber goes to a least loaded one until they differ by one at most. It ends when a round
   returns to the topic that was changed last.

Cost: rounds x (partitions + subscriptions).

Example: t of 4 for {a, b}, u of 2 for {b}: u has 2 partitions per subscriber as t has, and fewer subscribers, so b
gets both of u; then t-0, t-1 and t-2 go to a, which begins each level, and t-3 to b.

Kafka's levels are counted on sizes that change while a topic is filled; so are these.

Source: UniformHeterogeneousAssignmentBuilder, 4.0 to 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from broker.java.hash_order import uuid_key
from placement.consumer.assignment import NOBODY
from placement.consumer.errors import PartitionAssignorError, PartitionIndexError
from placement.consumer.group import NO_METADATA, Group
from placement.consumer.ragged import Ragged
from placement.consumer.topic_ids import id_text, topic_ids
from placement.consumer.uniform.levels import Levels

ROUND_COUNT_MAX: Final = 16  # MAX_ITERATION_COUNT: most subscriptions need two, some would go on for very long.


@attrs.define(eq=False)
class Shares:
    """Track owners during an assignment; members are numbered in the order of Java's map, partitions by id.

    `extras` are partitions that a member also claimed but another one after it: Kafka leaves them to both.
    """

    group: Group
    ids: list[bytes]
    subscribers: list[list[int]]
    owners: list[int]
    sizes: list[int]
    extras: list[set[int]]

    def topics_in_order(self, topics: Iterable[int]) -> list[int]:
        """Return the topics in the order in which Kafka assigns them."""
        counts = self.group.partition_counts.tolist()
        sharers = [len(members) for members in self.subscribers]
        return sorted(topics, key=lambda one: (-(counts[one] / sharers[one]), sharers[one], uuid_key(self.ids[one])))

    def partitions_of(self, topic: int) -> range:
        """Return the ids of a topic's partitions."""
        begin, end = self.group.partition_starts[topic : topic + 2].tolist()
        return range(begin, end)

    def give(self, partition: int, member: int) -> None:
        """Make `member` the owner of the partition."""
        if self.owners[partition] != NOBODY:
            self.sizes[self.owners[partition]] -= 1
            # Kafka takes it out of the giver's set, also if another member's claim had put it there before.
            self.extras[self.owners[partition]].discard(partition)
        self.owners[partition] = member
        self.sizes[member] += 1


def assign_heterogeneous(group: Group) -> Ragged:
    """Return each member's partitions by id; raise PartitionAssignorError and PartitionIndexError as Kafka throws."""
    shares = _kept(group)
    topics = [topic for topic, members in enumerate(shares.subscribers) if members]
    _assign_free(shares, topics)
    shared = shares.topics_in_order(topic for topic in topics if len(shares.subscribers[topic]) > 1)
    _balance(shares, shared)
    order = group.member_hash_order.tolist()
    rows: list[set[int]] = [set() for _ in group.members]
    for partition, member in enumerate(shares.owners):
        if member != NOBODY:
            rows[order[member]].add(partition)
    for place, extra in enumerate(shares.extras):
        rows[order[place]] |= extra
    return Ragged.of(sorted(row) for row in rows)


def _kept(group: Group) -> Shares:
    ids, counts = topic_ids(group), group.partition_counts.tolist()
    order = group.member_hash_order.tolist()
    subscribers: list[list[int]] = [[] for _ in group.topics]
    for place, member in enumerate(order):
        for topic in dict.fromkeys(group.subscribed.row(member).tolist()):
            if counts[topic] == NO_METADATA:
                raise PartitionAssignorError(
                    f"Members are subscribed to topic {id_text(ids[topic])} which doesn't exist in the topic metadata."
                )
            subscribers[topic].append(place)
    shares = Shares(group, ids, subscribers, [NOBODY] * group.partition_count, [0] * len(order), [set() for _ in order])
    subscribed = [set(members) for members in subscribers]
    topics, numbers = group.partition_topics, group.partition_numbers
    for place, member in enumerate(order):
        for partition in dict.fromkeys(group.owned.row(member).tolist()):
            topic = int(topics[partition])
            if place in subscribed[topic]:
                if partition >= group.partition_count:
                    raise PartitionIndexError(f"Index {numbers[partition]} out of bounds for length {counts[topic]}")
                before = shares.owners[partition]
                if before != NOBODY:
                    shares.extras[before].add(partition)
                shares.owners[partition] = place
                shares.sizes[place] += 1
    return shares


def _assign_free(shares: Shares, topics: Sequence[int]) -> None:
    free = {topic: [one for one in shares.partitions_of(topic) if shares.owners[one] == NOBODY] for topic in topics}
    for topic in shares.topics_in_order(topic for topic in topics if free[topic]):
        levels = Levels.of(shares.sizes, shares.subscribers[topic])
        for partition in free[topic]:
            shares.give(partition, levels.next_least_loaded())


def _balance(shares: Shares, topics: Sequence[int]) -> None:
    last_changed = None
    for _ in range(ROUND_COUNT_MAX):
        for topic in topics:
            if topic == last_changed:
                return
            if _balance_topic(shares, topic) or last_changed is None:
                last_changed = topic


def _balance_topic(shares: Shares, topic: int) -> bool:
    """Move partitions of one topic until its subscribers are level; return whether any moved."""
    levels = Levels.of(shares.sizes, shares.subscribers[topic])
    if levels.imbalance <= 1:
        return False
    held: dict[int, list[int]] = {}
    for partition in shares.partitions_of(topic):
        held.setdefault(shares.owners[partition], []).append(partition)
    moved = False
    while not levels.balanced:
        giver = levels.next_most_loaded()
        while giver is not None and not held.get(giver):
            levels.leave_out()
            giver = levels.next_most_loaded()
        if giver is None:
            break
        partition = held[giver].pop()
        receiver = levels.next_least_loaded()
        if levels.balanced:
            break
        shares.give(partition, receiver)
        moved = True
    return moved
