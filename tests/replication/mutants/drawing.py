"""Draw what the campaign's lone runs are made of, from a seed.

What it decides: nothing but the draws. The order of draws is part of a run: the same seed gives the same run.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import attrs

from broker.entropy import SplitMix64, derive
from broker.releases import KNOWN
from replication.rules.switches import CURRENT, NEVER, SWITCHES, Rules, rules_of, without

Drawn = TypeVar("Drawn")
_OTHER_RULES_ONE_IN: Final = 3
_UNRELEASED: Final = tuple(sorted(name for name, switch in SWITCHES.items() if switch.since == NEVER))


class Draws:
    """Draw numbers, choices and subsets; `stream` keeps the shapes apart that share a seed."""

    def __init__(self, seed: int, stream: int) -> None:
        self.entropy = SplitMix64(derive(seed, stream))

    def number(self, least: int, most: int) -> int:
        """Return a number from `least` to `most`, both included."""
        return least + self.entropy.next_int_bound(most - least + 1)

    def is_one_in(self, count: int) -> bool:
        """Return whether a chance of one in `count` came."""
        return self.entropy.next_int_bound(count) == 0

    def one(self, items: Sequence[Drawn]) -> Drawn:
        """Return one of the items."""
        return items[self.entropy.next_int_bound(len(items))]

    def some(self, items: Sequence[Drawn], least: int = 0) -> tuple[Drawn, ...]:
        """Return at least `least` of the items, in any order."""
        left, count = list(items), self.number(least, len(items))
        return tuple(left.pop(self.entropy.next_int_bound(len(left))) for _ in range(count))

    def rules(self) -> Rules:
        """Return the rules of today, of a release, or of today with some turned off; each may have unreleased ones."""
        rules, unreleased = CURRENT, {name: self.is_one_in(3) for name in _UNRELEASED}
        if self.is_one_in(_OTHER_RULES_ONE_IN):
            rules = rules_of(self.one(sorted(KNOWN)))
            if self.is_one_in(2):
                rules = without(CURRENT, *self.some(sorted(SWITCHES)))
        return attrs.evolve(rules, **unreleased)  # type: ignore[arg-type] # every switch is a bool.
