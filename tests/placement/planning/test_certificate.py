"""The checker accepts what the planner makes, and sees every plan and certificate that is not as it says."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pytest

from broker.cluster import ClusterView
from broker.ids import BrokerId
from placement.planning.certificate import Proof, adds_up, lower_bound
from placement.planning.check import faults
from placement.planning.given import Given, replica_question
from placement.planning.goal import Goal
from placement.planning.plan import Plan, make_plan
from placement.planning.question import FAR, Question
from tests.placement.planning.test_plan import SEEDS, planned, view_of


@pytest.fixture
def plan() -> Plan:
    """Twelve partitions of factor 3 on six brokers of three racks, uneven, one broker to be removed."""
    rows = [[n % 2, 2 + n % 2, 4 + n // 6] for n in range(12)]
    view = view_of(rows, {0: "a", 1: "a", 2: "b", 3: "b", 4: "c", 5: "c", 6: "a"})
    return make_plan(view, Goal(remove=(BrokerId(1),)))


@pytest.mark.parametrize(
    ("seeds", "least"), [(SEEDS[::20], 20), pytest.param(SEEDS, 100, marks=pytest.mark.deep)], ids=["few", "all"]
)
def test_moved_is_at_least_the_bound_of_any_prices(seeds: range, least: int) -> None:
    """Test 1: random prices on random plans; the bound of the plan's own prices is the greatest."""
    rng = np.random.default_rng(5)
    lower = 0
    for seed in seeds:
        made = planned(seed)
        if made is None or made.certificate.replicas is None:
            continue
        proof = made.certificate.replicas
        asked = replica_question(made.view, made.goal, Given.read(made.view, made.goal))
        cost = proof.weight * made.tally.moved + made.tally.lost
        assert lower_bound(asked, proof) == cost
        for _ in range(5):
            price = rng.integers(-2 * proof.weight, 2 * proof.weight, proof.price.size)
            bound = lower_bound(asked, attrs.evolve(proof, price=price))
            assert bound <= cost
            lower += bound < cost
    assert lower > least


def wrong(plan: Plan, target: object = None, **changed: object) -> tuple[str, ...]:
    made = attrs.evolve(plan.certificate, **changed)
    return faults(plan.view, plan.goal, plan.target if target is None else np.asarray(target), made)


def test_a_replica_out_of_bounds_is_seen_though_moved_is_the_bound(plan: Plan) -> None:
    """Test 3: one new replica goes to a fuller broker of the same rack; as many move as the bound says."""
    target = plan.target.copy()
    row = next(r for r in range(12) if 6 in target[r] and 0 not in target[r])
    target[row][target[row] == 6] = 0
    found = wrong(plan, target)
    assert any("outside" in one for one in found), found


def test_every_broken_rule_is_named(plan: Plan) -> None:
    target = plan.target
    assert plan.faults() == ()

    def broken(row: int, *replicas: int) -> str:
        other = target.copy()
        other[row] = -1
        other[row, : len(replicas)] = replicas
        return " / ".join(wrong(plan, other))

    assert "a broker holds two replicas: 1 partition, such as t-3" in broken(3, 0, 0, 2)
    assert "a replica stands on a broker that is removed: 1 partition, such as t-5" in broken(5, 1, 2, 4)
    assert "replicas stand on fewer racks than they can: 1 partition, such as t-0" in broken(0, 2, 3, 4)
    assert "the number of replicas is not that asked: 1 partition, such as t-0" in broken(0, 0, 2)


def test_a_false_certificate_is_seen(plan: Plan) -> None:
    proof, leaders = plan.certificate.replicas, plan.certificate.leaders
    assert proof is not None
    higher = attrs.evolve(proof, price=proof.price + np.arange(7) * proof.weight)
    assert any("the prices prove" in one for one in wrong(plan, replicas=higher))
    looser = attrs.evolve(proof, high=proof.high + 1)
    assert any("neither even" in one for one in wrong(plan, replicas=looser))
    uneven = attrs.evolve(proof, even_high=proof.even_high + 1, high=proof.high + 1)
    assert any("ceiling" in one for one in wrong(plan, replicas=uneven))
    fewer = attrs.evolve(proof, totals=proof.totals - 1)
    assert any("are to be placed" in one for one in wrong(plan, replicas=fewer))
    gentle = attrs.evolve(proof, is_even=False)
    assert any("not those of goal" in one for one in wrong(plan, replicas=gentle))
    assert any("missing" in one for one in wrong(plan, replicas=None))
    lone = attrs.evolve(leaders, low=leaders.low + 1)
    assert any(one.startswith("leaders: ") for one in wrong(plan, leaders=lone))


