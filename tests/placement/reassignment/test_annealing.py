"""Random exchanges keep every rule and all sums, end the same everywhere, and copy fewer bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from placement.reassignment.anneal_kernel import Fresh, anneal, draw, draw_patience
from placement.reassignment.annealing import annealed
from placement.reassignment.band_kernel import Loads, sort_held
from placement.reassignment.goal import Goal
from placement.reassignment.parts import Parts
from placement.reassignment.plan import make_plan
from placement.reassignment.planning import Standing, replica_problem
from placement.reassignment.whole_partitions import (
    Found,
    Near,
    by_size,
    copied_bytes,
    is_new,
    place,
    room_for,
    shape_of,
)
from tests.placement.reassignment.test_plan_bands import cluster


def narrow(seed: int, *, racks: int = 0, count: int = 240) -> tuple[Parts, Found, np.ndarray, np.ndarray]:
    """Bands of 1 %, which few sums of whole partitions keep, and the placement that parts lead to."""
    view = cluster(seed, brokers=12, count=count, racks=racks)
    goal = Goal(by="bytes", tolerance=0.01)
    plan = make_plan(view, goal)
    proof = plan.certificate.replicas
    assert proof is not None
    problem = replica_problem(view, goal, Standing.of_view(view, goal))
    assert view.partitions.size_bytes is not None
    parts = Parts.of(problem, view.partitions.size_bytes, np.zeros(12, dtype=np.int64))
    near = Near.within(parts, proof.low, proof.high)
    return parts, place(near, proof.low, proof.high), proof.low, proof.high


@pytest.mark.parametrize(("seed", "racks"), [(0, 0), (1, 4), (2, 3)])
def test_compiled_steps_are_those_of_the_source_and_keep_rules_and_sums(seed: int, racks: int) -> None:
    parts, found, low, high = narrow(seed, racks=racks)
    shape, _ = shape_of(parts.whole, low, high)
    ends = []
    plain: Any = getattr(anneal, "__wrapped__")  # noqa: B009 - mypy knows no such attribute.
    for run in (anneal, plain):
        now, loads = found.now.copy(), Loads(found.loads.copy(), low, high, parts.sizes)
        held = room_for(now, 12)
        sort_held(now, by_size(parts.whole, parts.sizes), held)
        rows, columns = np.nonzero(is_new(parts.whole, now))
        fresh = Fresh(rows.astype(np.int64), now[rows, columns].astype(np.int64))
        with np.errstate(over="ignore"):
            made = run(shape, now, loads, held, fresh, np.array([5], dtype=np.int64), 3000, 1e8)
        ends.append((made, now, loads.load))
    (made, now, load), (again, same, other) = ends
    assert made == again > 20
    assert np.array_equal(now, same)
    assert np.array_equal(load, other)
    counted = np.zeros(12, dtype=np.int64)
    np.add.at(counted, now, parts.sizes[:, None])
    assert np.array_equal(counted, load)
    for row in now.tolist():
        assert len(set(row)) == 3
        assert not racks or len({broker % racks for broker in row}) == 3


def test_fewer_bytes_are_copied_within_the_bands_or_nothing_changes() -> None:
    gained = 0
    for seed in range(4):
        parts, found, low, high = narrow(seed)
        better = annealed(parts, found, low, high)
        assert (better.outside(low, high), better.copied) <= (found.outside(low, high), found.copied)
        assert better.copied == copied_bytes(parts.whole, better.now, parts.sizes)
        gained += better.copied < found.copied
    assert gained >= 2


def test_draws_are_even_and_patience_has_mean_one() -> None:
    seed = np.array([3], dtype=np.int64)
    with np.errstate(over="ignore"):
        drawn = np.bincount([draw(seed, 8) for _ in range(8000)], minlength=8)
        waits = np.array([draw_patience(seed) for _ in range(8000)])
    assert drawn.size == 8
    assert np.all(np.abs(drawn - 1000) < 150)
    assert 0.95 < waits.mean() < 1.1
    assert 0.10 < np.mean(waits > 2) < 0.17  # exp(-2) is 0.135.


@pytest.mark.parametrize(
    ("brokers", "count", "sigma", "racks", "tolerance"), [(80, 800, 0.81, 0, 0.0013), (100, 1000, 1.01, 5, 0.007)]
)
def test_thirty_replicas_a_broker_and_narrow_bands_leave_no_more_than_a_hundredth(
    brokers: int, count: int, sigma: float, racks: int, tolerance: float
) -> None:
    """Exchanges of two were stuck at 4.8 and 1.8 % above the bound: most brokers gave and received."""
    seed = 35 if brokers == 80 else 14
    view = cluster(seed, brokers=brokers, count=count, sigma=sigma, racks=racks)
    plan = make_plan(view, Goal(by="bytes", tolerance=tolerance))
    assert plan.faults() == ()
    assert plan.tally.moved >= 200
    assert plan.tally.moved_bytes_gap is not None
    assert 0 <= plan.tally.moved_bytes_gap <= 0.01
