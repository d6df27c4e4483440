"""Bounds by cases never say more than is possible, say more than prices alone, and are checked anew."""

from __future__ import annotations

import json

import attrs
import numpy as np
import pytest

from broker.errors import InputError
from placement.formats.certificates import certificate_json, read_certificate
from placement.reassignment.case_bound import least_bytes
from placement.reassignment.case_search import find_cases
from placement.reassignment.certificate import Cases, lower_bound
from placement.reassignment.check import byte_question
from placement.reassignment.goal import Goal, MissingInputError, PlanRefusedError, with_added
from placement.reassignment.notes import notes_of
from placement.reassignment.plan import Plan, make_plan
from tests.oracles.byte_bands import EnumeratedBytes
from tests.placement.reassignment.test_plan import view_of
from tests.placement.reassignment.test_plan_bands import banded, cluster


@pytest.fixture(scope="module")
def plan() -> Plan:
    """A plan that needs 381 moves (by its linear program), whose prices alone leave 2 % unproven."""
    return make_plan(cluster(1, brokers=10, count=500, sigma=2.0, racks=3), Goal(by="bytes", tolerance=0.02))


def test_the_worked_example_holds() -> None:
    view = view_of([[0], [0]], {0: None, 1: None}, size_bytes=[6, 2])
    plan = make_plan(view, Goal(by="bytes", tolerance=0.5))
    assert (plan.tally.moved_bytes, plan.tally.moved_bytes_bound, plan.faults()) == (2, 2, ())


def test_the_largest_partition_proves_what_prices_do_not(plan: Plan) -> None:
    proof = plan.certificate.replicas
    assert proof is not None
    assert proof.cases is not None
    question, copied = byte_question(plan.view, plan.goal), plan.tally.moved_bytes
    assert copied is not None
    assert plan.tally.moved_bytes_gap is not None
    assert lower_bound(question, proof) < 0.985 * copied
    assert plan.tally.moved_bytes_gap < 0.0001
    assert plan.faults() == ()


def test_the_bound_of_other_prices_is_no_more_than_the_plan(plan: Plan) -> None:
    """Any prices are valid: they prove less, or nothing, and never more than a plan that exists."""
    proof, rng = plan.certificate.replicas, np.random.default_rng(1)
    assert proof is not None
    assert proof.cases is not None
    assert plan.tally.moved_bytes is not None
    question = byte_question(plan.view, plan.goal)
    for count in (1, 2, 3, 501):
        for _ in range(5):
            price = proof.cases.price + rng.integers(-2, 3, proof.cases.price.shape)
            found = least_bytes(question, attrs.evolve(proof, cases=Cases(count=count, price=price)))
            assert found <= plan.tally.moved_bytes
    huge = np.full_like(proof.cases.price, 1 << 62)
    assert least_bytes(question, attrs.evolve(proof, cases=Cases(count=1, price=huge))) == lower_bound(question, proof)


def test_cases_never_prove_more_than_brute_force_finds() -> None:
    """All goals, racks, fenced brokers, capacities; as many cases as there are partitions, up to three."""
    raised = tried = 0
    for seed in range(100, 130):
        view, goal, shares = banded(seed)
        try:
            plan = make_plan(view, goal)
        except (MissingInputError, PlanRefusedError):
            continue
        proof, every = plan.certificate.replicas, EnumeratedBytes(with_added(view, goal), goal)
        assert proof is not None
        least = every.least_within(every.bands(shares))
        assert least is not None
        question = byte_question(plan.view, plan.goal)
        free = attrs.evolve(proof, price=np.zeros_like(proof.price), cases=None)
        for one in (attrs.evolve(proof, cases=None), free):
            found = attrs.evolve(one, cases=find_cases(question, one, least))
            bound = least_bytes(question, found)
            assert bound <= least, seed
            raised += bound > lower_bound(question, one)
            tried += 1
    assert tried >= 10
    assert raised >= 3


def test_a_certificate_holds_its_cases(plan: Plan) -> None:
    counts = attrs.asdict(plan.tally)
    text = certificate_json(plan.view, plan.goal, plan.certificate, counts, input_sha256="")
    back = read_certificate(text, source="c").certificate.replicas
    assert back is not None
    assert back.cases is not None
    assert plan.certificate.replicas is not None
    assert plan.certificate.replicas.cases is not None
    assert back.cases.count == plan.certificate.replicas.cases.count
    assert np.array_equal(back.cases.price, plan.certificate.replicas.cases.price)
    value = json.loads(text)
    value["replicas"]["cases"]["price"][0].pop()
    with pytest.raises(InputError, match="prices of cases are not one number for each broker"):
        read_certificate(json.dumps(value), source="c")


def test_what_cannot_be_proven_is_said_with_its_reason(plan: Plan) -> None:
    assert not any("larger than a broker's band" in one for one in notes_of(plan))
    weak = attrs.evolve(plan, tally=attrs.evolve(plan.tally, moved_bytes_gap=0.0197))
    assert [one for one in notes_of(weak) if "larger than a broker's band" in one] == [
        "up to 2.0 % of the copied bytes may be more than needed: 14 partitions are larger than a broker's band is "
        "wide (20.2 GiB), and the bound takes all but the largest for divisible"
    ]
