"""The search finds the shortest history, counts what it saw, and says when it did not see all."""

from __future__ import annotations

import attrs
import pytest

from replication.explore.search import Outcome, Progress, described, search
from replication.explore.tiny_log import Interned


@attrs.frozen
class Counter:
    """Counts up by one or by two, up to `last`; `bad` is a number that must not be reached."""

    last: int
    bad: int | None = None
    first: int = 0

    def initial(self) -> int:
        return self.first

    def steps(self, state: int) -> list[tuple[str, int]]:
        return [(f"add {by}", state + by) for by in (1, 2) if state + by <= self.last]

    def renamed(self, state: int) -> tuple[int, int]:
        return state, 1

    def broken(self, state: int) -> str | None:
        return f"{state} is bad" if state == self.bad else None

    def state_text(self, state: int) -> str:
        return str(state)


@attrs.frozen
class Pair:
    """Two counters without names, each up to `last`: a state is ten times the one plus the other."""

    last: int
    bad: int | None = None

    def initial(self) -> int:
        return 0

    def steps(self, state: int) -> list[tuple[str, int]]:
        left, right = divmod(state, 10)
        moves = [("left", left + 1, right)] if left < self.last else []
        moves += [("right", left, right + 1)] if right < self.last else []
        return [(words, 10 * one + other) for words, one, other in moves]

    def renamed(self, state: int) -> tuple[int, int]:
        left, right = divmod(state, 10)
        return min(state, 10 * right + left), 1 + (left != right)

    def broken(self, state: int) -> str | None:
        return f"{state} is bad" if self.renamed(state)[0] == self.bad else None

    def state_text(self, state: int) -> str:
        return str(state)


def test_a_world_without_faults_is_seen_whole() -> None:
    outcome = search(Counter(last=9))
    assert outcome == Outcome(10, 10, 5, is_complete=True)
    assert outcome.holds


def test_the_shortest_history_is_told() -> None:
    outcome = search(Counter(last=9, bad=5))
    assert (outcome.fault, outcome.depth, outcome.holds) == ("5 is bad", 3, False)
    assert outcome.history[0] == 0
    assert outcome.history[-1] == 5
    assert len(list(described(Counter(last=9), outcome.history))) == 3
    assert list(described(Counter(last=9), (0, 2, 3))) == ["  1. add 2", "  2. add 1"]


def test_a_bad_beginning_is_a_history_without_steps() -> None:
    outcome = search(Counter(last=9, bad=0))
    assert (outcome.depth, outcome.history) == (0, (0,))


def test_a_search_cut_short_says_so() -> None:
    outcome = search(Counter(last=99), state_count_max=20)
    assert not outcome.is_complete
    assert not outcome.holds
    assert 20 < outcome.state_count < 25


def test_progress_is_reported_level_by_level() -> None:
    seen: list[Progress] = []
    search(Counter(last=4), on_level=seen.append)
    assert seen == [Progress(1, 3), Progress(2, 5), Progress(3, 5)]


def test_states_that_differ_in_names_are_kept_once_and_counted_all() -> None:
    outcome = search(Pair(last=2))
    assert (outcome.state_count, outcome.kept_count, outcome.depth) == (9, 6, 4)


@pytest.mark.parametrize("bad", [11, 12, 22])
def test_a_history_keeps_its_names_from_step_to_step(bad: int) -> None:
    model = Pair(last=2, bad=bad)
    outcome = search(model)
    assert outcome.fault == f"{outcome.history[-1]} is bad"
    for state, following in zip(outcome.history, outcome.history[1:], strict=False):
        assert following in [reached for _, reached in model.steps(state)]


def test_numbers_are_given_in_the_order_of_appearance() -> None:
    table: Interned[str] = Interned(1)
    assert [table.number(value) for value in ("b", "a", "b")] == [0, 1, 0]
    assert table.values == ["b", "a"]
    with pytest.raises(AssertionError, match="more than 2 values"):
        table.number("c")
