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
