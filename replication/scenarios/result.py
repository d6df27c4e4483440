"""Define what every kind of scenario has in common: its description and its result.

Source: ours.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from replication.simulation.trace import LineSink


@attrs.frozen
class ScenarioResult:
    """Hold one line of figures and one sentence for each difference from the expected outcome."""

    summary: str
    differences: tuple[str, ...] = ()

    @property
    def is_expected(self) -> bool:
        """Return whether the outcome is the expected one."""
        return not self.differences


class NamedScenario(Protocol):
    """Define a named scenario with a known outcome."""

    @property
    def name(self) -> str:
        """Return the number in the catalogue; the suffix "-before" means the rules before the fix."""
        ...

    @property
    def title(self) -> str:
        """Return the events of the scenario in one line."""
        ...

    @property
    def how(self) -> str:
        """Return the steps that lead to the outcome, in one or two sentences."""
        ...

    @property
    def source(self) -> str:
        """Return the KIP, the issue or the Kafka class."""
        ...

    def play(self, on_line: LineSink) -> ScenarioResult:
        """Run the scenario, pass each step to `on_line`, and return the result."""
        ...
