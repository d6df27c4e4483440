"""Plans by bytes copy as few bytes as any plan to the same even counts, and prove it."""

from __future__ import annotations

import random
from typing import Any

import attrs
import numpy as np
import pytest

from broker.cluster import ClusterView
from broker.errors import RefusedError, UsageError
from broker.ids import BrokerId
from placement.reassignment import least_bytes
from placement.reassignment.exchange import solve
from placement.reassignment.goal import Goal, MissingInputError, PlanRefusedError
from placement.reassignment.least_bytes import TooManyExchangesError, solve_bytes
from placement.reassignment.plan import Plan, make_plan
from placement.reassignment.problem import Bounds, Problem
from tests.oracles.or_tools import least_moves
from tests.oracles.plans import Enumerated, random_goal, random_view
from tests.placement.reassignment.test_or_tools import middling, problem_of
from tests.placement.reassignment.test_plan import view_of

SIZES = (0, 0, 1, 2, 5, 700, 701)


def sized(view: ClusterView, seed: int, scale: int = 1) -> ClusterView:
    rng = random.Random(seed)
    sizes = [scale * rng.choice([*SIZES, rng.randint(0, 10_000)]) for _ in range(view.partitions.count)]
    return attrs.evolve(view, partitions=attrs.evolve(view.partitions, size_bytes=sizes), totals=None)


def planned(seed: int, *, scale: int = 1) -> Plan | None:
    view = sized(random_view(seed), seed, scale)
    try:
        return make_plan(view, attrs.evolve(random_goal(view, seed), by="bytes"))
    except (MissingInputError, PlanRefusedError):
        return None


@pytest.mark.parametrize("start", range(0, 400, 50))
def test_bytes_moves_and_lost_leaders_are_those_of_brute_force_and_the_checker_agrees(start: int) -> None:
    """All goals, racks, fenced and unracked brokers, factors; empty partitions and equal sizes among them."""
    for seed in range(start, start + 50):
        plan = planned(seed)
        if plan is None:
            continue
        assert plan.faults() == (), seed
        assert plan.tally.is_least, seed
        least = Enumerated(plan.view, plan.goal).least()
        assert (plan.tally.moved_bytes, plan.tally.moved + plan.tally.lost) == least, seed


def test_sizes_too_great_for_ties_are_planned_by_bytes_alone() -> None:
    seen = 0
    for seed in range(150):
        plan = planned(seed, scale=1 << 38)
        if plan is None or plan.certificate.replicas is None or plan.certificate.replicas.weight > 1:
            continue
        seen += 1
        assert plan.faults() == (), seed
        least = Enumerated(plan.view, plan.goal).least()
        assert least is not None
        assert plan.tally.moved_bytes == least[0], seed
        assert plan.tally.moved_or_lost_bound is None
    assert seen > 20


@pytest.mark.parametrize("seed", range(12))
def test_or_tools_finds_no_fewer_bytes(seed: int) -> None:
    """Mixed factors, more replicas than racks, brokers without a rack, brokers that leave or join."""
    view, goal = middling(seed)
    view = sized(view, seed)
    sizes = view.partitions.size_bytes
    assert sizes is not None
    plan = make_plan(view, attrs.evolve(goal, by="bytes"))
    problem = problem_of(view, goal)
    assert plan.tally.moved_bytes == least_moves(problem, solve(problem), sizes)
    assert plan.tally.moved >= make_plan(view, goal).tally.moved


def test_the_bytes_of_other_prices_are_no_more() -> None:
    """Whatever the prices, no bound is above what the plan copies; and moved replicas have no bound by themselves."""
    rng = np.random.default_rng(3)
    below = 0
    for seed in range(100):
        plan = planned(seed)
        if plan is None or plan.certificate.replicas is None:
            continue
        assert plan.tally.moved_bound is None
        proof = plan.certificate.replicas
        other = attrs.evolve(proof, price=proof.price + rng.integers(-3, 4, proof.price.size) * 1000 * proof.weight)
        found = [one for one in check(plan, replicas=other) if "bytes move, and the prices prove" in one]
        for one in found:
            below += 1
            assert int(one.split()[-1]) < int(one.split()[0])
    assert below > 20


def check(plan: Plan, **changed: object) -> tuple[str, ...]:
    return attrs.evolve(plan, certificate=attrs.evolve(plan.certificate, **changed)).faults()


