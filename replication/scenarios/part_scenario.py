"""A fault scenario that needs no whole cluster: its steps drive the parts of one machine, or of a quorum, by
themselves.

It decides how such a scenario is told and held against what it says: the script does the steps, tells each, and returns
what it saw; that is compared with what is expected, fact by fact.

Constraints: a script calls the same functions and logs as everything else; what it returns it has seen there.

Example: `Fact("the log ends at", 3)`.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from replication.scenarios.verdict import Verdict
from replication.simulation.trace import Tell, silent


@attrs.frozen
class Fact:
    """One thing seen, in words and as a value."""

    words: str
    value: int | str | tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.words} {self.value}"


PartScript: TypeAlias = Callable[[Tell], tuple[Fact, ...]]
"""Does the steps of a scenario, tells them, and returns what was seen in the end."""


@attrs.frozen(kw_only=True)
class PartScenario:
    """One scenario told by a script."""

    name: str
    title: str
    how: str
    source: str
    script: PartScript
    expected: tuple[Fact, ...]

    def play(self, tell: Tell = silent) -> Verdict:
        """Do the steps and hold what was seen against what is expected."""
        seen = self.script(tell)
        differences = [
            f"{was}, expected {wanted}" for was, wanted in zip(seen, self.expected, strict=True) if was != wanted
        ]
        return Verdict("; ".join(map(str, seen)), tuple(differences))
