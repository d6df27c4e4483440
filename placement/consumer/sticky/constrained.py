"""Compute the sticky assignment when all members subscribe to the same topics.

Goals, most important first: sizes differ by one at most; members keep what they hold.

Constraints: with N partitions and C members, N mod C members get N div C + 1 partitions, the others N div C.

How:
1. Members, in the order of Java's map, keep what they hold. Who holds less than N div C keeps all and waits for more.
   Who holds more than that keeps N div C + 1 as long as there are fewer than N mod C such members, else N div C.
   What is kept is the first in order of (number, topic).
2. Where racks are looked at, only partitions of the own rack are kept, and unassigned ones first go to members of
   their racks.
3. What is left, in order of (topic, number), is dealt to the waiting members in turn, by member id. Who reaches
   N div C steps behind those who have as many; when nobody waits below, these get one more each, from the front.

Cost: partitions, members squared where racks are looked at.

Example: t0 of 4 partitions; a holds 0 1 2, b nothing: a keeps 0 and 1, b gets 2 and 3.

Claims are as racks are: a claimed partition that does not exist makes Kafka lose
count, so that partitions are given twice or it ends in IllegalStateError. This module does the same;
`assign_by_quota` of assignor.py is the fast way for claims on existing partitions without disputes and racks.

Source: AbstractStickyAssignor.ConstrainedAssignmentBuilder, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from placement.consumer.errors import IllegalStateError
from placement.consumer.group import Group
from placement.consumer.ragged import Ragged
from placement.consumer.sticky.claims import Claims, holding_order
from placement.consumer.sticky.racks import StickyRacks


@attrs.define(eq=False)
class Waiting:
    """Hold the quotas, how many members get the larger one, and the queues of members, by index in the group."""

    least: int
    over_count_max: int
    over_count: int = 0
    below: list[int] = attrs.field(factory=list)
    at_least: list[int] = attrs.field(factory=list)

    @classmethod
    def of(cls, partition_count: int, member_count: int) -> Waiting:
        """Return the quotas for these numbers of partitions and members, with empty queues."""
        least, over = divmod(partition_count, member_count)
        return cls(least, over)

    @property
    def most(self) -> int:
        """Return the larger quota, or the only one."""
        return self.least + (self.over_count_max > 0)

    def kept_size(self, member: int, held_count: int) -> int:
        """Return how many partitions a member keeps of those it holds; it may wait for more afterwards."""
        if held_count < self.least:
            self.below.append(member)
            return held_count
        if held_count >= self.most and self.over_count < self.over_count_max:
            self.one_more_is_over()
            return self.most
        if self.over_count < self.over_count_max:
            self.at_least.append(member)
        return self.least

    def one_more_is_over(self) -> None:
        """Count a member at the larger quota; after the last, members at the smaller quota stop waiting."""
        self.over_count += 1
        if self.over_count == self.over_count_max:
            self.at_least.clear()

    def sort(self, ranks: Sequence[int]) -> None:
        """Sort both queues by the members' `ranks`."""
        self.below.sort(key=ranks.__getitem__)
        self.at_least.sort(key=ranks.__getitem__)


@attrs.frozen(eq=False)
class StickyAnswer:
    """Hold the assignment, and bool[N] marking the entries that another member must first revoke.

    `withheld` is None where the algorithm does not keep account of that.
    """

    rows: Ragged
    withheld: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, rows: Ragged, transfers: Mapping[int, int]) -> StickyAnswer:
        """Return the answer that withholds these partitions from these members, once each."""
        left = dict(transfers)
        withheld = np.zeros(len(rows.values), np.bool_)
        for place, (partition, member) in enumerate(zip(rows.values.tolist(), rows.rows.tolist(), strict=True)):
            if left.get(partition) == member:
                withheld[place] = True
                del left[partition]
        return cls(rows, withheld)


