"""Rank a topic's subscribers by load: the least loaded gets the next partition, the most loaded gives one up.

What it decides: in which order the heterogeneous uniform assignor fills the least loaded subscribers and unloads the
most loaded ones of one topic.

How:
Subscribers are sorted once, by (partitions held, place in Java's map). From the left, those of the lowest level get one
each, left to right; then the level has risen by one, and whoever stands on it joins. From the right, those
of the highest level give one each, right to left; then the level has sunk. Who has nothing of the topic to give is
swapped to the right end of the range and left out. The sizes looked at change meanwhile, the order does not.

Example: sizes 1 1 3: the first, the second, the first, the second, the first, the second and the third get one.

Source: UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer, commit 1eb7644 (2024-10).
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs


@attrs.define(eq=False)
class Levels:
    """Hold the two ranges and their levels; `sizes` is shared with the code that moves partitions.

    [0, low_end) is the lowest level, next_low whose turn it is; [high_start, high_end) the highest, next_high likewise.
    """

    sizes: list[int]
    members: list[int]
    low_end: int
    low_level: int
    next_low: int
    high_start: int
    high_end: int
    high_level: int
    next_high: int

    @classmethod
    def of(cls, sizes: list[int], members: Iterable[int]) -> Levels:
        """Return the levels before any partition moves."""
        order = sorted(members, key=lambda member: (sizes[member], member))
        count = len(order)
        return cls(sizes, order, 0, sizes[order[0]] - 1, 0, count, count, sizes[order[-1]] + 1, count - 1)

    @property
    def imbalance(self) -> int:
        """Return how many more partitions the most loaded has than the least loaded, before any move."""
        return self.sizes[self.members[-1]] - self.sizes[self.members[0]]

    @property
    def balanced(self) -> bool:
        """Return whether the levels differ by one at most."""
        return self.high_level - self.low_level <= 1

    def next_least_loaded(self) -> int:
        """Return the subscriber that gets the next partition."""
        if self.next_low >= self.low_end:
            self.low_level += 1
            while self.low_end < len(self.members) and self.sizes[self.members[self.low_end]] == self.low_level:
                self.low_end += 1
            self.next_low = 0
        self.next_low += 1
        return self.members[self.next_low - 1]

    def next_most_loaded(self) -> int | None:
        """Return the subscriber that gives up a partition; None when no subscriber can."""
        if self.next_high < self.high_start:
            if self.high_end <= self.high_start and self.high_start > 0:
                # All of the range were left out, so the next level need not be one less.
                self.high_level = self.sizes[self.members[self.high_start - 1]]
            else:
                self.high_level -= 1
            while self.high_start > 0 and self.sizes[self.members[self.high_start - 1]] == self.high_level:
                self.high_start -= 1
            self.next_high = self.high_end - 1
        if self.next_high < 0:
            return None
        self.next_high -= 1
        return self.members[self.next_high + 1]

    def leave_out(self) -> None:
        """Exclude the subscriber last returned by `next_most_loaded`, because it has no partition to give."""
        place, end = self.next_high + 1, self.high_end - 1
        self.members[place], self.members[end] = self.members[end], self.members[place]
        self.high_end = end
