"""Plans of random clusters with dead, fenced, cordoned, gone and empty brokers: right by a checker of their own."""

from __future__ import annotations

import numpy as np
import pytest

from placement.planning.findings import findings
from placement.planning.goal import MissingInputError, PlanRefusedError
from placement.planning.impact import impact
from placement.planning.plan import Plan, make_plan
from tests.oracles.plan_checker import Checker, Drawn, drawn
from tests.placement.planning.cases import lists

CHUNKS = [range(60), *(pytest.param(range(start, start + 94), marks=pytest.mark.deep) for start in range(60, 1000, 94))]


@pytest.mark.parametrize("seeds", CHUNKS, ids=repr)
def test_plans_are_right_least_and_what_impact_says(seeds: range) -> None:
    made = refused = 0
    for seed in seeds:
        case, why = drawn(seed), ""
        try:
            plan = make_plan(case.view, case.goal)
        except (PlanRefusedError, MissingInputError) as refusal:
            why = str(refusal)
        if why:
            refused += _lacks_a_place(case, why, seed)
            continue
        made += 1
        checker = Checker(case, lists(np.append(plan.view.broker_ids, -1)[plan.target]))
        assert checker.faults() == [], seed
        assert plan.faults() == (), seed
        if case.goal.kind != "racks":
            assert checker.cost() == checker.least(), seed
        leads_nothing_new(case, plan, seed)
        agrees_with_impact(plan, seed)
    assert made > len(seeds) // 3
    assert refused > 0


def _lacks_a_place(case: Drawn, why: str, seed: int) -> bool:
    """What is refused for want of a place has none, and what would wait for others lacks replicas in sync."""
    if "Kafka waits" in why:
        factor, up = case.goal.factor or 0, {b for b, how in case.states.items() if how == "up"}
        found = False
        for row, isr in zip(case.rows, case.isr, strict=True):
            kept = set(row) - set(case.goal.remove)
            found |= len(row) > factor and len(kept & set(isr) & up) < min(factor, len(kept))
        assert found, (seed, why)
    if "live brokers, and" not in why and "nowhere" not in why:
        return False
    assert Checker(case, case.rows).least() is None, (seed, why)
    return True


def leads_nothing_new(case: Drawn, plan: Plan, seed: int) -> None:
    """No broker that is down or removed leads afterwards, and one that is cordoned leads no more than it did."""
    lost = {b for b, how in case.states.items() if how not in ("up", "cordoned")} | set(case.goal.remove)
    for before, after in zip(plan.reassignment.current.tolist(), plan.reassignment.replicas.tolist(), strict=True):
        assert after[0] not in lost or after[0] == before[0], seed
        assert case.states.get(after[0]) != "cordoned", seed


def agrees_with_impact(plan: Plan, seed: int) -> None:
    """`impact` of the plan counts the same replicas, and finds nothing that never completes."""
    if not plan.reassignment.count:
        return
    found = impact([plan.reassignment])
    assert found.moved_replicas == plan.tally.moved, seed
    after = np.bincount(plan.target[plan.target >= 0], minlength=len(plan.view.brokers))
    assert found.brokers.replicas_after.tolist() == after.tolist(), seed
    names = {one.name for one in findings(found) if one.is_bad}
    assert not names & {"never-joins", "broker-cordoned", "cordoned-kept", "factor-below-min-isr"}, seed
    if plan.goal.factor is not None:
        assert "under-min-isr" not in names, seed
