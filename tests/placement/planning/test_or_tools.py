"""OR-tools finds no plan with fewer moves: mixed factors, more replicas than racks, topics, brokers that leave."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from placement.planning.exchange import solve
from placement.planning.given import Given
from placement.planning.goal import Goal, with_added
from placement.planning.plan import make_plan
from placement.planning.problem import Problem
from placement.planning.rules import replica_problem
from tests.oracles.exchange_cases import by_topic
from tests.oracles.or_tools import least_moves

pytestmark = pytest.mark.deep


def middling(seed: int, count: int = 40) -> tuple[ClusterView, Goal]:
    """Twelve brokers on two or four racks, some without one, partitions of factor 1 to 4, skewed."""
    rng = np.random.default_rng(seed)
    names: list[str | None] = ["a", "b"] if seed % 2 else ["a", "b", "c", "d", None]
    racks = [names[int(place)] for place in rng.integers(0, len(names), 12)]
    weights = np.linspace(0.3, 1.7, 12) / 12
    rows = [
        rng.choice(12, int(rng.integers(1, 5)), replace=False, p=weights / weights.sum()).tolist() for _ in range(count)
    ]
    view = ClusterView.build(
        name="c",
        source="test",
        format="test",
        brokers=[BrokerView(id=BrokerId(number), rack=rack) for number, rack in enumerate(racks)],
        topics=(TopicView("t"),),
        partitions=PartitionTable(
            topic_index=[0] * count,
            partition_ids=range(count),
            replicas=[row + [-1] * (4 - len(row)) for row in rows],
        ),
    )
    remove = (BrokerId(int(rng.integers(12))),) if seed % 3 == 0 else ()
    return view, Goal(remove=remove, add=((BrokerId(12), "a"),) if seed % 3 == 1 else ())


def problem_of(view: ClusterView, goal: Goal) -> Problem:
    known = with_added(view, goal)
    return replica_problem(known, goal, Given.read(known, goal))


def moved(problem: Problem, now: np.ndarray) -> int:
    return sum(len(set(row) - set(old) - {-1}) for row, old in zip(now.tolist(), problem.before.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(12))
def test_no_placement_moves_less(seed: int) -> None:
    view, goal = middling(seed)
    problem = problem_of(view, goal)
    solution = solve(problem)
    assert moved(problem, solution.now) == least_moves(problem, solution) == make_plan(view, goal).tally.moved


@pytest.mark.parametrize("seed", range(6))
def test_nor_with_bounds_by_topic(seed: int) -> None:
    view, goal = middling(seed)
    spread = by_topic(attrs.evolve(problem_of(view, goal)), seed)
    solution = solve(spread)
    assert moved(spread, solution.now) == least_moves(spread, solution)
