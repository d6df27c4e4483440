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

from broker.entropy import RandomSource
from placement.consumer.assignment import GroupAssignment
from placement.consumer.errors import DivisionByZeroError
from placement.consumer.group import NO_GENERATION, Group
from placement.consumer.ragged import Ragged
from placement.consumer.sticky.balance import assign_general
from placement.consumer.sticky.claims import all_equal, assigned_topics, holding_order, settle
from placement.consumer.sticky.constrained import StickyAnswer, assign_constrained
from placement.consumer.sticky.general import older_owners
from placement.consumer.sticky.quota import assign_by_quota
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
