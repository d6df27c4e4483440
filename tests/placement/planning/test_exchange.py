"""The solver's answer is that of trying every placement, whatever the rules."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from placement.planning import exchange
from placement.planning.exchange import solve
from placement.planning.problem import Bounds, InfeasibleError, Problem, Solution
from tests.oracles.exchange import least
from tests.oracles.exchange_cases import by_topic, found, is_solvable, random_problem

some_seeds = pytest.mark.parametrize(
    "seeds",
    [range(30), *(pytest.param(range(start, start + 54), marks=pytest.mark.deep) for start in range(30, 300, 54))],
    ids=repr,
)


@some_seeds
def test_loads_moves_and_lost_leaders_are_the_least_of_every_placement(seeds: range) -> None:
    """Solving the result again moves nothing; the order of brokers, and leaders last, cost no move."""
    for seed in seeds:
        problem = random_problem(seed)
        if not is_solvable(problem):
            continue
        solution = solve(problem)
        loads, costs = found(problem, solution)
        assert (loads, costs) == least(problem), seed
        assert found(problem, solve(problem, leaders_last=False))[1][0] == costs[0]
        assert found(permuted(problem, seed), solve(permuted(problem, seed))) == (loads, costs)
        kept = np.where(problem.kind[:, None] >= 0, solution.now, problem.before[:, : solution.now.shape[1]])
        leader = np.where((kept == problem.leader[:, None]).any(axis=1), problem.leader, -1)
        again = attrs.evolve(problem, before=kept, leader=leader.astype(np.int32))
        assert found(again, solve(again)) == (loads, (0, 0))
        spread = by_topic(problem, seed)
        assert found(spread, solve(spread)) == least(spread), seed


def permuted(problem: Problem, seed: int) -> Problem:
    """Return the problem with its brokers in another order."""
    order = np.random.default_rng(seed).permutation(problem.group.size)
    place = np.append(np.argsort(order), -1).astype(np.int32)
    return attrs.evolve(
        problem,
        before=place[problem.before],
        leader=place[problem.leader],
        group=problem.group[order],
        receives=problem.receives[order],
        base=problem.base[order],
    )


@some_seeds
def test_a_search_that_needs_more_room_begins_again_and_finds_the_same(
    seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = [problem for seed in seeds if is_solvable(problem := random_problem(seed))]
    problems += [by_topic(problem, seed) for seed, problem in enumerate(problems)]
    roomy = [solve(problem) for problem in problems]
    monkeypatch.setattr(exchange, "_KEYS_FIRST", 1)
    for known, problem in zip(roomy, problems, strict=True):
        narrow = solve(problem)
        for name in ("now", "low", "high", "move_price", "leader_price"):
            assert getattr(narrow, name).tolist() == getattr(known, name).tolist()


def test_balanced_input_stays_as_it_is() -> None:
    problem = Problem.of_rows([[0, 1], [1, 2], [2, 0]], group=[0, 0, 0])
    assert found(problem, solve(problem)) == ([2, 2, 2], (0, 0))


def test_bounds_that_nothing_meets_are_refused() -> None:
    problem = Problem.of_rows([[0], [0]], group=[0, 0], receives=np.array([True, False]))
    low = np.array([1, 1])
    bounds = Bounds(low=low, high=low, block=np.zeros(2, dtype=np.int64), totals=np.array([2]))
    with pytest.raises(InfeasibleError, match="no placement lies within these bounds"):
        solve(problem, bounds)


@some_seeds
def test_wider_bounds_and_fewer_rules_never_move_more(seeds: range) -> None:
    """Test 17: from the even bounds by steps to none at all; and to the same bounds without the rack rule."""
    for seed in seeds:
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
        same = bounds_of(solution)
        free = attrs.evolve(
            problem, must=np.zeros_like(problem.must), room=np.full_like(problem.room, problem.group.size)
        )
        moved, freely = (found(one, solve(one, same))[1] for one in (problem, free))
        assert freely <= moved, seed


def bounds_of(solution: Solution) -> Bounds:
    """Return the bounds that a solution keeps."""
    return Bounds(low=solution.low, high=solution.high, block=solution.block, totals=solution.totals)
