"""Proofs of restart schedules by cases: found where prices prove too little, and confirmed only where they are true."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings

from placement.outages import restarts
from placement.outages.restart_branching import proven_cases
from placement.outages.restart_budget import Limits
from placement.outages.restart_cases import Case, Split, cases_prove, contracted
from placement.outages.restart_check import check_schedule, conflicts_of, within
from placement.outages.restart_columns import Work
from placement.outages.restart_crossing_kernel import fill_by_crossing
from placement.outages.restart_prices import best_fractional
from tests.placement.outages.test_restart_proof import fewest, limits_of_few, of_random_pairs

WORK = 2_000_000_000


def of_pairs(count: int, pairs: list[tuple[int, int]]) -> Limits:
    return Limits(
        brokers=np.arange(count, dtype=np.int64),
        members=np.array(pairs, dtype=np.int32).reshape(len(pairs), 2),
        budget=np.ones(len(pairs), dtype=np.int32),
        partition_count=np.ones(len(pairs), dtype=np.int64),
        batch_max=count,
    )


def mycielski(count: int, pairs: list[tuple[int, int]]) -> tuple[int, list[tuple[int, int]]]:
    """One batch more, and no three brokers of which no two may restart together (Mycielski 1955)."""
    shadows = [(one, other + count) for one, other in pairs] + [(other, one + count) for one, other in pairs]
    return 2 * count + 1, [*pairs, *shadows, *((each + count, 2 * count) for each in range(count))]


GROETZSCH = mycielski(*mycielski(2, [(0, 1)]))
"""11 brokers that need 4 batches, where the best fractional schedule has 2.9: every proof by weights says 3."""


def test_cases_prove_what_no_weights_do() -> None:
    limits = of_pairs(*GROETZSCH)
    clash, singles = conflicts_of(limits).clash, [(each,) for each in range(11)]
    prices = best_fractional(limits, conflicts_of(limits), singles, 4)
    assert prices.value == pytest.approx(2.9, abs=1e-2)
    cases = proven_cases(clash, prices.batches, 4, Work(WORK))
    assert len(cases) > 1
    assert cases_prove(clash, cases, 4)
    assert not cases_prove(clash, cases, 5)
    assert proven_cases(clash, prices.batches, 5, Work(WORK)) == ()
    batch_of = within(limits, conflicts_of(limits), 4, 10**6)[1]
    batches = tuple(tuple(np.flatnonzero(batch_of == each).tolist()) for each in range(4))
    checked = check_schedule(limits, batches, prices.weights, cases=cases)
    assert (checked.faults, checked.bound, checked.by) == ((), 4, "cases")


def test_a_schedule_that_prices_leave_open_is_proven_by_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches that are cut off at once prove nothing, and prices one batch less than the schedule has."""
    for name in ("SEARCH_STEPS_SHORT", "SEARCH_STEPS_EARLY"):
        monkeypatch.setattr(restarts, name, 1)
    limits = of_pairs(*GROETZSCH)
    found = restarts.solve(limits)
    assert (len(found.batches), found.bound, found.by_search) == (4, 3, 0)
    assert len(found.cases) > 1
    assert check_schedule(limits, found.batches, found.weights, cases=found.cases).bound == 4


@pytest.mark.parametrize("left_out", [0, -1])
def test_a_proof_without_one_of_its_cases_is_none(left_out: int) -> None:
    limits = of_pairs(*GROETZSCH)
    clash = conflicts_of(limits).clash
    cases = list(proven_cases(clash, [(each,) for each in range(11)], 4, Work(WORK)))
    del cases[left_out]
    assert not cases_prove(clash, cases, 4)
    assert not cases_prove(clash, [], 4)


def test_a_case_of_other_splits_or_weights_that_prove_less_is_no_proof() -> None:
    limits = of_pairs(*GROETZSCH)
    clash = conflicts_of(limits).clash
    cases = proven_cases(clash, [(each,) for each in range(11)], 4, Work(WORK))
    place = next(place for place, each in enumerate(cases) if any(each.weights))
    for changed in (
        Case(cases[place].splits, (1,) * 11),
        Case(cases[place].splits, cases[place].weights[:-1]),
        Case(cases[place].splits, tuple(-each for each in cases[place].weights)),
        Case((Split(0, 2, True), *cases[place].splits), cases[place].weights),
    ):
        assert not cases_prove(clash, [*cases[:place], changed, *cases[place + 1 :]], 4)


def test_brokers_of_one_group_clash_with_what_one_of_them_clashes_with() -> None:
    clash = conflicts_of(of_pairs(4, [(0, 1), (2, 3)])).clash
    found = contracted(clash, [Split(0, 2, True), Split(1, 3, False)])
    assert found is not None
    met, group = found
    assert group.tolist() == [0, 1, 0, 2]
    assert met.tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert contracted(clash, [Split(0, 2, True), Split(1, 2, True)]) is None
    assert contracted(clash, [Split(0, 2, True), Split(2, 0, False)]) is None


@settings(max_examples=80, deadline=None)
@given(limits_of_few())
def test_cases_prove_the_fewest_batches_and_never_more(drawn: Limits) -> None:
    limits = attrs.evolve(drawn, budget=np.ones_like(drawn.budget), batch_max=drawn.brokers.size)
    clash, least = conflicts_of(limits).clash, fewest(limits)
    singles = [(each,) for each in range(limits.brokers.size)]
    if least > 1:
        assert cases_prove(clash, proven_cases(clash, singles, least, Work(WORK)), least)
    assert not cases_prove(clash, proven_cases(clash, singles, least + 1, Work(WORK)), least + 1)


def test_few_pivots_find_no_cases_and_say_none() -> None:
    clash = conflicts_of(of_pairs(*GROETZSCH)).clash
    assert proven_cases(clash, [(each,) for each in range(11)], 4, Work(1)) == ()


@pytest.mark.parametrize(("batch_count", "clashes"), [(14, 0), (3, 1)])
def test_crossing_schedules_fills_batches_in_which_no_two_clash(batch_count: int, clashes: int) -> None:
    clash = conflicts_of(of_random_pairs(120, 2_400)).clash
    batch_of = np.zeros(120, dtype=np.int32)
    left = fill_by_crossing(clash, batch_count, 20_000_000, 2_000, batch_of)
    assert min(left, 1) == clashes
    if not clashes:
        assert set(batch_of.tolist()) <= set(range(batch_count))
        assert not (clash.astype(bool) & (batch_of[:, None] == batch_of[None, :])).any()


def test_crossing_finds_the_only_schedule_of_a_planted_cluster() -> None:
    """Three racks of 20 brokers, any two of different racks clash: three batches, however it is drawn."""
    rack = np.arange(60) * 7 % 3
    clash = (rack[:, None] != rack[None, :]).astype(np.uint8)
    batch_of = np.zeros(60, dtype=np.int32)
    assert fill_by_crossing(clash, 3, 50_000_000, 2_000, batch_of) == 0
    assert len({(int(one), int(other)) for one, other in zip(rack, batch_of, strict=True)}) == 3