def test_blocks_that_are_not_the_least_are_seen() -> None:
    """Two even brokers as blocks of 3 and 1: each block's mean is whole, but 3 is not the least the first can hold."""
    view: ClusterView = view_of([[0], [0], [0], [1]], {0: None, 1: None})
    made = make_plan(view, Goal())
    proof = made.certificate.replicas
    assert proof is not None
    load = np.array([3, 1])
    split = attrs.evolve(
        proof, low=load, high=load, even_low=load, even_high=load, block=np.array([0, 1]), totals=np.array([3, 1])
    )
    found = faults(
        view, Goal(), np.array([[0], [0], [0], [1]], dtype=np.int32), attrs.evolve(made.certificate, replicas=split)
    )
    assert any("blocks 0 to 0 can hold 0, not 3" in one for one in found), found


@pytest.mark.parametrize(
    "seeds", [(19, 248, 258), pytest.param(SEEDS, marks=pytest.mark.deep)], ids=["with such blocks", "all"]
)
def test_blocks_that_hold_more_than_they_must_are_seen(seeds: Sequence[int]) -> None:
    """A replica goes from a broker at its ceiling to one at its floor, of a fuller block: every bound is kept."""
    seen = 0
    for seed in seeds:
        made = planned(seed)
        if made is None or made.certificate.replicas is None or not made.goal.is_even:
            continue
        proof, target = made.certificate.replicas, made.target
        held = np.bincount(target[target >= 0], minlength=proof.low.size)
        for full, spare in itertools.product(range(proof.low.size), repeat=2):
            if not (proof.block[full] > proof.block[spare] >= 0) or held[full] == proof.low[full]:
                continue
            rows = np.flatnonzero((target == full).any(axis=1) & ~(target == spare).any(axis=1))
            if held[spare] == proof.high[spare] or not rows.size:
                continue
            other = target.copy()
            other[rows[0]][other[rows[0]] == full] = spare
            found = wrong(made, other)
            assert not any("replicas: broker" in one for one in found), seed
            assert any(one.startswith("replicas: blocks of brokers hold") for one in found), (seed, found)
            seen += 1
    assert seen >= 4


def test_prices_of_one_replica_too_great_to_add_up_prove_nothing(plan: Plan) -> None:
    proof = plan.certificate.replicas
    assert proof is not None
    asked = replica_question(plan.view, plan.goal, Given.read(plan.view, plan.goal))
    alone = attrs.evolve(asked, wanted=np.minimum(asked.wanted, 1))
    assert not adds_up(alone, attrs.evolve(proof, price=np.full_like(proof.price, 1 << 62)))
    assert adds_up(alone, proof)


@pytest.mark.parametrize("factor", [1, 2, 3])
@pytest.mark.parametrize("size", [None, 1000])
def test_prices_add_up_as_long_as_all_replicas_of_a_partition_do(factor: int, size: int | None) -> None:
    """The dearest price at which the sum of a partition's replicas still stays below FAR, and not much less."""
    brokers, weight = np.arange(4), 7
    live = np.ones(4, dtype=np.bool_)
    asked = Question(
        rows=np.array([[-1, -1, -1]], dtype=np.int32),
        wanted=np.array([factor]),
        own=np.zeros((1, 3), dtype=np.bool_),
        stays=np.zeros((1, 3), dtype=np.bool_),
        fresh=np.ones(1, dtype=np.bool_),
        leader=np.array([-1], dtype=np.int32),
        live=live,
        receives=live,
        pool=live,
        rack=brokers,
        base=np.zeros(4, dtype=np.int64),
        topic=np.zeros(1, dtype=np.int32),
        weights=None if size is None else np.array([size]),
    )
    whole = factor * (size or 1)

    def proof(price: int) -> Proof:
        even: dict[str, Any] = {name: np.full(4, factor) for name in ("low", "high", "even_low", "even_high")}
        even["totals"], even["block"] = np.array([whole]), np.zeros(4, dtype=np.int64)
        return Proof(**even, price=np.full(4, price), weight=weight, is_even=False)

    some, none = 1, FAR
    while none - some > 1:
        middle = (some + none) // 2
        some, none = (middle, none) if adds_up(asked, proof(middle)) else (some, middle)
    assert (some + weight) * whole < FAR
    assert (none + weight + 2) * whole >= FAR
    # A new replica costs the weight, of bytes as many times as the partition has; a price as many times, too.
    lead = int(size is None)
    assert asked.least(proof(some).price, fresh=weight, lead=lead) == (weight + some) * whole
