"""Track how much each member keeps, and which members wait for more, in the constrained sticky assignment.

What it decides: of what a member holds, how many partitions stay; and the two queues from which free partitions find
their members, those below N div C and those exactly there that may get one more.

Source: AbstractStickyAssignor.ConstrainedAssignmentBuilder.assignOwnedPartitions, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs


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
