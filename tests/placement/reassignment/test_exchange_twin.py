"""The compiled exchanges cost what their readable twin's do, on problems that are too large for brute force."""

from __future__ import annotations

import random

import numpy as np
import pytest

from placement.reassignment.exchange import solve
from placement.reassignment.problem import Bounds, InfeasibleError, Problem
from tests.oracles.exchange import least
from tests.oracles.exchange_cases import is_solvable, random_problem
from tests.oracles.exchange_twin import placed


def larger_problem(chance: random.Random) -> Problem:
    """Twelve brokers in three or four groups and twenty partitions, some groups with a rule that binds."""
    brokers, groups, wide = 12, chance.choice([3, 4]), chance.random() < 0.3
    weights = [chance.uniform(0.2, 2) for _ in range(brokers)]
    rows, leader = [], []
    for _ in range(20):
        row = sorted(range(brokers), key=lambda broker: chance.random() / weights[broker])[:3]
        rows.append(row)
        leader.append(row[0] if chance.random() < 0.9 else -1)
    factor = np.array([groups + 1 if wide else 3])
    rule = (1, brokers) if wide else (0, 1)
    return Problem.of_rows(
        rows,
        group=[number % groups if number else chance.choice([-1, 0]) for number in range(brokers)],
        leader=np.array(leader, dtype=np.int32),
        kind=np.zeros(len(rows), dtype=np.int32),
        factor=factor,
        must=np.full((1, groups), rule[0]),
        room=np.full((1, groups), rule[1]),
        receives=np.array([chance.random() < 0.9 for _ in range(brokers)]),
    )


def within(problem: Problem, spare: int) -> Bounds:
    """Bounds of one block, `spare` wider than floor and ceiling."""
    even = Bounds.even(np.where(problem.live, 0, -1), np.array([problem.total]))
    low = np.where(problem.live, np.maximum(even.low - spare, 0), 0)
    return Bounds(low=low, high=np.where(problem.live, even.high + spare, 0), block=even.block, totals=even.totals)


def by_kernels(problem: Problem, bounds: Bounds) -> tuple[int, int] | None:
    try:
        now = solve(problem, bounds).now
    except InfeasibleError:
        return None
    rows = np.flatnonzero(problem.kind >= 0).tolist()
    held = [{int(each) for each in now[row] if each >= 0} for row in range(problem.kind.size)]
    new = sum(len(held[row] - set(problem.before[row].tolist())) for row in rows)
    led = [(row, int(problem.leader[row])) for row in rows]
    return new, sum(one >= 0 and bool(problem.live[one]) and one not in held[row] for row, one in led)


@pytest.mark.parametrize("seed", range(16))
def test_the_kernels_and_the_twin_find_the_same_cost_within_the_same_bounds(seed: int) -> None:
    problem = larger_problem(random.Random(seed))
    bounds = within(problem, seed % 3)
    assert by_kernels(problem, bounds) == placed(problem, bounds)


@pytest.mark.parametrize("start", range(0, 100, 50))
def test_so_they_do_with_mixed_factors_and_rules(start: int) -> None:
    for seed in range(start, start + 50):
        problem = random_problem(seed)
        if is_solvable(problem):
            bounds = within(problem, seed % 3)
            assert by_kernels(problem, bounds) == placed(problem, bounds), seed


def test_the_twin_finds_what_trying_every_placement_finds() -> None:
    compared = 0
    for seed in range(80):
        problem = random_problem(seed)
        if not is_solvable(problem):
            continue
        loads, spent = least(problem)
        if loads and max(loads) - min(loads) <= 1:  # Floors and ceilings of the mean can be reached.
            compared += 1
            assert placed(problem, within(problem, 0)) == spent, seed
    assert compared > 20
