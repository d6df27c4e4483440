"""Certificates of restart schedules with a field changed: each is refused, and none says more than is true."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.cluster import Int64Array
from placement.outages.restart_branching import proven_cases
from placement.outages.restart_cases import Case, Split
from placement.outages.restart_check import Checked, check_schedule, conflicts_of, within
from placement.outages.restart_columns import Work
from tests.placement.outages.test_restart_cases import GROETZSCH, of_pairs

LIMITS = of_pairs(*GROETZSCH)
COUNT = LIMITS.brokers.size
CLASH = conflicts_of(LIMITS).clash
FEWEST = 4
CASES = proven_cases(CLASH, [(each,) for each in range(COUNT)], FEWEST, Work(2_000_000_000))
ONES = np.ones(COUNT, dtype=np.int64)

Batches = tuple[tuple[int, ...], ...]


def schedule_of(batch_count: int) -> Batches:
    batch_of = within(LIMITS, conflicts_of(LIMITS), batch_count, 10**6)[1]
    return tuple(tuple(np.flatnonzero(batch_of == each).tolist()) for each in range(batch_count))


FOUR = schedule_of(FEWEST)
FIVE: Batches = (*FOUR[:-1], FOUR[-1][:1], FOUR[-1][1:]) if len(FOUR[-1]) > 1 else (FOUR[0][:1], FOUR[0][1:], *FOUR[1:])


def confirmed(
    batches: Batches, *, weights: Int64Array = ONES, by_weights: int = 0, by_search: int = 0, cases: Sequence[Case] = ()
) -> Checked:
    return check_schedule(LIMITS, batches, weights, by_weights=by_weights, by_search=by_search, cases=cases)


def test_the_certificate_as_it_is_proves_four_batches() -> None:
    assert len(CASES) > 2
    assert confirmed(FOUR, cases=CASES) == Checked((), FEWEST, "cases")
    assert confirmed(FOUR, by_search=FEWEST) == Checked((), FEWEST, "search")
    assert confirmed(FOUR).bound < FEWEST


@pytest.mark.parametrize(
    "batches",
    [
        FOUR[:-1],
        (*FOUR, FOUR[0]),
        (*FOUR[:-1], FOUR[-1][:-1]),
        ((*FOUR[0], *FOUR[1]), *FOUR[2:]),
        (FOUR[0][1:], (*FOUR[1], *FOUR[0][:1], FOUR[2][0]), *FOUR[2:]),
    ],
)
def test_changed_batches_have_faults(batches: Batches) -> None:
    assert confirmed(batches, cases=CASES).faults


def changed_cases() -> list[list[Case]]:
    """Every case with one field changed: left out, a broker of a split changed, a split turned round, or no weights."""
    changed = [[*CASES[:place], *CASES[place + 1 :]] for place in range(len(CASES))]
    for place, case in enumerate(CASES):
        others: list[Case] = []
        for number, split in enumerate(case.splits):
            for fresh in (
                attrs.evolve(split, one=(split.one + 1) % COUNT),
                attrs.evolve(split, other=(split.other + 1) % COUNT),
                attrs.evolve(split, together=not split.together),
            ):
                others.append(attrs.evolve(case, splits=(*case.splits[:number], fresh, *case.splits[number + 1 :])))
        others.append(attrs.evolve(case, splits=case.splits[:-1]))
        others.append(attrs.evolve(case, splits=(*case.splits, Split(0, 1, together=True))))
        if any(case.weights):
            others.append(attrs.evolve(case, weights=(0,) * COUNT))
            others.append(attrs.evolve(case, weights=(-1, *case.weights[1:])))
            others.append(attrs.evolve(case, weights=case.weights[1:]))
            others.append(attrs.evolve(case, weights=(max(case.weights) * COUNT, *case.weights[1:])))
        changed += [[*CASES[:place], other, *CASES[place + 1 :]] for other in others]
    return changed


@pytest.mark.parametrize("cases", changed_cases())
def test_cases_with_a_field_changed_prove_nothing(cases: list[Case]) -> None:
    assert confirmed(FOUR, cases=cases).bound < FEWEST


splits = st.builds(Split, st.integers(0, COUNT - 1), st.integers(0, COUNT - 1), st.booleans())
weights_of = st.tuples(*[st.integers(0, 3)] * COUNT)
made_up = st.lists(st.builds(Case, st.lists(splits, max_size=2).map(tuple), weights_of), max_size=4)


@settings(max_examples=300, deadline=None)
@given(st.one_of(made_up, st.lists(st.sampled_from(CASES), max_size=2 * len(CASES))), weights_of, st.integers(0, 9))
def test_no_certificate_proves_more_than_the_fewest_batches(
    cases: list[Case], weights: tuple[int, ...], claimed: int
) -> None:
    """Of five batches, one more than needed, nothing proves that there are no fewer."""
    drawn = np.array(weights, dtype=np.int64)
    checked = confirmed(FIVE, weights=drawn, by_weights=claimed, by_search=claimed, cases=cases)
    assert checked.faults == ()
    assert checked.bound <= FEWEST


@pytest.mark.parametrize("claimed", [2, 3, 4, 5, 11, 12])
def test_weights_prove_no_more_than_they_do_whatever_is_claimed(claimed: int) -> None:
    """Of the 11 brokers of one weight at most 5 restart together: three batches."""
    assert confirmed(FOUR, by_weights=claimed).bound == min(claimed, 3)
    assert confirmed(FOUR, weights=-ONES, by_weights=claimed).bound == 0
    assert confirmed(FOUR, weights=ONES[1:], by_weights=claimed).bound == 0
    assert confirmed(FOUR, weights=0 * ONES, by_weights=claimed).bound == 0
