"""Define state machines as tables from (state, input) to the next state, and functions over such tables."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, TypeVar

from broker.errors import UsageError

State = TypeVar("State", bound=enum.Enum)
Input = TypeVar("Input", bound=enum.Enum)

FORMS: Final = ("text", "mermaid", "dot")


def step(table: Mapping[tuple[State, Input], State], state: State, event: Input, *, what: str) -> State:
    """Return the next state; raise UsageError, which names `what`, if the table has no row."""
    try:
        return table[state, event]
    except KeyError:
        raise UsageError(f"the {what} is {word(state)} and cannot take {word(event)}") from None


def word(member: enum.Enum) -> str:
    """Return an enum member's name as words: CONTROLLED_SHUTDOWN as "controlled shutdown"."""
    return member.name.lower().replace("_", " ")


def to_text(table: Mapping[tuple[State, Input], State]) -> str:
    """Return the table as text, one line `state + input -> state` per row, columns aligned."""
    rows = [(word(state), word(event), word(following)) for state, event, following in _ordered(table)]
    state_width = max((len(state) for state, _, _ in rows), default=0)
    event_width = max((len(event) for _, event, _ in rows), default=0)
    return "\n".join(
        f"{state.ljust(state_width)}  + {event.ljust(event_width)}  -> {following}" for state, event, following in rows
    )


def to_mermaid(table: Mapping[tuple[State, Input], State]) -> str:
    """Return the table as a mermaid state diagram; inputs between the same two states share an arrow."""
    lines = [f"    {state.name} --> {target.name}: {', '.join(words)}" for state, target, words in _arrows(table)]
    return "\n".join(["stateDiagram-v2", *lines])


def to_dot(table: Mapping[tuple[State, Input], State]) -> str:
    """Return the table as a Graphviz digraph; inputs between the same two states share an arrow."""
    lines = [
        f'    "{word(state)}" -> "{word(target)}" [label="{", ".join(words)}"];'
        for state, target, words in _arrows(table)
    ]
    return "\n".join(["digraph {", "    node [shape=box];", *lines, "}"])


def drawn(table: Mapping[tuple[State, Input], State], form: str) -> str:
    """Return the diagram of a table in `form`, one of FORMS; raise UsageError for another form."""
    if form == "text":
        return to_text(table)
    if form == "mermaid":
        return to_mermaid(table)
    if form == "dot":
        return to_dot(table)
    raise UsageError(f"form {form!r} is not known; allowed are {', '.join(FORMS)}")


def _arrows(table: Mapping[tuple[State, Input], State]) -> list[tuple[State, State, list[str]]]:
    """Return the pairs of states with the inputs between them, in the order in which they are declared."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for state, event, following in _ordered(table):
        arrows.setdefault((state, following), []).append(word(event))
    return [(state, target, words) for (state, target), words in arrows.items()]


def _ordered(table: Mapping[tuple[State, Input], State]) -> list[tuple[State, Input, State]]:
    """Return the rows in the order in which states and inputs are declared."""

    def place(row: tuple[State, Input, State]) -> tuple[int, int]:
        state, event, _ = row
        return list(type(state)).index(state), list(type(event)).index(event)

    return sorted(((state, event, following) for (state, event), following in table.items()), key=place)
