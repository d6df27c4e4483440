"""Draw a state machine as text, Mermaid or Graphviz DOT; the same table gives the same bytes.

Example:

    >>> import enum
    >>> Light = enum.Enum("Light", "OFF ON")
    >>> Press = enum.Enum("Press", "ONCE")
    >>> print(drawn({(Light.OFF, Press.ONCE): Light.ON}, "dot"))
    digraph {
        node [shape=box];
        "off" -> "on" [label="once"];
    }

Source: the DOT language of Graphviz; Mermaid's state diagrams.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.errors import UsageError
from broker.machines import Input, State, to_mermaid, to_text, word

FORMS: Final = ("text", "mermaid", "dot")


def drawn(table: Mapping[tuple[State, Input], State], form: str) -> str:
    """Return the diagram of a table in `form`, one of FORMS; raise UsageError for another form."""
    if form == "text":
        return to_text(table)
    if form == "mermaid":
        return to_mermaid(table)
    if form == "dot":
        return to_dot(table)
    raise UsageError(f"form {form!r} is not known; allowed are {', '.join(FORMS)}")


def to_dot(table: Mapping[tuple[State, Input], State]) -> str:
    """Return the table as a Graphviz digraph; inputs between the same two states share an arrow."""
    lines = [
        f'    "{word(source)}" -> "{word(target)}" [label="{", ".join(labels)}"];'
        for (source, target), labels in _arrows(table).items()
    ]
    return "\n".join(["digraph {", "    node [shape=box];", *lines, "}"])


def _arrows(table: Mapping[tuple[State, Input], State]) -> dict[tuple[State, State], list[str]]:
    """Return the inputs between each two states, in the order in which states and inputs are declared."""
    states = list(type(next(iter(table.values()))))
    inputs = list(type(next(iter(table))[1]))
    arrows: dict[tuple[State, State], list[str]] = {}
    for source in states:
        for event in inputs:
            if (source, event) in table:
                arrows.setdefault((source, table[source, event]), []).append(word(event))
    return arrows