def test_of_two_partitions_the_smaller_moves_and_the_checker_sees_the_other() -> None:
    view = view_of([[0], [0]], {0: None, 1: None}, size_bytes=[5, 3])
    plan = make_plan(view, Goal(by="bytes"))
    assert (plan.reassignment.rows.tolist(), plan.tally.moved_bytes, plan.tally.moved_bytes_bound) == ([1], 3, 3)
    moved = attrs.evolve(plan.reassignment, rows=np.array([0]))
    assert attrs.evolve(plan, reassignment=moved).faults() == ("5 bytes move, and the prices prove 3",)


def test_the_size_of_a_copy_is_that_of_the_leaders_replica() -> None:
    """A follower that lags holds less, and one with segments not yet cleaned more; copies come from the leader."""
    view = view_of(
        [[0, 1], [0, 1]],
        {0: None, 1: None, 2: None, 3: None},
        size_bytes=[9, 8],
        replica_size_bytes=[[2, 9], [8, 8]],
    )
    plan = make_plan(view, Goal(by="bytes", remove=(BrokerId(3),)))
    assert plan.tally.moved_bytes == 2
    assert plan.faults() == ()


def test_prices_too_great_to_add_up_prove_nothing() -> None:
    plan = make_plan(view_of([[0], [0]], {0: None, 1: None}, size_bytes=[5, 3]), Goal(by="bytes"))
    assert plan.certificate.replicas is not None
    huge = attrs.evolve(plan.certificate.replicas, price=np.array([1 << 62, 0]))
    assert "3 bytes move, and the prices prove 0" in check(plan, replicas=huge)


def test_unknown_sizes_are_refused_by_name() -> None:
    plain = (
        "a plan by bytes needs sizes, and {} (t-{}); give a file that states them (--sizes), or exclude their topics"
    )
    with pytest.raises(MissingInputError) as refused:
        make_plan(view_of([[0], [0]], {0: None, 1: None}), Goal(by="bytes"))
    assert str(refused.value) == plain.format("2 partitions have none", "0, t-1")
    with pytest.raises(MissingInputError) as refused:
        make_plan(view_of([[0], [0]], {0: None, 1: None}, size_bytes=[5, -1]), Goal(by="bytes"))
    assert str(refused.value) == plain.format("1 partition has none", "1")


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"by": "weight"}, "a plan by 'weight' is not known; allowed are replicas, bytes"),
        (
            {"by": "bytes", "only_leaders": True},
            "a plan of leaders alone copies no byte; leave out --by bytes, or --only-leaders",
        ),
    ],
)
def test_goals_that_cannot_be_by_bytes_are_refused(other: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        Goal(**other)
    assert str(refused.value) == told


def test_sizes_and_exchanges_beyond_the_limits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    view = view_of([[0], [0]], {0: None, 1: None}, size_bytes=[1 << 52, 3])
    with pytest.raises(RefusedError, match="a partition of 4,503,599,627,370,496 bytes is too large to plan by bytes"):
        make_plan(view, Goal(by="bytes"))
    monkeypatch.setattr("placement.reassignment.least_bytes.EXCHANGE_COUNT_MAX", 10)
    rows = [[n % 2] for n in range(20)]
    problem = Problem.of_rows(rows, group=[0, 0, 0])
    with pytest.raises(
        TooManyExchangesError, match="20 partitions on 3 brokers of 1 racks have more than 10 exchanges"
    ):
        solve_bytes(problem, np.arange(20), Bounds.even(np.zeros(3, dtype=np.int64), np.array([20])))


def test_heaps_that_run_full_on_the_way_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for little more than the exchanges that hold, the answer is the same."""
    rng = np.random.default_rng(4)
    rows = np.argsort(rng.random((300, 9)), axis=1)[:, :2]
    rows[rows > 5] -= 6
    rows = rows[rows[:, 0] != rows[:, 1]]
    sizes = rng.integers(0, 1000, rows.shape[0])
    problem = Problem.of_rows(rows, group=np.arange(9) % 3)
    bounds = Bounds.even(np.zeros(9, dtype=np.int64), np.array([rows.size]))
    free, _ = solve_bytes(problem, sizes, bounds)
    monkeypatch.setattr("placement.reassignment.least_bytes.EXCHANGE_COUNT_MAX", 2_200)
    fills: list[int] = []
    fill = least_bytes.fill_heaps
    monkeypatch.setattr(least_bytes, "fill_heaps", lambda *given: fills.append(1) or fill(*given))
    tight, _ = solve_bytes(problem, sizes, bounds)
    assert len(fills) > 1
    assert np.array_equal(np.sort(free.now), np.sort(tight.now))
