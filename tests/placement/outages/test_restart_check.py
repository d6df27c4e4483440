"""Certificates of restart schedules: changed schedules have faults, and no weights prove more than is true."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.outages.restart_budget import Limits
from placement.outages.restart_check import check_schedule, lower_bound
from placement.outages.restarts import solve
from tests.oracles.groupings import groupings

COUNT = 5


def limits_of(rows: list[tuple[list[int], int]], batch_max: int = COUNT) -> Limits:
    """Constraints on five brokers: at most so many of each set at once."""
    width = max((len(row) for row, _ in rows), default=0)
    return Limits(
        brokers=np.arange(COUNT, dtype=np.int64),
        members=np.array([row + [-1] * (width - len(row)) for row, _ in rows], dtype=np.int32).reshape(
            len(rows), width
        ),
        budget=np.array([budget for _, budget in rows], dtype=np.int32),
        partition_count=np.ones(len(rows), dtype=np.int64),
        batch_max=batch_max,
    )


def fewest(limits: Limits) -> int:
    """The fewest batches, by trying every assignment."""
    for batch_of in sorted(groupings(COUNT), key=max):
        batches = [tuple(b for b in range(COUNT) if batch_of[b] == each) for each in range(max(batch_of) + 1)]
        if not check_schedule(limits, batches, np.zeros(COUNT, dtype=np.int64)).faults:
            return len(batches)
    raise AssertionError(limits)


rows_of = st.lists(
    st.lists(st.integers(0, COUNT - 1), min_size=2, max_size=4, unique=True)
    .map(sorted)
    .flatmap(lambda row: st.tuples(st.just(row), st.integers(1, len(row) - 1))),
    max_size=6,
)


@settings(max_examples=15)
@given(rows_of, st.integers(1, COUNT), st.lists(st.integers(0, 2), min_size=COUNT, max_size=COUNT))
def test_the_fewest_batches_lie_between_the_bound_and_the_schedule(
    rows: list[tuple[list[int], int]], batch_max: int, weights: list[int]
) -> None:
    limits = limits_of(rows, batch_max)
    least = fewest(limits)
    batches, proof = solve(limits)
    checked = check_schedule(limits, batches, proof)
    assert checked.faults == ()
    assert checked.bound <= least <= len(batches)
    assert lower_bound(limits, np.array(weights, dtype=np.int64)) <= least


RING = limits_of([([each, (each + 1) % COUNT], 1) for each in range(COUNT)])


@pytest.mark.parametrize(
    ("batches", "fault"),
    [
        (((0, 2), (1, 3)), "broker 4 restarts 0 times"),
        (((0, 2), (1, 3), (4, 0)), "broker 0 restarts 2 times"),
        (((0, 1), (2, 4), (3,)), "batch 1 holds 2 of the brokers 0, 1, of which 1 may restart at once"),
    ],
)
def test_changed_schedules_have_faults(batches: tuple[tuple[int, ...], ...], fault: str) -> None:
    assert fault in check_schedule(RING, batches, np.ones(COUNT, dtype=np.int64)).faults


def test_a_batch_larger_than_allowed_is_a_fault() -> None:
    found = check_schedule(limits_of([], 2), ((0, 1, 2), (3, 4)), np.ones(COUNT, dtype=np.int64))
    assert found.faults == ("batch 1 holds 3 brokers; at most 2 are allowed",)
    assert found.bound == 3


@pytest.mark.parametrize("weights", [[1, 1], [-1, 1, 0, 0, 0], [2, 0, 0, 0, 0]])
def test_weights_that_are_none_prove_nothing(weights: list[int]) -> None:
    assert lower_bound(RING, np.array(weights, dtype=np.int64)) == 0