@attrs.define(eq=False)
class Quotas:
    """Track the members' lists while they fill, the waiting members, and the partitions' former and new owners."""

    group: Group
    racks: StickyRacks
    contested: frozenset[int]
    waiting: Waiting
    lists: list[list[int]]
    revoked_from: dict[int, int] = attrs.field(factory=dict)
    transfers: dict[int, int] = attrs.field(factory=dict)

    def keep(self, member: int, held: Sequence[int]) -> None:
        """Let a member keep partitions that it holds, up to its quota."""
        for partition in held:
            # The next owner must wait until this member has revoked it (maybeRevokedPartitions).
            if self.racks.mismatch(member, partition):
                self.revoked_from[partition] = member
        numbers, topics = self.group.partition_numbers, self.group.partition_topics
        kept = [one for one in held if one not in self.contested and not self.racks.mismatch(member, one)]
        # Kafka sorts what a member owned by (partition, topic) before it cuts the list at the quota: which partitions
        # leave depends on it.
        kept.sort(key=lambda one: (numbers[one], topics[one]))
        size = self.waiting.kept_size(member, len(kept))
        self.lists[member].extend(kept[:size])
        self.revoked_from.update(dict.fromkeys(kept[size:], member))

    def deal_by_rack(self, partitions: Sequence[int]) -> list[int]:
        """Assign partitions to waiting members of their racks; return those that found no member."""
        left = []
        turn = 0
        for partition in partitions:
            # Members below minQuota come before members that wait for one partition more.
            place = self.racks.next_match(partition, self.waiting.below, turn)
            if place is not None:
                member = self.waiting.below[place]
                turn = self._after_rack_turn(place)
            else:
                place = self.racks.next_match(partition, self.waiting.at_least, 0)
                if place is None:
                    left.append(partition)
                    continue
                member = self.waiting.at_least[place]
                # Once the expected number of members is over minQuota, nobody else may exceed it.
                if len(self.lists[member]) + 1 == self.waiting.most:
                    del self.waiting.at_least[place]
                    self.waiting.one_more_is_over()
            self.give(partition, member)
        return left

    def _after_rack_turn(self, place: int) -> int:
        """Return whose turn is next among the members below quota, after the one at `place` gets a partition."""
        member = self.waiting.below[place]
        count = len(self.lists[member]) + 1
        if count < self.waiting.least:
            place += 1
        else:
            del self.waiting.below[place]
            if count < self.waiting.most and self.waiting.over_count < self.waiting.over_count_max:
                self.waiting.at_least.append(member)
        return place % len(self.waiting.below) if self.waiting.below else 0

    def deal(self, partitions: Sequence[int]) -> None:
        """Assign all partitions to the waiting members in turn."""
        turn = 0
        for partition in partitions:
            if self.waiting.below:
                turn = turn if turn < len(self.waiting.below) else 0
                member = self.waiting.below[turn]
                turn += 1
            elif self.waiting.at_least:
                member = self.waiting.at_least.pop(0)
            else:
                raise IllegalStateError("No more unfilled consumers to be assigned.")
            self.give(partition, member)
            count = len(self.lists[member])
            if count == self.waiting.least:
                # The member has minQuota: it leaves the round, and the iterator of Kafka's list stands before its
                # successor.
                turn -= 1
                del self.waiting.below[turn]
                self.waiting.at_least.append(member)
            elif count == self.waiting.most:
                self.waiting.over_count += 1

    def give(self, partition: int, member: int) -> None:
        """Append a partition to a member's list."""
        # A partition that another member owns, or that several claim, is in partitionsTransferringOwnership:
        # cooperative-sticky withholds it until the former owner has let it go.
        self.lists[member].append(partition)
        if partition in self.contested or self.revoked_from.get(partition, member) != member:
            self.transfers[partition] = member

    def verify(self) -> None:
        """Raise IllegalStateError where Kafka finds members that did not get their quota."""
        if self.waiting.below and self.waiting.over_count != self.waiting.over_count_max:
            raise IllegalStateError(
                "We haven't reached the expected number of members with more than the minQuota partitions, "
                "but no more partitions to be assigned"
            )
        for member in self.waiting.below:
            if len(self.lists[member]) != self.waiting.least:
                raise IllegalStateError(
                    f"Consumer: [{self.group.members[member]}] doesn't reach minQuota partitions, "
                    "and no more partitions to be assigned"
                )


def assign_constrained(group: Group, claims: Claims, partitions: Sequence[int], racks: StickyRacks) -> StickyAnswer:
    """Return the assignment of `partitions`, ids in order; raise IllegalStateError where Kafka does."""
    waiting = Waiting.of(len(partitions), len(group.members))
    quotas = Quotas(group, racks, claims.contested, waiting, lists=[[] for _ in group.members])
    held = list(claims.held.lists())
    for member in holding_order(group).tolist():
        quotas.keep(member, held[member])
    numbers, topics = group.partition_numbers, group.partition_topics
    kept = sorted((one for held in quotas.lists for one in held), key=lambda one: (topics[one], numbers[one]))
    waiting.sort(group.member_ranks.tolist())
    free = racks.in_order(not_kept(partitions, kept))
    if racks.looked_at:
        free = quotas.deal_by_rack(free)
    quotas.deal(free)
    quotas.verify()
    return StickyAnswer.of(Ragged.of(quotas.lists), quotas.transfers)


def not_kept(partitions: Sequence[int], kept: Sequence[int]) -> list[int]:
    """Return the partitions without those kept; both in the same order, as Kafka merges the two lists.

    A partition among `kept` that does not exist is never met, so that all behind it come out as if they were not kept.
    """
    place = 0
    result = []
    for partition in partitions:
        if place < len(kept) and kept[place] == partition:
            place += 1
        else:
            result.append(partition)
    return result
