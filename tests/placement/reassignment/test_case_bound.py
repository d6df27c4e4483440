"""Bounds by cases never say more than is possible, say more than prices alone, and are checked anew."""

from __future__ import annotations

import json

import attrs
import numpy as np
import pytest

from broker.errors import InputError
from placement.formats.certificates import certificate_json, read_certificate
from placement.reassignment.case_bound import IMPOSSIBLE, PricedCases, ends_of, least_bytes
from placement.reassignment.case_search import find_cases
from placement.reassignment.certificate import lower_bound
from placement.reassignment.check_input import byte_question
from placement.reassignment.goal import Goal, MissingInputError, PlanRefusedError, with_added
from placement.reassignment.notes import notes_of
from placement.reassignment.parts import Parts
from placement.reassignment.plan import Plan, make_plan
from placement.reassignment.planning import Standing, replica_problem
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
    for _ in range(20):
        price = proof.cases.price + rng.integers(-2, 3, proof.cases.price.shape)
        found = least_bytes(question, attrs.evolve(proof, cases=attrs.evolve(proof.cases, price=price)))
        assert found <= plan.tally.moved_bytes
    huge = attrs.evolve(proof.cases, price=np.full_like(proof.cases.price, 1 << 62))
    assert least_bytes(question, attrs.evolve(proof, cases=huge)) == lower_bound(question, proof)


def test_questions_that_leave_cases_out_prove_nothing(plan: Plan) -> None:
    """A tree that lacks an end, has one too many, or names what does not exist bounds no better than prices alone."""
    proof = plan.certificate.replicas
    assert proof is not None
    assert proof.cases is not None
    question, cases = byte_question(plan.view, plan.goal), proof.cases
    plain = lower_bound(question, proof)
    assert least_bytes(question, proof) > plain
    row, broker = cases.row.tolist(), cases.broker.tolist()
    inner = next(place for place, one in enumerate(row) if one >= 0)
    last = next(place for place, one in enumerate(row) if one < 0)
    wrong = [
        (row[:-1], broker[:-1]),
        ([*row, -1], [*broker, 0]),
        ([], []),
        ([500 if place == inner else one for place, one in enumerate(row)], broker),
        (row, [10 if place == inner else one for place, one in enumerate(broker)]),
        (row, [-1 if place == inner else one for place, one in enumerate(broker)]),
        (row, [len(cases.price) if place == last else one for place, one in enumerate(broker)]),
    ]
    for rows, brokers in wrong:
        other = attrs.evolve(cases, row=np.array(rows, dtype=np.int64), broker=np.array(brokers, dtype=np.int64))
        assert ends_of(other, 500, 10) == []
        assert least_bytes(question, attrs.evolve(proof, cases=other)) == plain


def test_each_answer_bounds_the_placements_that_have_it() -> None:
    """Against every placement of small views: with an answer, and with two of the same partition, by random prices."""
    tried = tight = 0
    for seed in range(1, 41):
        view, goal, shares = banded(seed)
        try:
            plan = make_plan(view, goal)
        except (MissingInputError, PlanRefusedError):
            continue
        proof, rng = plan.certificate.replicas, np.random.default_rng(seed)
        assert proof is not None
        question, every = byte_question(plan.view, plan.goal), EnumeratedBytes(with_added(view, goal), goal)
        live = np.flatnonzero(question.live).tolist()
        for row in np.flatnonzero(question.wanted * (question.weights if question.weights is not None else 0)).tolist():
            price = rng.integers(-2, 3, proof.price.size)
            answers = tuple(
                (row, int(broker), bool(rng.integers(2)))
                for broker in rng.choice(live, min(2, len(live)), replace=False)
            )
            bound = PricedCases(question, proof, price).bound(answers)
            named = tuple((one, int(plan.view.broker_ids[broker]), holds) for one, broker, holds in answers)
            least = every.least_within(every.bands(shares), named)
            assert least is None or bound <= least, (seed, row, answers)
            tried += 1
            tight += least is None and bound == IMPOSSIBLE
    assert tried >= 10
    assert tight >= 1


def test_large_partitions_are_decided_by_cases_and_the_plan_is_the_one_of_the_least_case() -> None:
    """Two partitions of 1.1 and 1.3 TB, bands that end at 1.9 TB: 15 % were above the bound; the optimum is 2,476 GB.

    OR-tools with the 30 largest partitions whole and the others divisible: at least 2,475.88 GB (SCIP, 6 nodes).
    """
    plan = make_plan(cluster(0, brokers=10, count=500, sigma=2.5), Goal(by="bytes", tolerance=0.1))
    assert plan.faults() == ()
    assert plan.tally.moved_bytes_bound is not None
    assert plan.tally.moved_bytes_bound == pytest.approx(2475.88e9, rel=1e-5)
    assert plan.tally.moved_bytes_gap is not None
    assert 0 <= plan.tally.moved_bytes_gap < 0.0001


def test_cases_never_prove_more_than_brute_force_finds() -> None:
    """All goals, racks, fenced brokers, capacities; until no large partition stands apart."""
    raised = tried = 0
    for seed in range(100, 160):
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
            problem = replica_problem(plan.view, goal, Standing.of_view(plan.view, goal))
            assert question.weights is not None
            parts = Parts.of(problem, question.weights, question.base, None)
            found = attrs.evolve(one, cases=find_cases(question, one, parts, least).cases)
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
    assert np.array_equal(back.cases.row, plan.certificate.replicas.cases.row)
    assert np.array_equal(back.cases.broker, plan.certificate.replicas.cases.broker)
    assert np.array_equal(back.cases.price, plan.certificate.replicas.cases.price)
    value = json.loads(text)
    short = json.loads(text)
    short["replicas"]["cases"]["row"].pop()
    with pytest.raises(InputError, match=r"cases have \d+ partitions and \d+ brokers; each node has one"):
        read_certificate(json.dumps(short), source="c")
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
