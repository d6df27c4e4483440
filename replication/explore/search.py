"""Search every state that a model can reach, breadth first, and find the shortest history to a violation.

The same model gives the same outcome, counts and history in every process: sets are used for membership tests only,
never iterated.

Source: ours; the method is that of TLC, the TLA+ model checker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Protocol

import attrs

from broker.errors import UsageError


class Model(Protocol):
    """Define a finite model: a state is an int, and each step has a description."""

    def initial(self) -> int:
        """Return the state in which every history begins."""
        ...

    def steps(self, state: int) -> list[tuple[str, int]]:
        """Return every step from a state, always in the same order: a description of the step, and the next state."""
        ...

    def renamed(self, state: int) -> tuple[int, int]:
        """Return the representative of all states that differ in the brokers' names alone, and their number.

        A model whose brokers are not all alike returns the state itself, and 1.
        """
        ...

    def broken(self, state: int) -> str | None:
        """Return a description of how a state violates the model's invariant, None if it does not."""
        ...

    def state_text(self, state: int) -> str:
        """Return a description of a state, on one line."""
        ...


def check_bounds(scope: object, **bounds: tuple[int, int]) -> None:
    """Raise UsageError for a field of a model's bounds that is not within its least and greatest value."""
    for name, (least, most) in bounds.items():
        value = getattr(scope, name)
        if not least <= value <= most:
            raise UsageError(f"{name} is {value}; allowed are {least} to {most}")


@attrs.frozen
class Progress:
    """Report the depth of the level just finished, and the states found so far."""

    depth: int
    state_count: int


@attrs.frozen
class Outcome:
    """Hold the outcome of a search.

    `history` is empty if no reachable state violates the invariant; else it starts with the initial state and ends with
    the violating state, which `fault` describes. `is_complete` says that the search did not stop at `state_count_max`.
    `state_count` counts all states, `kept_count` the states that were kept, one for all renamings.
    """

    state_count: int
    kept_count: int
    depth: int
    is_complete: bool
    fault: str | None = None
    history: tuple[int, ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether the search has checked every reachable state and found no violation."""
        return self.fault is None and self.is_complete


def search(
    model: Model, *, state_count_max: int | None = None, on_level: Callable[[Progress], None] | None = None
) -> Outcome:
    """Search a model until a state violates its invariant, every state is seen, or `state_count_max` is passed.

    `depth` of the outcome is the number of steps to the violation, or to the last new state.
    """
    start, state_count = model.renamed(model.initial())
    fault = model.broken(start)
    if fault is not None:
        return Outcome(state_count, 1, 0, is_complete=False, fault=fault, history=(start,))
    levels = [[start]]
    seen = {start}
    while levels[-1]:
        level: list[int] = []
        for state in levels[-1]:
            for _, reached in model.steps(state):
                following, named_count = model.renamed(reached)
                if following in seen:
                    continue
                seen.add(following)
                state_count += named_count
                fault = model.broken(following)
                if fault is not None:
                    history = _history(model, [*levels, [following]])
                    fault = model.broken(history[-1])
                    return Outcome(state_count, len(seen), len(levels), is_complete=False, fault=fault, history=history)
                level.append(following)
        levels.append(level)
        if on_level is not None:
            on_level(Progress(len(levels) - 1, state_count))
        if state_count_max is not None and state_count > state_count_max:
            return Outcome(state_count, len(seen), len(levels) - 1, is_complete=False)
    return Outcome(state_count, len(seen), len(levels) - 2, is_complete=True)


def described(model: Model, history: tuple[int, ...]) -> Iterator[str]:
    """Yield the steps of a history as numbered sentences."""
    for number, (state, following) in enumerate(pairwise(history), start=1):
        words = next(words for words, reached in model.steps(state) if reached == following)
        yield f"{number:>3}. {words}"


def _history(model: Model, levels: list[list[int]]) -> tuple[int, ...]:
    """Return a history to the only state of the last level: backwards through the levels, then forwards with names."""
    path = [levels[-1][0]]
    for level in reversed(levels[:-1]):
        path.append(next(state for state in level if _leads_to(model, state, path[-1]) is not None))
    history = [model.initial()]
    for wanted in reversed(path[:-1]):
        following = _leads_to(model, history[-1], wanted)
        assert following is not None, (history[-1], wanted)
        history.append(following)
    return tuple(history)


def _leads_to(model: Model, state: int, wanted: int) -> int | None:
    return next((reached for _, reached in model.steps(state) if model.renamed(reached)[0] == wanted), None)
