"""Measures of a spread are what their definitions say, and their optimum is the best there is."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.errors import UsageError
from placement.balance.definitions import MEASURES
from placement.balance.measures import Distribution, distribution
from placement.balance.shares import GIVEN, Best
from tests.oracles import spread

SHARES = st.lists(st.integers(0, 40) | st.integers(0, 2**55), max_size=9)
FEW = st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(lambda shares: sum(shares) <= 9)


def of(*shares: int) -> Distribution:
    return distribution(np.array(shares, dtype=np.int64))


def test_the_worked_example_of_the_docstring_holds() -> None:
    found = of(4, 1, 1, 1)
    assert (found.group_count, found.total, found.min, found.max, found.mean) == (4, 7, 1, 4, 1.75)
    rounded = [round(number, 3) for number in (found.max_over_mean, found.stdev, found.cv, found.gini)]
    assert rounded == [2.286, 1.299, 0.742, 0.321]
    best = (found.best_max_over_mean, found.best_stdev, found.best_cv, found.best_gini)
    assert [round(number, 3) for number in best] == [1.143, 0.433, 0.247, 0.107]
    assert (found.moves, found.moves_share) == (2, 2 / 7)


@given(SHARES)
@example([10**15, 10**15 + 1])
@example([0, 0, 1])
def test_stdev_and_gini_are_those_of_the_oracle(shares: list[int]) -> None:
    found = of(*shares)
    assert found.stdev == pytest.approx(spread.stdev(shares), rel=1e-14, abs=0)
    assert found.gini == pytest.approx(float(spread.gini(shares)), rel=1e-14, abs=0)
    mean = sum(shares) / len(shares) if shares else 0
    assert found.cv == (pytest.approx(spread.stdev(shares) / mean, rel=1e-14, abs=0) if mean else 0)


@pytest.mark.parametrize("shares", [(), (0,), (0, 0, 0)])
def test_nothing_to_spread_is_perfectly_even(shares: tuple[int, ...]) -> None:
    found = of(*shares)
    assert (found.max_over_mean, found.best_max_over_mean) == (1.0, 1.0)
    zeros = (found.stdev, found.cv, found.gini, found.moves, found.moves_share, found.best_cv, found.best_gini)
    assert zeros == (0, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("group_count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("total", range(1, 12))
def test_no_spread_of_whole_units_is_better_than_the_best_given(group_count: int, total: int) -> None:
    everything = [(shares, of(*shares)) for shares in spread.spreads(total, group_count)]
    one = everything[0][1]
    assert one.best_max_over_mean == min(found.max_over_mean for _, found in everything)
    assert one.best_stdev == min(found.stdev for _, found in everything)
    assert one.best_cv == min(found.cv for _, found in everything)
    assert one.best_gini == min(found.gini for _, found in everything)
    unmoved = [found for _, found in everything if found.moves == 0]
    assert [found.gini for found in unmoved] == [one.best_gini]


@given(FEW)
def test_no_fewer_moves_of_one_unit_reach_floor_and_ceiling(shares: list[int]) -> None:
    assert of(*shares).moves == spread.least_moves(shares)


@given(st.lists(st.sets(st.integers(0, 3), min_size=1, max_size=4).map(sorted).map(tuple), min_size=1, max_size=4))
@example([(0, 1, 2), (0, 1, 2), (0, 1)])
def test_as_few_replica_moves_are_enough_though_brokers_stay_distinct(rows: list[tuple[int, ...]]) -> None:
    held = [sum(broker in row for row in rows) for broker in range(4)]
    assert of(*held).moves == spread.least_replica_moves(tuple(rows), 4)


@given(SHARES)
def test_every_measure_stays_in_the_range_of_its_definition(shares: list[int]) -> None:
    found, count = of(*shares), max(len(shares), 1)
    slack = 1 + 1e-12
    assert 1 <= found.best_max_over_mean <= found.max_over_mean <= count * slack
    assert 0 <= found.best_stdev <= found.stdev <= found.mean * math.sqrt(count - 1) * slack
    assert found.best_stdev <= 0.5
    assert 0 <= found.best_cv <= found.cv <= math.sqrt(count - 1) * slack
    assert 0 <= found.best_gini <= found.gini <= (1 - 1 / count) * slack
    assert found.moves is not None
    assert 0 <= found.moves <= found.total * (1 - 1 / count) * slack


def test_units_that_cannot_move_have_no_moves() -> None:
    found = distribution(np.array([3, 0]), names=["a", "b"], movable=False)
    assert (found.moves, found.moves_share, found.max_group) == (None, None, "a")


def test_the_first_of_the_largest_shares_names_the_group() -> None:
    assert distribution(np.array([1, 5, 5]), names=["a", "b", "c"]).max_group == "b"
    assert of(1, 5, 5).max_group == "1"
    assert of().max_group == ""


def test_a_negative_share_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^a share is -1; allowed are whole numbers from 0$"):
        of(2, -1)


def test_every_field_of_a_distribution_has_a_definition() -> None:
    assert tuple(MEASURES) == tuple(field.name for field in attrs.fields(Distribution))


def test_what_a_block_has_too_much_of_leaves_it_though_no_broker_is_above_its_ceiling() -> None:
    """The first six brokers share 9 at best and hold 10: two above 2, two below 1, and one more to give away."""
    held, target = (np.array(column) for column in ([3, 3, 2, 2, 0, 0, 3, 3], [1, 1, 1, 2, 2, 2, 3, 4]))
    block = np.array([0] * 6 + [1] * 2)
    found = distribution(held, best=Best(np.array([GIVEN]), block, block, target))
    assert (found.moves, found.moves_exact) == (3, False)
