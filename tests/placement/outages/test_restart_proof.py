"""Bounds of a schedule of restarts: no more than trying every schedule says, and confirmed without the solver."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.outages import restart_cases, restart_check, restart_search_kernel
from placement.outages.restart_bound import clique_weights, constraint_weights
from placement.outages.restart_budget import Limits
from placement.outages.restart_check import (
    FOUND,
    NONE,
    Conflicts,
    check_schedule,
    conflicts_of,
    heaviest,
    lower_bound,
    within,
)
from placement.outages.restart_columns import WEIGHT_SCALE
from placement.outages.restart_columns_kernel import find_heavy
from placement.outages.restart_prices import best_fractional
from placement.outages.restarts import solve


@st.composite
def limits_of_few(draw: st.DrawFn) -> Limits:
    """Constraints on up to seven brokers, with pairs, hyperedges and a largest batch."""
    count = draw(st.integers(1, 7))
    sets = draw(
        st.lists(
            st.tuples(st.lists(st.integers(0, count - 1), min_size=2, max_size=4, unique=True), st.integers(1, 3)),
            max_size=9,
        )
        if count > 1
        else st.just([])
    )
    width = max((len(members) for members, _ in sets), default=0)
    rows = [[*sorted(members), *[-1] * (width - len(members))] for members, _ in sets]
    return Limits(
        brokers=np.arange(count, dtype=np.int64),
        members=np.array(rows, dtype=np.int32).reshape(len(sets), width),
        budget=np.array([budget for _, budget in sets], dtype=np.int32),
        partition_count=np.ones(len(sets), dtype=np.int64),
        batch_max=draw(st.integers(1, count)),
    )


def allowed(limits: Limits, batch: tuple[int, ...]) -> bool:
    rows = zip(limits.members.tolist(), limits.budget.tolist(), strict=True)
    return len(batch) <= limits.batch_max and all(len(set(batch) & set(members)) <= budget for members, budget in rows)


def partitions_of(items: list[int]) -> Iterator[list[tuple[int, ...]]]:
    """Every way to put the items into batches."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for size in range(len(rest) + 1):
        for others in combinations(rest, size):
            left = [each for each in rest if each not in others]
            for batches in partitions_of(left):
                yield [(first, *others), *batches]


def fewest(limits: Limits) -> int:
    every = partitions_of(limits.brokers.tolist())
    return min(len(batches) for batches in every if all(allowed(limits, batch) for batch in batches))


@settings(max_examples=150, deadline=None)
@given(limits_of_few())
def test_a_schedule_has_the_fewest_batches_of_all_and_is_proven(limits: Limits) -> None:
    found = solve(limits)
    checked = check_schedule(limits, found.batches, found.weights, by_search=found.by_search)
    assert checked.faults == ()
    assert all(allowed(limits, batch) for batch in found.batches)
    assert len(found.batches) == checked.bound == fewest(limits)


@settings(max_examples=150, deadline=None)
@given(limits_of_few(), st.lists(st.integers(0, 9), min_size=7, max_size=7))
def test_no_weights_prove_more_than_the_fewest(limits: Limits, drawn: list[int]) -> None:
    count, conflicts = limits.brokers.size, conflicts_of(limits)
    least = fewest(limits)
    greedy = [(broker,) for broker in range(count)]
    for weights in (
        np.array(drawn[:count], dtype=np.int64),
        constraint_weights(limits),
        clique_weights(conflicts),
        best_fractional(limits, conflicts, greedy, count).weights,
    ):
        assert lower_bound(limits, weights) <= least
        assert lower_bound(limits, weights, claimed=least + 1) <= least
        assert lower_bound(limits, weights, claimed=least) == lower_bound(limits, weights)
        batch, weight, _ = heaviest(conflicts, limits.batch_max, weights, 10**9)
        every = [
            batch for size in range(count + 1) for batch in combinations(range(count), size) if allowed(limits, batch)
        ]
        assert weight == weights[batch].sum() == max(sum(int(weights[each]) for each in one) for one in every)
    before = conflicts_of(limits)
    assert within(limits, conflicts, least, 10**9)[0] == FOUND
    assert within(limits, conflicts, least - 1, 10**9)[0] == NONE
    assert np.array_equal(conflicts.hyperedge_of, before.hyperedge_of)
    assert np.array_equal(conflicts.clash, before.clash)


