"""Draw numbers, choices and subsets from Hypothesis, in the words that a test's own draws need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import attrs
from hypothesis import strategies as st

from broker.entropy import SplitMix64
from broker.releases import KNOWN
from replication.rules.switches import CURRENT, NEVER, SWITCHES, Rules, rules_of, without

Drawn = TypeVar("Drawn")
_UNRELEASED: Final = tuple(sorted(name for name, switch in SWITCHES.items() if switch.since == NEVER))


class Draws:
    """Draw from Hypothesis; small numbers and first items are the simplest examples."""

    def __init__(self, random: Any) -> None:
        self._random = random

    @property
    def entropy(self) -> SplitMix64:
        """Return a generator of the project with a drawn seed."""
        return SplitMix64(self.number(0, 10**6))

    def number(self, least: int, most: int) -> int:
        """Return a number from `least` to `most`, both included."""
        value: int = self._random.randint(least, most)
        return value

    def is_one_in(self, count: int) -> bool:
        """Return whether a chance of one in `count` came."""
        return self.number(1, count) == count

    def one(self, items: Sequence[Drawn]) -> Drawn:
        """Return one of the items."""
        return items[self.number(0, len(items) - 1)]

    def some(self, items: Sequence[Drawn], least: int = 0) -> tuple[Drawn, ...]:
        """Return at least `least` of the items, in any order."""
        left, count = list(items), self.number(least, len(items))
        return tuple(left.pop(self.number(0, len(left) - 1)) for _ in range(count))

    def rules(self) -> Rules:
        """Return the rules of today, of a release, or of today with some turned off; each may have unreleased ones."""
        rules, unreleased = CURRENT, {name: self.is_one_in(3) for name in _UNRELEASED}
        if self.is_one_in(3):
            rules = rules_of(self.one(sorted(KNOWN)))
            if self.is_one_in(2):
                rules = without(CURRENT, *self.some(sorted(SWITCHES)))
        return attrs.evolve(rules, **unreleased)  # type: ignore[arg-type] # every switch is a bool.


DRAWS: Final[st.SearchStrategy[Draws]] = st.randoms(use_true_random=False).map(Draws)
