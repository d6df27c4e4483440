"""Assign partitions as balanced as possible, moving as few as possible from their former members.

Kafka's own answer can be wrong in three ways, each seen in its own code: a member without topics that is first in
Java's order is passed over when subscriptions are compared, so that it gets partitions; a partition can go back to
an older owner that no longer subscribes; a claim on a partition that does not exist makes it lose count. With
`corrected` none of these happens. The default is Kafka's answer.

    >>> from broker.entropy import SplitMix64
    >>> from placement.consumer.group import Member, Topic
    >>> topics = [Topic(name=f"t{number}", partition_count=2) for number in range(4)]
    >>> names = tuple(topic.name for topic in topics)
    >>> everybody = Group.of([Member(id=name, topics=names) for name in "xyz"], topics)
    >>> first = StickyAssignor().assign(everybody, SplitMix64(0))
    >>> [len(first.of(name)) for name in "xyz"]
    [3, 3, 2]
    >>> left = [Member(id=name, topics=names, owned=first.of(name), generation=1) for name in "xz"]
    >>> second = StickyAssignor().assign(Group.of(left, topics), SplitMix64(0))
    >>> [set(first.of(name)) <= set(second.of(name)) for name in "xz"], [len(second.of(name)) for name in "xz"]
    ([True, True], [4, 4])

Source: StickyAssignor and CooperativeStickyAssignor, 4.3.1; KIP-54, KIP-429, KIP-341.
"""

from __future__ import annotations

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.entropy import RandomSource
from placement.consumer.assignment import NOBODY, GroupAssignment
from placement.consumer.errors import DivisionByZeroError
from placement.consumer.group import NO_GENERATION, Group
from placement.consumer.ragged import Ragged, grouped, ranges
from placement.consumer.sticky.balance import assign_general
from placement.consumer.sticky.claims import all_equal, assigned_topics, holding_order, settle
from placement.consumer.sticky.constrained import StickyAnswer, Waiting, assign_constrained
from placement.consumer.sticky.general import older_owners
from placement.consumer.sticky.racks import StickyRacks, assigned_partitions


@attrs.define
class StickyAssignor:
    """Assign as Kafka's `sticky` assignor does, and remember the highest generation seen."""

    corrected: bool = False
    max_generation: int = NO_GENERATION

    def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
        """Return each member's list in Kafka's order; raise RefusedError where Kafka throws."""
        return GroupAssignment(group, self.answer(group).rows)

    def answer(self, group: Group) -> StickyAnswer:
        """Return the assignment with Kafka's partitionsTransferringOwnership; raise as `assign`."""
        self.max_generation = max(self.max_generation, int(group.generations.max(initial=NO_GENERATION)))
        if not group.members:
            raise DivisionByZeroError("/ by zero")
        claims = settle(group, corrected=self.corrected)
        partitions = assigned_partitions(group, assigned_topics(group))
        sound = not claims.contested and not group.nonexistent_count and not any(group.member_racks)
        racks = StickyRacks.of(group, partitions)
        if all_equal(group, corrected=self.corrected):
            if sound:
                return assign_by_quota(group, claims.held, partitions)
            return assign_constrained(group, claims, partitions.tolist(), racks)
        older = older_owners(group, self.max_generation, corrected=self.corrected)
        return StickyAnswer(assign_general(group, claims, partitions, racks, older))


@attrs.define
class CooperativeStickyAssignor:
    """Assign as Kafka's `cooperative-sticky` assignor: withhold partitions that another member must first revoke."""

    sticky: StickyAssignor = attrs.field(factory=StickyAssignor)

    def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
        """Return each member's list in Kafka's order, for this round; raise as `StickyAssignor.assign`."""
        answer = self.sticky.answer(group)
        if answer.withheld is None:
            answer = StickyAnswer.of(answer.rows, _transfers(group, answer.rows))
        assert answer.withheld is not None
        return GroupAssignment(group, answer.rows.where(~answer.withheld))


def _transfers(group: Group, rows: Ragged) -> dict[int, int]:
    """Return the partitions that move away from a former owner, each with its new owner."""
    owned, lists = list(group.owned.lists()), list(rows.lists())
    added: dict[int, int] = {}
    revoked: set[int] = set()
    for member in holding_order(group).tolist():
        held, assigned = set(owned[member]), set(lists[member])
        added.update((partition, member) for partition in lists[member] if partition not in held)
        revoked |= held - assigned
    return {partition: member for partition, member in added.items() if partition in revoked}


def assign_by_quota(group: Group, held: Ragged, partitions: Int32Array) -> StickyAnswer:
    """Return the constrained assignment of `partitions`, ids in order, on arrays, for sound claims and without racks.

    Each partition has one former holder at most, so a member keeps the first of its partitions in order of (number,
    topic); what is left is dealt in order of (topic, number), and who receives the k-th of it depends on sizes alone.
    """
    count = len(group.members)
    waiting = Waiting.of(len(partitions), count)
    kept_sizes, held_sizes = np.zeros(count, np.int64), held.lengths.tolist()
    for member in holding_order(group).tolist() if len(held.values) else range(count):
        kept_sizes[member] = waiting.kept_size(member, held_sizes[member])
    waiting.sort(group.member_ranks.tolist())
    holders = np.full(group.partition_count, NOBODY, np.int32)
    holders[held.values] = held.rows
    by_number = grouped(group.partition_numbers[partitions], int(group.partition_counts.max(initial=0)))
    ordered = partitions[by_number.values] if len(held.values) else partitions[:0]
    by_member = grouped(holders[ordered], count)
    rank = np.arange(len(by_member.values)) - np.repeat(by_member.starts[:-1], by_member.lengths)
    stays = rank < np.repeat(kept_sizes, by_member.lengths)
    kept = Ragged(by_member.starts, ordered[by_member.values]).where(stays)
    is_kept = np.zeros(group.partition_count, np.bool_)
    is_kept[kept.values] = True
    free = partitions[~is_kept[partitions]]
    given = grouped(_receivers(waiting, kept_sizes)[: len(free)], count)
    rows = kept.then(Ragged(given.starts, free[given.values]))
    former = holders[rows.values]
    return StickyAnswer(rows, (former != NOBODY) & (former != rows.rows))


def _receivers(waiting: Waiting, kept_sizes: Int64Array) -> Int32Array:
    """Return the receivers of the free partitions, in order: enough for all of them, or more.

    Members below the smaller quota in turn, each until it has that; then one each to those who have it, and behind them
    to those who came from below, in the order in which they got there.
    """
    below, at_least = np.array(waiting.below, np.int32), np.array(waiting.at_least, np.int32)
    missing = waiting.least - kept_sizes[below]
    rounds = ranges(np.zeros_like(missing), missing)
    in_turn = np.repeat(below, missing)[np.argsort(rounds, kind="stable")]
    return np.concatenate([in_turn, at_least, below[np.argsort(missing, kind="stable")]])
