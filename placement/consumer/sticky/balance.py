"""Balance the general sticky assignment: pass over the partitions until none moves (performReassignments).

Steps 3 to 5 of `placement.consumer.sticky.general`, which says what they do and why.

Source: AbstractStickyAssignor.GeneralAssignmentBuilder.balance and PartitionMovements, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int32Array
from broker.java.hash_table import HashTable
from broker.java.string_hash import java_string_hash
from broker.java.tree_bin import TreeKey
from placement.consumer.errors import EndlessBalancingError, NullPointerError
from placement.consumer.group import Group
from placement.consumer.ragged import Ragged
from placement.consumer.sticky.claims import Claims, holding_order
from placement.consumer.sticky.constrained import not_kept
from placement.consumer.sticky.general import Holdings
from placement.consumer.sticky.racks import StickyRacks

_MASK_32 = (1 << 32) - 1


@attrs.define(eq=False)
class Movements:
    """Record all moves so far: the origin of each moved partition, and the sets by (topic, from, to).

    When a partition is to go from one member to another, and some partition of its topic went the other way before,
    then that one goes back instead: two moves cancel. Partitions of different topics may have the same hash, such as
    t11-1 and t21-0, but they never share such a set.
    """

    group: Group
    source_of: dict[int, int] = attrs.field(factory=dict)
    target_of: dict[int, int] = attrs.field(factory=dict)
    moved: dict[tuple[int, int, int], HashTable] = attrs.field(factory=dict)
    topic_hashes: dict[int, int] = attrs.field(factory=dict)
    partition_of: dict[tuple[int, TreeKey], int] = attrs.field(factory=dict)

    def instead_of(self, partition: int, source: int, target: int) -> int:
        """Return the partition to move in place of `partition` (Kafka's getTheActualPartitionToBeMoved)."""
        topic = int(self.group.partition_topics[partition])
        # A partition that has moved already counts as moving from its first owner (partitionMovements keep the origin).
        opposite = self.moved.get((topic, target, self.source_of.get(partition, source)))
        # Kafka takes the first of a HashSet: any would undo a move, but which one is part of the answer.
        return partition if opposite is None else self.partition_of[topic, opposite.first()]

    def record(self, partition: int, source: int, target: int) -> None:
        """Record that `partition` moves from `source` to `target`."""
        topic = int(self.group.partition_topics[partition])
        if partition in self.source_of:
            # A second move of one partition replaces the first: origin to the new target, and none at all if it is back
            # home.
            first_source = self.source_of.pop(partition)
            pair = (topic, first_source, self.target_of.pop(partition))
            self.moved[pair].remove(self._key(partition))
            if not self.moved[pair]:
                del self.moved[pair]
            source = first_source
            if source == target:
                return
        self.source_of[partition], self.target_of[partition] = source, target
        pair = (topic, source, target)
        if pair not in self.moved:
            self.moved[pair] = HashTable()
        key = self._key(partition)
        self.partition_of[topic, key] = partition
        self.moved[pair].add(key)

    def _key(self, partition: int) -> TreeKey:
        """Return `TopicPartition.hashCode()` spread as HashMap does: distinct within a topic, but not among topics."""
        topic = int(self.group.partition_topics[partition])
        if topic not in self.topic_hashes:
            self.topic_hashes[topic] = java_string_hash(self.group.topics[topic])
        code = (31 * (31 + int(self.group.partition_numbers[partition])) + self.topic_hashes[topic]) & _MASK_32
        spread = code ^ code >> 16
        return (spread - (1 << 32) if spread >> 31 else spread, True, b"")


PASS_COUNT_MAX: Final = 10_000
"""Far more than any balancing was seen to need; Kafka knows no bound, and could go round for ever."""


@attrs.define(eq=False)
class Balancing:
    """Hold the state of the passes: movable partitions, former owners, and whether claims make Kafka err."""

    holdings: Holdings
    older: Mapping[int, int]
    unsound: bool
    movements: Movements
    floors: dict[int, int] = attrs.field(factory=dict)

    def passes(self, partitions: Sequence[int]) -> bool:
        """Pass over the partitions until none moves; return whether any did."""
        for pass_count in range(PASS_COUNT_MAX):
            if not self._one_pass(partitions):
                return pass_count > 0
        raise EndlessBalancingError(f"partitions still move after {PASS_COUNT_MAX} passes")

    def _one_pass(self, partitions: Sequence[int]) -> bool:
        holdings, older_owners, moved = self.holdings, self.older, False
        topics, sizes, owner = holdings.topics, holdings.sizes, holdings.owner
        for partition in partitions:
            # Kafka asks isBalanced before each partition. With sound claims the answer cannot stop a pass early, and
            # asking costs more than the pass; with unsound ones isBalanced may throw, so it has to be asked where Kafka
            # asks.
            if self.unsound and is_balanced(holdings):
                break
            size, topic = sizes[owner[partition]], topics[partition]
            # Kafka prefers the owner of an older generation (prevAssignment), if that makes sizes more even, to
            # the least loaded subscriber.
            older = older_owners.get(partition) if older_owners else None
            if older is not None and size > self._count_of(older) + 1:
                self._move(partition, older)
            elif self._improves(size, topic):
                self._move(partition, self._target(topic))
            else:
                continue
            moved = True
        return moved

    def _count_of(self, member: int) -> int:
        if not self.holdings.active[member]:
            raise _null_pointer()
        return self.holdings.sizes[member]

    def _improves(self, size: int, topic: int) -> bool:
        """Return whether some subscriber of `topic` has at least two partitions fewer than `size`."""
        if self.unsound:
            return any(size > self._count_of(other) + 1 for other in self.holdings.potential[topic])
        # The least count among a topic's subscribers changes only when something moves: kept until `_move` clears it.
        floor = self.floors.get(topic)
        if floor is None:
            floor = self.floors[topic] = int(self.holdings.counts[self.holdings.candidates[topic]].min())
        return size > floor + 1

    def _target(self, topic: int) -> int:
        members = self.holdings.candidates[topic]
        active = members[self.holdings.active[members]]
        return int(active[self.holdings.counts[active].argmin()])

    def _move(self, partition: int, target: int) -> None:
        source = self.holdings.owner[partition]
        # If a partition of the topic went the other way before, that one goes back in place of this one:
        # two moves become none.
        actual = self.movements.instead_of(partition, source, target)
        # The partition that really moves may have another owner than the one that was to give.
        source = self.holdings.owner[actual]
        self.movements.record(actual, source, target)
        self.holdings.take(actual)
        self.holdings.give(actual, target)
        self.floors.clear()


def is_balanced(holdings: Holdings) -> bool:
    """Return whether no partition can go to an active subscriber with at least two fewer; raise as Kafka does."""
    group, counts = holdings.group, holdings.counts
    active = np.flatnonzero(holdings.active)
    # Sizes that differ by one at most cannot be improved, whoever subscribes to what.
    if counts[active].min() >= counts[active].max() - 1:
        return True
    order = [member for member in holding_order(group).tolist() if holdings.active[member]]
    owner = {partition: member for member in order for partition in holdings.lists[member]}
    starts = group.partition_starts.tolist()
    # From the least loaded on: Kafka looks for one more partition that such a member could take from a member
    # with at least two more.
    for member in sorted(order, key=lambda one: (counts[one], group.member_ranks[one])):
        held = set(holdings.lists[member])
        for topic in holdings.topics_of(member) if counts[member] != holdings.most_of(member) else ():
            for partition in range(starts[topic], starts[topic + 1]):
                if partition not in held:
                    if partition not in owner:
                        raise _null_pointer()
                    if counts[member] + 1 < counts[owner[partition]]:
                        return False
    return True


def _null_pointer() -> NullPointerError:
    return NullPointerError(
        'Cannot invoke "java.util.List.size()" because the return value of "java.util.Map.get(Object)" is null'
    )


def assign_general(
    group: Group, claims: Claims, partitions: Int32Array, racks: StickyRacks, older: Mapping[int, int]
) -> Ragged:
    """Return the assignment of `partitions`, ids in order; `older` names owners of an older generation.

    Raises NullPointerError where Kafka does.
    """
    holdings = Holdings.of(group, racks, claims.held.lists())
    revoked = holdings.drop_invalid()
    ordered = holdings.in_order(partitions.tolist())
    free = not_kept(ordered, holdings.in_order(partition for held in holdings.lists for partition in held))
    is_first = not holdings.counts.any()
    holdings.assign_free(free)
    holdings.set_aside()
    # balance() keeps a copy: reassignments that do not lower the score are undone, so that a rebalance never moves
    # partitions for nothing.
    before = [list(held) for held in holdings.lists]
    score = holdings.score()
    balancing = Balancing(holdings, older, _unsound(group, older), Movements(group))
    # First only the partitions just assigned may move, so that members keep what they hold if that suffices. After
    # revocations Kafka leaves this pass out.
    if not revoked:
        balancing.passes(_shared(holdings, free))
    moved = balancing.passes(_shared(holdings, ordered))
    # A first assignment has nothing to stick to: it is never undone.
    if moved and not is_first and holdings.score() >= score:
        return Ragged.of(before)
    return Ragged.of(holdings.lists)


def _shared(holdings: Holdings, partitions: Sequence[int]) -> list[int]:
    """Return the partitions whose topic has several subscribers."""
    topics, shared = holdings.topics, [len(members) > 1 for members in holdings.potential]
    return [partition for partition in partitions if shared[topics[partition]]]


def _unsound(group: Group, older: Mapping[int, int]) -> bool:
    """Return whether Kafka may assign a partition twice, or to a member that does not subscribe to its topic."""
    subscribed = [set(row) for row in group.subscribed.lists()]
    strangers = any(int(group.partition_topics[one]) not in subscribed[member] for one, member in older.items())
    return strangers or group.nonexistent_count > 0
