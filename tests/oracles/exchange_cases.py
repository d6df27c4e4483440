"""Random problems of exchanges, small enough for brute force; and the comparison of a range of seeds from the shell.

python -m tests.oracles.exchange_cases 0 10000
"""

from __future__ import annotations

import random
import sys

import attrs
import numpy as np

from placement.planning.exchange import solve
from placement.planning.problem import Problem, Solution
from tests.oracles.exchange import choices, cost, least

GROUPS_MAX = 3
WIDTH = 3


def random_problem(seed: int) -> Problem:
    """Up to six brokers and five partitions of mixed factors: groups with rules, brokers that left, loads that stay."""
    rng = random.Random(seed)
    brokers, partitions = rng.randint(1, 6), rng.randint(1, 5)
    group_count = rng.randint(1, min(GROUPS_MAX, brokers))
    group = [rng.randrange(group_count) for _ in range(brokers)]
    if rng.random() < 0.3 and brokers > 1:
        group[rng.randrange(brokers)] = -1
    sizes = [group.count(one) for one in range(group_count)]
    kinds: dict[tuple[int, tuple[int, ...], tuple[int, ...]], int] = {}
    rows, kind, leader = [], [], []
    for _ in range(partitions):
        held = rng.sample(range(brokers), rng.randint(1, min(brokers, WIDTH)))
        rows.append(held + [-1] * (WIDTH - len(held)))
        leader.append(rng.choice(held) if rng.random() < 0.8 else -1)
        factor = min(len(held) if rng.random() < 0.7 else rng.randint(1, WIDTH), sum(sizes))
        kind.append(_kind_of(kinds, factor, sizes) if rng.random() < 0.9 else -1)
    if not kinds:
        _kind_of(kinds, 1, sizes)
    return Problem.of_rows(
        rows,
        group=group,
        kind=np.array(kind, dtype=np.int32),
        leader=np.array(leader, dtype=np.int32),
        factor=np.array([one[0] for one in kinds]),
        must=np.array([one[1] for one in kinds]).reshape(len(kinds), group_count),
        room=np.array([one[2] for one in kinds]).reshape(len(kinds), group_count),
        receives=np.array([rng.random() < 0.85 or rng.random() < 0.5 for _ in range(brokers)]),
        base=np.array([rng.randint(0, 4) if rng.random() < 0.3 else 0 for _ in range(brokers)]),
    )


def _kind_of(kinds: dict[tuple[int, tuple[int, ...], tuple[int, ...]], int], factor: int, sizes: list[int]) -> int:
    is_wide = factor > sum(size > 0 for size in sizes)
    must = tuple(int(size > 0 and is_wide) for size in sizes)
    room = tuple(sum(sizes) if is_wide else 1 for _ in sizes)
    return kinds.setdefault((factor, must, room), len(kinds))


def by_topic(problem: Problem, seed: int) -> Problem:
    """Return the problem with its partitions in two topics, each of which is as even as it can be by itself."""
    topic = np.array([random.Random(seed * 7 + row).randrange(2) for row in range(problem.kind.size)], dtype=np.int32)
    none = np.zeros_like(problem.base)
    alone = [solve(attrs.evolve(problem, kind=np.where(topic == one, problem.kind, -1), base=none)) for one in range(2)]
    low, high = np.array([one.low for one in alone]), np.array([one.high for one in alone])
    return attrs.evolve(problem, topic=topic, topic_low=low, topic_high=high)


def is_solvable(problem: Problem) -> bool:
    """Whether every partition has brokers that may hold it."""
    return all(choices(problem, row) for row in range(problem.kind.size))


def found(problem: Problem, solution: Solution) -> tuple[list[int], tuple[int, int]]:
    """Loads of live brokers, ascending, and what the solution costs; asserts that each partition keeps its rules."""
    loads, moves, lost = problem.base.copy(), 0, 0
    for row in range(problem.kind.size):
        chosen = tuple(sorted(b for b in solution.now[row].tolist() if b >= 0))
        assert chosen in choices(problem, row), (row, chosen)
        new, gone = cost(problem, row, chosen)
        moves, lost = moves + new, lost + gone
        loads[list(chosen)] += 1
    return sorted(loads[problem.live].tolist()), (moves, lost)


def main(start: int, end: int) -> int:
    """Compare the seeds start..end-1 with brute force, and print those that differ; return the exit status."""
    compared = differing = 0
    for seed in range(start, end):
        problem = random_problem(seed)
        if not is_solvable(problem):
            continue
        for case in (problem, by_topic(problem, seed)):
            compared += 1
            if found(case, solve(case)) != least(case):
                differing += 1
                print(f"seed {seed}: {found(case, solve(case))} is not {least(case)}")
    print(f"{compared} cases compared, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
