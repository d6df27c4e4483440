"""Measure what runs pass through: states, branches of rules, error codes, and which fault struck whom.

What it decides: what counts as covered. A transition of a state machine was taken; a line of a rule was run; an answer
with an error code was sent; a fault struck a broker that led, followed, did neither, or was down. What no run of a
campaign reaches is listed as never: no verdict of that campaign says anything about it.

Constraints: measuring does not change a run, and costs it about half of its speed; a run without it costs nothing. The
measurement of a run is a value that adds up over runs and passes between processes.

How: Python's trace function sees each call of `broker.machines.step`, and each line of the modules of
`replication.rules`. Answers are read as they are sent. Lines that belong to other releases are reached by campaigns
with `--kafka` only.

Example: of 20 seeds of `varied` most pass all transitions of current Kafka's machines.

Left out: what roles do without a step of a machine, as an idle follower's fetches; the branches of one line.

Source: Antithesis' "sometimes" assertions, as in `replication.checkers.rare`.
"""

from __future__ import annotations

import dis
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from textwrap import wrap
from types import CodeType, FrameType
from typing import Any, Final

import attrs

import replication.rules
from broker.error_codes import ErrorCode
from broker.machines import step, word
from broker.wording import counted
from replication.checkers import Rare
from replication.roles.messages import Message, NodeId
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
    lines: Counter[tuple[str, int]] = attrs.field(factory=Counter)
    """By module of the rules and line; counted once a run."""
    errors: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    """By type of the answer and name of the error."""
    faults: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    """By kind of fault and who was struck."""
    rare: Counter[Rare] = attrs.field(factory=Counter)

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(*(getattr(self, field.name) + getattr(other, field.name) for field in attrs.fields(Coverage)))


class _Tracer:
    """Note the transitions and the lines of rules that run while this tracer is set."""

    def __init__(self) -> None:
        self.coverage = Coverage()
        self._tables = {id(machine.table): machine.name for machine in MACHINES}
        self._modules = {path: name for name, path in _rule_files()}

    def trace(self, frame: FrameType, event: str, _argument: object) -> Callable[..., Any] | None:
        code = frame.f_code
        if code is _STEP:
            table, state, given = (frame.f_locals[name] for name in ("table", "state", "event"))
            if id(table) in self._tables:
                self.coverage.transitions[self._tables[id(table)], word(state), word(given)] += 1
            return None
        module = self._modules.get(code.co_filename)
        if module is None:
            return None
        lines = self.coverage.lines

        def note(inner: FrameType, what: str, _value: object) -> Callable[..., Any]:
            if what == "line":
                lines[module, inner.f_lineno] = 1
            return note

        return note


def run_covered(simulation: Simulation) -> tuple[Outcome, Coverage]:
    """Run a simulation that has not begun to its end, and return its outcome and what it passed through."""
    tracer = _Tracer()
    coverage = tracer.coverage

    def note_answers(_cluster: Cluster, _node: NodeId, _message: Message, out: Outbox) -> None:
        for _, each in out.sent:
            error = _error_of(each)
            if error is not None:
                coverage.errors[type(each).__name__, error.name] += 1

    simulation.cluster.watches.append(note_answers)
    before = sys.gettrace()
    sys.settrace(tracer.trace)
    try:
        outcome = simulation.finish()
    finally:
        sys.settrace(before)
    coverage.faults.update((kind.name, role) for (kind, role) in simulation.fault_injector.struck.elements())
    coverage.rare.update(outcome.rare)
    return outcome, coverage


def _error_of(message: Message) -> ErrorCode | None:
    """Return the error of an answer; None for a message that has none, and for success."""
    for holder in (message, getattr(message, "answer", None), getattr(message, "altered", None)):
        error = getattr(holder, "error", None)
        if isinstance(error, ErrorCode):
            return None if error is ErrorCode.NONE else error
    return None


def _rule_files() -> Iterator[tuple[str, str]]:
    for found in iter_modules(replication.rules.__path__):
        module = import_module(f"{replication.rules.__name__}.{found.name}")
        assert module.__file__ is not None, module
        yield found.name, module.__file__


def rule_lines() -> Mapping[str, frozenset[int]]:
    """Return the lines within functions of each module of the rules: what runs when a rule is applied."""
    return {name: frozenset(_lines_of(Path(path))) for name, path in _rule_files()}


def _lines_of(path: Path) -> Iterator[int]:
    waiting: list[object] = list(compile(path.read_text(encoding="utf-8"), str(path), "exec").co_consts)
    while waiting:
        code = waiting.pop()
        if not isinstance(code, CodeType):
            continue
        waiting += code.co_consts
        is_class = "__qualname__" in code.co_names
        if not is_class:
            yield from (line for _, line in dis.findlinestarts(code) if line and line != code.co_firstlineno)


def coverage_lines(coverage: Coverage) -> Iterator[str]:
    """Yield the tables of a campaign: machines, rules, error codes, faults by whom they struck, rare states."""
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
    yield "lines of each rule:"
    for module, lines in sorted(rule_lines().items()):
        reached = {line for name, line in coverage.lines if name == module} & lines
        if lines:
            yield f"  {module}: {len(reached)} of {counted(len(lines), 'line')}"
            yield from _listed(_ranges(lines - reached))
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


def _ranges(lines: frozenset[int] | set[int]) -> list[str]:
    """Return line numbers as ranges: 3 4 5 9 as 3-5, 9."""
    found: list[list[int]] = []
    for line in sorted(lines):
        if found and line == found[-1][-1] + 1:
            found[-1].append(line)
        else:
            found.append([line])
    return [str(each[0]) if len(each) == 1 else f"{each[0]}-{each[-1]}" for each in found]
