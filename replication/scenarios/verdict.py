"""What came of a scenario: what is told in the end, and where it went otherwise than it should.

It decides nothing; it is what all kinds of scenarios have in common.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from replication.simulation.trace import Tell


@attrs.frozen
class Verdict:
    """`told` is a line of figures; `differences` are sentences, none if all went as it must."""

    told: str
    differences: tuple[str, ...] = ()

    @property
    def is_expected(self) -> bool:
        """Whether the scenario went as it must."""
        return not self.differences


class NamedScenario(Protocol):
    """A named scenario with a known outcome."""

    @property
    def name(self) -> str:
        """By which it is asked for: a number of the catalogue, with "-before" as it was before a fix."""
        ...

    @property
    def title(self) -> str:
        """What it is about."""
        ...

    @property
    def how(self) -> str:
        """How it happens, in a sentence or two."""
        ...

    @property
    def source(self) -> str:
        """Where it comes from."""
        ...

    def play(self, tell: Tell) -> Verdict:
        """Play it, tell each step, and return what came of it."""
        ...