def of_random_pairs(count: int, pair_count: int) -> Limits:
    """Brokers of which so many random pairs may not restart together."""
    drawn = np.random.default_rng(1).permutation(count * (count - 1) // 2)[:pair_count]
    pairs = np.stack(np.triu_indices(count, 1), axis=1)[drawn]
    return Limits(
        brokers=np.arange(count, dtype=np.int64),
        members=pairs.astype(np.int32),
        budget=np.ones(pair_count, dtype=np.int32),
        partition_count=np.ones(pair_count, dtype=np.int64),
        batch_max=count,
    )


def test_the_prices_prove_the_best_fractional_schedule_rounded_up() -> None:
    """OR-tools' linear solver, with batches made the same way, comes to 10.2 batches: every schedule has 11."""
    limits = of_random_pairs(120, 2_400)
    conflicts = conflicts_of(limits)
    greedy = [(broker,) for broker in range(120)]
    assert lower_bound(limits, best_fractional(limits, conflicts, greedy, 120).weights) == 11


@pytest.mark.parametrize(("batch_max", "least"), [(9, 14), (6, 20)])
def test_the_prices_of_small_batches_prove_what_the_largest_batch_allows(batch_max: int, least: int) -> None:
    """120 brokers in batches of 9 need 14, of 6 need 20; without that limit the prices prove 11."""
    limits = attrs.evolve(of_random_pairs(120, 2_400), batch_max=batch_max)
    greedy = [(broker,) for broker in range(120)]
    assert lower_bound(limits, best_fractional(limits, conflicts_of(limits), greedy, 120).weights) == least


@pytest.mark.parametrize("start", [-1, 0, 77])
def test_no_column_holds_more_brokers_than_a_batch_may(start: int) -> None:
    conflicts = conflicts_of(of_random_pairs(120, 2_400))
    tables = (conflicts.clash, conflicts.hyperedge_of, conflicts.budget)
    weights = np.full(120, WEIGHT_SCALE // 7, dtype=np.int64)
    found = np.zeros((60, 120), dtype=np.uint8)
    kept = find_heavy(tables, 8, weights, WEIGHT_SCALE, 400, start, found)
    assert kept
    for row in found[:kept]:
        inside = np.flatnonzero(row)
        assert inside.size == 8
        assert not conflicts.clash[np.ix_(inside, inside)].any()


def of_triangle() -> Limits:
    return Limits(
        brokers=np.arange(4, dtype=np.int64),
        members=np.array([[0, 1, 2]], dtype=np.int32),
        budget=np.array([1], dtype=np.int32),
        partition_count=np.array([1], dtype=np.int64),
        batch_max=2,
    )


@pytest.mark.parametrize(
    ("batches", "fault"),
    [
        (((0, 3), (1,)), "broker 2 restarts 0 times"),
        (((0, 3), (1,), (2, 3)), "broker 3 restarts 2 times"),
        (((0, 1), (2,), (3,)), "batch 1 holds 2 of the brokers 0, 1, 2, of which 1 may restart at once"),
        (((0, 3, 1), (2,)), "batch 1 holds 3 brokers; at most 2 are allowed"),
    ],
)
def test_the_checker_names_what_is_wrong_with_a_schedule(batches: tuple[tuple[int, ...], ...], fault: str) -> None:
    assert fault in check_schedule(of_triangle(), batches, np.array([1, 1, 1, 0])).faults


def test_the_checker_confirms_no_bound_that_is_not_true() -> None:
    limits, right = of_triangle(), ((0, 3), (1,), (2,))
    assert check_schedule(limits, right, np.array([1, 1, 1, 0])).bound == 3
    assert check_schedule(limits, right, np.array([0, 0, 0, 5]), by_search=4).bound == 1
    assert check_schedule(limits, right, np.array([0, 0, 0, 5]), by_search=3).bound == 3
    assert check_schedule(limits, right, np.array([-1, 1, 1, 1])).bound == 0
    assert check_schedule(limits, right, np.array([1, 1, 1, 0]), steps_max=1).bound == 0


def test_one_constraint_proves_by_its_own_brokers_where_it_needs_more_batches_than_all_do() -> None:
    limits = of_triangle()
    assert constraint_weights(limits).tolist() == [1, 1, 1, 0]
    assert constraint_weights(attrs.evolve(limits, batch_max=1)).tolist() == [1, 1, 1, 1]


def test_no_two_of_a_clique_may_restart_together() -> None:
    limits = attrs.evolve(
        of_triangle(),
        members=np.array([[0, 1], [0, 2], [2, 3], [1, 3]], dtype=np.int32),
        budget=np.ones(4, dtype=np.int32),
        partition_count=np.ones(4, dtype=np.int64),
    )
    assert clique_weights(conflicts_of(limits)).tolist() == [1, 1, 0, 0]


def test_the_checker_trusts_no_search_that_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart_check, "SEARCH_STEPS_MAX", 1)
    checked = check_schedule(of_triangle(), ((0, 3), (1,), (2,)), np.array([0, 0, 0, 5]), by_search=3)
    assert (checked.bound, checked.by) == (1, "weights")


def test_the_checker_names_a_batch_that_holds_too_many_of_a_larger_budget() -> None:
    limits = attrs.evolve(of_triangle(), budget=np.array([2], dtype=np.int32), batch_max=4)
    assert check_schedule(limits, ((0, 1), (2, 3)), np.ones(4, dtype=np.int64)).faults == ()
    faults = check_schedule(limits, ((0, 1, 2), (3,)), np.ones(4, dtype=np.int64)).faults
    assert faults == ("batch 1 holds 3 of the brokers 0, 1, 2, of which 2 may restart at once",)


def test_the_checker_imports_no_solver() -> None:
    solvers = ("bound", "kernel", "savings", "columns", "columns_kernel", "prices", "branching", "crossing_kernel")
    for module in (restart_check, restart_cases, restart_search_kernel):
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        assert not [name for name in solvers if f"outages.restart_{name} import" in source]
        assert "outages.restarts import" not in source


@pytest.mark.parametrize("seed", range(20))
def test_a_clique_is_grown_by_the_broker_that_leaves_most_beside_it(seed: int) -> None:
    """The same choices as counting with matrices, the first of equals included."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 40))
    half = np.triu(rng.random((count, count)) < rng.random(), 1)
    clash = half | half.T
    order = np.lexsort([np.arange(count), -clash.sum(axis=1)])[:64].tolist()
    best: list[int] = []
    for start in order:
        clique, left = [start], clash[start].copy()
        while left.any():
            chosen = int(np.where(left, (clash & left).sum(axis=1), -1).argmax())
            clique.append(chosen)
            left &= clash[chosen]
        best = clique if len(clique) > len(best) else best
    none = np.empty(0, dtype=np.int32)
    found = clique_weights(
        Conflicts(clash=clash.astype(np.uint8), hyperedge_of=np.empty((count, 0), dtype=np.int32), budget=none)
    )
    assert np.flatnonzero(found).tolist() == sorted(best)
    assert clash[np.ix_(best, best)].sum() == len(best) * (len(best) - 1)
