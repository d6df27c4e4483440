"""Bands of bytes and the fewest bytes copied into them, by trying every set of brokers and every placement."""

from __future__ import annotations

import itertools
from fractions import Fraction

from tests.oracles.plans import Enumerated, Load

Bands = list[tuple[Fraction, Fraction]]
Answers = tuple[tuple[int, int, bool], ...]
"""Partitions, brokers, and whether these hold them."""


class EnumeratedBytes(Enumerated):
    """Every placement that the rules allow, with loads in bytes."""

    def size(self, row: int) -> int:
        sizes = self.view.partitions.size_bytes
        assert sizes is not None
        return int(sizes[row])

    def forced(self, some: tuple[int, ...]) -> int:
        """The fewest bytes that any placement leaves on some brokers, partitions being divisible."""
        return sum(
            self.size(row) * min(len(set(one) & set(some)) for one in self.sets(row)) for row in range(len(self.rows))
        )

    def means(self, shares: dict[int, int]) -> list[Fraction]:
        """The most even bytes of live brokers: the fullest set first, each time the largest of the fullest."""
        found: dict[int, Fraction] = {}
        while len(found) < len(self.live):
            rest = [b for b in self.live if b not in found]
            before = self.forced(tuple(found))
            best, chosen = Fraction(-1), ()
            for count in range(len(rest), 0, -1):
                for some in itertools.combinations(rest, count):
                    bytes_ = self.forced((*found, *some)) - before
                    share = Fraction(bytes_, sum(shares[b] for b in some))
                    if share > best:
                        best, chosen = share, some
            found |= {b: best * shares[b] for b in chosen}
        return [found[b] for b in self.live]

    def bands(self, shares: dict[int, int]) -> Bands:
        """The least and the most bytes of live brokers."""
        assert self.goal.tolerance is not None
        tolerance = Fraction(self.goal.tolerance).limit_denominator(1_000_000)
        bands = [(mean * (1 - tolerance), mean * (1 + tolerance)) for mean in self.means(shares)]
        if self.goal.kind in ("balance", "add"):
            return bands
        before = [sum(self.size(row) for row, held in enumerate(self.rows) if b in held) for b in self.live]
        return [(min(low, Fraction(n)), max(high, Fraction(n))) for (low, high), n in zip(bands, before, strict=True)]

    def least_within(self, bands: Bands, answers: Answers = ()) -> int | None:
        """The fewest bytes copied by a placement within the bands with these answers; None if there is none."""
        states: dict[Load, int] = {(0,) * len(self.live): 0}
        for row, held in enumerate(self.rows):
            after: dict[Load, int] = {}
            for load, spent in states.items():
                for one in self.sets(row):
                    if any(place == row and (b in one) != holds for place, b, holds in answers):
                        continue
                    key = tuple(n + self.size(row) * (b in one) for b, n in zip(self.live, load, strict=True))
                    if any(n > high for n, (_, high) in zip(key, bands, strict=True)):
                        continue  # Loads only grow.
                    cost = spent + self.size(row) * sum(b not in held for b in one)
                    after[key] = min(cost, after.get(key, cost))
            states = after
        return min(
            (
                spent
                for load, spent in states.items()
                if all(low <= n <= high for n, (low, high) in zip(load, bands, strict=True))
            ),
            default=None,
        )

    def topic_bounds(self) -> list[list[tuple[int, int]] | None]:
        """The least and the most partitions of each topic that live brokers hold where each topic is most even.

        None for a topic that may not change, or has no partition.
        """
        found: list[list[tuple[int, int]] | None] = []
        for topic in range(len(self.view.topics)):
            rows = [row for row in range(len(self.rows)) if self.topic_of(row) == topic]
            if not rows or self.fixed[rows[0]]:
                found.append(None)
                continue
            loads: set[Load] = {(0,) * len(self.live)}
            for row in rows:
                after = itertools.product(loads, self.sets(row))
                loads = {tuple(n + (b in one) for b, n in zip(self.live, load, strict=True)) for load, one in after}
            best = min(sum(n * n for n in load) for load in loads)
            even = [load for load in loads if sum(n * n for n in load) == best]
            found.append([(min(numbers), max(numbers)) for numbers in zip(*even, strict=True)])
        return found

    def topic_of(self, row: int) -> int:
        return int(self.view.partitions.topic_index[row])

    def least_with_topics(self, bands: Bands, bounds: list[list[tuple[int, int]] | None]) -> int | None:
        """The fewest bytes copied by a placement within the bands and the bounds by topic; None if there is none."""
        none = (0,) * len(self.live)
        topics = len(self.view.topics)
        states: dict[tuple[Load, tuple[Load, ...]], int] = {(none, (none,) * topics): 0}
        for row, held in enumerate(self.rows):
            after: dict[tuple[Load, tuple[Load, ...]], int] = {}
            for (load, counts), spent in states.items():
                for one in self.sets(row):
                    bytes_ = tuple(n + self.size(row) * (b in one) for b, n in zip(self.live, load, strict=True))
                    own = tuple(n + (b in one) for b, n in zip(self.live, counts[self.topic_of(row)], strict=True))
                    limits = bounds[self.topic_of(row)]
                    if limits is not None and any(n > most for n, (_, most) in zip(own, limits, strict=True)):
                        continue
                    if any(n > high for n, (_, high) in zip(bytes_, bands, strict=True)):
                        continue  # Loads only grow.
                    key = (bytes_, tuple(own if t == self.topic_of(row) else c for t, c in enumerate(counts)))
                    cost = spent + self.size(row) * sum(b not in held for b in one)
                    after[key] = min(cost, after.get(key, cost))
            states = after
        ends = [
            spent
            for (load, counts), spent in states.items()
            if all(low <= n <= high for n, (low, high) in zip(load, bands, strict=True))
            and all(
                limits is None or all(low <= n <= high for n, (low, high) in zip(own, limits, strict=True))
                for own, limits in zip(counts, bounds, strict=True)
            )
        ]
        return min(ends, default=None)
