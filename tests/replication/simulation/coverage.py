"""Count what runs reach: transitions of state machines, error codes, rare states, and the brokers that faults struck.

What no run reaches is listed as never: these runs prove nothing about it. Counting changes no run;
counts add up over runs. The lines of the rules that tests reach are coverage.py's business.

Python's trace function sees each call of `broker.machines.step`; answers are read as they are sent.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from textwrap import wrap
from types import CodeType, FrameType
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.machines import step, word
from replication.checkers import Rare
from replication.roles.messages import Message, NodeId, error_of
from replication.roles.outbox import Outbox
from replication.roles.states import MACHINES
from replication.simulation.cluster import Cluster
from replication.simulation.options import FaultKind
from replication.simulation.run import Outcome, Simulation

_STEP: Final[CodeType] = step.__code__
WIDTH: Final = 110
ROLES: Final = ("leader", "follower", "idle", "down", "cluster")
"""Whom a fault strikes: a broker that leads a partition, that only follows, that does neither or is down; or none."""


@attrs.frozen
class Coverage:
    """Hold how often runs passed through what; `+` adds two up."""

    transitions: Counter[tuple[str, str, str]] = attrs.field(factory=Counter)
    """By machine, state and input, as names."""
    errors: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    """By type of the answer and name of the error."""
    faults: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    """By kind of fault and who was struck."""
    rare: Counter[Rare] = attrs.field(factory=Counter)

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(*(getattr(self, field.name) + getattr(other, field.name) for field in attrs.fields(Coverage)))


def run_covered(simulation: Simulation, coverage: Coverage) -> Outcome:
    """Run a simulation that has not begun to its end; add what it passes through to `coverage`."""
    tables = {id(machine.table): machine.name for machine in MACHINES}

    def trace(frame: FrameType, _event: str, _argument: object) -> None:
        if frame.f_code is _STEP:
            table, state, given = (frame.f_locals[name] for name in ("table", "state", "event"))
            if id(table) in tables:
                coverage.transitions[tables[id(table)], word(state), word(given)] += 1

    def note_answers(_cluster: Cluster, _node: NodeId, _message: Message, out: Outbox) -> None:
        for _, each in out.sent:
            error = error_of(each)
            if error is not None and error is not ErrorCode.NONE:
                coverage.errors[type(each).__name__, error.name] += 1

    simulation.cluster.watches.append(note_answers)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        outcome = simulation.finish()
    finally:
        sys.settrace(before)
    coverage.faults.update((kind.name, role) for (kind, role) in simulation.fault_injector.struck.elements())
    coverage.rare.update(outcome.rare)
    return outcome


def coverage_lines(coverage: Coverage) -> Iterator[str]:
    """Yield the tables of some runs: machines, error codes, faults by whom they struck, rare states."""
    yield "transitions of each state machine:"
    for machine in MACHINES:
        taken = {
            (state, given)
            for state, given in machine.table
            if coverage.transitions[machine.name, word(state), word(given)]
        }
        never = [f"{word(state)} + {word(given)}" for state, given in machine.table if (state, given) not in taken]
        yield f"  {machine.name}: {len(taken)} of {len(machine.table)}"
        yield from _listed(never)
    yield "error codes, by answer:"
    for (answer, error), count in sorted(coverage.errors.items()):
        yield f"{count:>10,}  {answer} {error}"
    yield f"faults, by whom they struck: {', '.join(ROLES)}"
    for kind in FaultKind:
        counts = [coverage.faults[kind.name, role] for role in ROLES]
        yield f"  {kind.name.lower()}: {', '.join(f'{count:,}' for count in counts)}{'' if any(counts) else '; never'}"
    yield "rare states:"
    for state in Rare:
        yield f"{coverage.rare[state]:>10,}  {state.value}{'' if coverage.rare[state] else '; never'}"


def _listed(never: list[str]) -> list[str]:
    """Return the lines that name what was never reached; none if everything was."""
    text = f"never {', '.join(never)}" if never else ""
    return wrap(text, WIDTH, initial_indent="    ", subsequent_indent="      ")
