"""The solver's answer is that of trying every placement, whatever the rules."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from placement.planning import exchange
from placement.planning.exchange import solve
from placement.planning.problem import Bounds, InfeasibleError, Problem
from tests.oracles.exchange import least
from tests.oracles.exchange_cases import by_topic, found, is_solvable, random_problem

SEEDS = range(300)


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_loads_moves_and_lost_leaders_are_the_least_of_every_placement(start: int) -> None:
    for seed in range(start, start + 50):
        problem = random_problem(seed)
        if is_solvable(problem):
            assert found(problem, solve(problem)) == least(problem), seed


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_with_bounds_by_topic_too(start: int) -> None:
    for seed in range(start, start + 50):
        problem = random_problem(seed)
        if is_solvable(problem):
            spread = by_topic(problem, seed)
            assert found(spread, solve(spread)) == least(spread), seed


@pytest.mark.parametrize("start", [0, 100])
def test_a_search_that_needs_more_room_begins_again_and_finds_the_same(
    start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = [problem for seed in range(start, start + 100) if is_solvable(problem := random_problem(seed))]
    problems += [by_topic(problem, seed) for seed, problem in enumerate(problems)]
    roomy = [solve(problem) for problem in problems]
    monkeypatch.setattr(exchange, "_KEYS_FIRST", 1)
    for known, problem in zip(roomy, problems, strict=True):
        narrow = solve(problem)
        for name in ("now", "low", "high", "move_price", "leader_price"):
            assert getattr(narrow, name).tolist() == getattr(known, name).tolist()


def test_leaders_last_moves_no_more_and_loses_no_more_leaders() -> None:
    for seed in SEEDS:
        problem = random_problem(seed)
        if is_solvable(problem):
            plain = found(problem, solve(problem, leaders_last=False))[1]
            last = found(problem, solve(problem))[1]
            assert last[0] == plain[0]
            assert last[1] <= plain[1]


def test_balanced_input_stays_as_it_is() -> None:
    problem = Problem.of_rows([[0, 1], [1, 2], [2, 0]], group=[0, 0, 0])
    assert found(problem, solve(problem)) == ([2, 2, 2], (0, 0))


def test_solving_the_result_again_moves_nothing() -> None:
    for seed in SEEDS:
        problem = random_problem(seed)
        if is_solvable(problem):
            solution = solve(problem)
            kept = np.where(problem.kind[:, None] >= 0, solution.now, problem.before[:, : solution.now.shape[1]])
            leader = np.where((kept == problem.leader[:, None]).any(axis=1), problem.leader, -1)
            again = attrs.evolve(problem, before=kept, leader=leader.astype(np.int32))
            assert found(again, solve(again)) == (found(problem, solution)[0], (0, 0))


def test_permuting_the_brokers_changes_no_number() -> None:
    for seed in SEEDS:
        problem = random_problem(seed)
        if not is_solvable(problem):
            continue
        order = np.random.default_rng(seed).permutation(problem.group.size)
        place = np.append(np.argsort(order), -1).astype(np.int32)
        moved = attrs.evolve(
            problem,
            before=place[problem.before],
            leader=place[problem.leader],
            group=problem.group[order],
            receives=problem.receives[order],
            base=problem.base[order],
        )
        assert found(moved, solve(moved)) == found(problem, solve(problem))


def test_bounds_that_nothing_meets_are_refused() -> None:
    problem = Problem.of_rows([[0], [0]], group=[0, 0], receives=np.array([True, False]))
    low = np.array([1, 1])
    bounds = Bounds(low=low, high=low, block=np.zeros(2, dtype=np.int64), totals=np.array([2]))
    with pytest.raises(InfeasibleError, match="no placement lies within these bounds"):
        solve(problem, bounds)


def test_wider_bounds_never_move_more() -> None:
    """Test 17: from the even bounds by steps to none at all."""
    for seed in SEEDS[:100]:
        problem = random_problem(seed)
        if not is_solvable(problem):
            continue
        solution = solve(problem)
        moved = [found(problem, solution)[1]]
        for wider in (1, 2, 5):
            bounds = Bounds(
                low=np.maximum(solution.low - wider, 0),
                high=solution.high + wider,
                block=np.where(problem.live, 0, -1),
                totals=np.array([problem.total]),
            )
            moved.append(found(problem, solve(problem, bounds))[1])
        assert moved == sorted(moved, reverse=True)


def test_dropping_the_rack_rule_never_moves_more() -> None:
    """Test 17: to the same bounds, when any broker may hold any partition that it does not hold twice."""
    fewer = 0
    for seed in SEEDS:
        problem = random_problem(seed)
        if not is_solvable(problem):
            continue
        solution = solve(problem)
        bounds = Bounds(low=solution.low, high=solution.high, block=solution.block, totals=solution.totals)
        free = attrs.evolve(
            problem, must=np.zeros_like(problem.must), room=np.full_like(problem.room, problem.group.size)
        )
        moved, freely = (found(one, solve(one, bounds))[1] for one in (problem, free))
        assert freely <= moved, seed
        fewer += freely < moved
    assert fewer > 10
