"""Define a scenario without a cluster: a script drives one log, or one search over a controller quorum.

What it decides: how such a scenario is compared: the script returns facts, and each is compared with the expected one.

Constraints: a script calls the same functions and logs as the rest of the package and returns what it observed there.

Example: `Fact("the log ends at", 3)`.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from replication.scenarios.result import ScenarioResult
from replication.simulation.trace import LineSink, discard_line


@attrs.frozen
class Fact:
    """State one observation: words and a value."""

    words: str
    value: int | str | tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.words} {self.value}"


ComponentScript: TypeAlias = Callable[[LineSink], tuple[Fact, ...]]
"""Perform the steps, print a line for each, and return the facts observed at the end."""


@attrs.frozen(kw_only=True)
class ComponentScenario:
    """Describe one scenario performed by a script."""

    name: str
    title: str
    how: str
    source: str
    script: ComponentScript
    expected: tuple[Fact, ...]

    def play(self, on_line: LineSink = discard_line) -> ScenarioResult:
        """Run the script and compare its facts with the expected ones."""
        seen = self.script(on_line)
        differences = [
            f"{was}, expected {wanted}" for was, wanted in zip(seen, self.expected, strict=True) if was != wanted
        ]
        return ScenarioResult("; ".join(map(str, seen)), tuple(differences))
