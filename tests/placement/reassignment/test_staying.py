"""What stays where it is keeps every rule, and is as much as costs nothing, the largest first."""

from __future__ import annotations

import itertools

import numpy as np

from placement.reassignment.problem import Problem
from placement.reassignment.staying import keep_largest, staying


def test_only_partitions_whose_brokers_keep_every_rule_may_stay() -> None:
    """Brokers 0 and 1 share a group that holds one replica of each at most; broker 3 may hold nothing."""
    problem = Problem.of_rows(
        [[0, 2], [0, 1], [2, 3], [2, -1], [1, 2], [2, 0]],
        group=[0, 0, 1, -1],
        factor=np.array([2, 2]),
        kind=np.array([0, 0, 0, 0, 1, -1], dtype=np.int32),
        room=np.array([[1, 1], [1, 1]]),
        must=np.array([[0, 0], [1, 1]]),
    )
    assert staying(problem, np.array([3, 9, 9, 9, 5, 9]), 0).tolist() == [4, 0]
    assert staying(problem, np.array([3, 9, 9, 9, 5, 9]), 4).tolist() == [4]


def test_as_many_stay_as_cost_nothing_together() -> None:
    """Of ten partitions, 3 and 7 may not stay, alone or together, in any number of questions below that of subsets."""
    for wrong in itertools.combinations(range(10), 2):
        asked = 0

        def costs_nothing(rows: np.ndarray, wrong: tuple[int, ...] = wrong) -> bool:
            nonlocal asked
            asked += 1
            return not set(wrong) & set(rows.tolist())

        kept = keep_largest(np.arange(10), costs_nothing)
        assert kept.tolist() == [row for row in range(10) if row not in wrong]
        assert asked <= 2 * 5 + 1


def test_nothing_stays_where_nothing_may() -> None:
    assert keep_largest(np.arange(40), lambda rows: rows.size == 0).size == 0
    assert keep_largest(np.empty(0, dtype=np.int64), lambda rows: True).size == 0


def test_no_more_than_the_thousand_largest_are_asked_about() -> None:
    """Where few bytes move, all of 100,000 partitions are large beside them; each question would name them all."""
    problem = Problem.of_rows([[0]] * 3000, group=[0, 0])
    sizes = np.arange(3000)
    assert staying(problem, sizes, 0).tolist() == list(range(2999, 1999, -1))
