"""Results of scenarios, and scenarios without a cluster: a script over one log or one search.

A script calls the same functions and logs as the rest of the package and returns the facts that it observed; each is
compared with the expected one, such as `Fact("the log ends at", 3)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import attrs

from broker.error_codes import ErrorCode
from replication.simulation.history import LineSink, discard_line

COUNT_MAX: Final = 1_000_000


@attrs.frozen
class ExpectedResponses:
    """State how often a response, named by its message class, must carry an error code; `member` None is any."""

    kind: str
    error: ErrorCode = ErrorCode.NONE
    count_min: int = 1
    count_max: int = COUNT_MAX
    member: str | None = None


@attrs.frozen
class ScenarioResult:
    """Hold one line of figures and one sentence for each difference from the expected outcome."""

    summary: str
    differences: tuple[str, ...] = ()

    @property
    def is_expected(self) -> bool:
        """Return whether the outcome is the expected one."""
        return not self.differences


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
    """Describe one scenario performed by a script; `source` is the KIP, the issue or the Kafka class."""

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
