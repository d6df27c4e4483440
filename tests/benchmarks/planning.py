"""How few replicas or bytes a plan moves, how near its bound, and how fast: eleven cases beside Kafka's own plan.

    python -m tests.benchmarks.planning [--large] [--tolerance PERCENT] [--json]

What it measures: for each case the replicas that our plan moves and the bound that its prices prove, or with
--tolerance the bytes that a plan by bytes copies and the part above its bound, sizes lognormal (sigma 1, median
485 MB); CPU seconds of the plan and of the independent check, and the greatest resident memory so far. 100 brokers with
100,000 partitions, with --large 1,000 with a million; factor 3 everywhere. Beside it, in replicas moved, `--generate`
of kafka-reassign-partitions, which places every topic anew (our classic placer, AdminUtils).

Left out: compilation, which a small plan takes away before.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from typing import Final

import attrs
import numpy as np
from numpy.random import Generator

from broker.cluster import BrokerView, ClusterView, Int32Array, PartitionTable, TopicView
from broker.entropy import JavaRandom
from broker.ids import BrokerId
from placement.placers.classic import ClassicPlacer
from placement.planning.goal import Goal
from placement.planning.plan import Plan, make_plan
from placement.spec import PlacementSpec
from tests.benchmarks.report import describe_machine, show

FACTOR: Final = 3
TOPIC_SIZE: Final = 1_000


@attrs.frozen(kw_only=True, eq=False)
class Case:
    """Rows of positions, each position's rack (None for none), and the goal."""

    rows: Int32Array
    racks: tuple[str | None, ...]
    goal: Goal = attrs.field(factory=Goal)

    def view(self) -> ClusterView:
        count = self.rows.shape[0]
        return ClusterView.build(
            name="c",
            source="made",
            format="made",
            brokers=[BrokerView(id=BrokerId(number), rack=rack) for number, rack in enumerate(self.racks)],
            topics=tuple(TopicView(f"t{number}") for number in range(-(-count // TOPIC_SIZE))),
            partitions=PartitionTable(
                topic_index=np.arange(count) // TOPIC_SIZE,
                partition_ids=np.arange(count) % TOPIC_SIZE,
                replicas=self.rows,
            ),
        )


def striped(count: int, brokers: int) -> Int32Array:
    """Rows as even as they can be: shifted anew in each round over the brokers."""
    row = np.arange(count)[:, None]
    shift = 1 + row // brokers % (brokers // FACTOR)
    rows: Int32Array = ((row + np.arange(FACTOR) * shift) % brokers).astype(np.int32)
    return rows


def drawn(count: int, weights: np.ndarray, rng: Generator, factor: int = FACTOR) -> Int32Array:
    """Rows of distinct brokers, drawn by weight."""
    edges = np.cumsum(weights / weights.sum())
    rows: Int32Array = np.searchsorted(edges, rng.random((count, factor)) * edges[-1] * (1 - 1e-12)).astype(np.int32)
    while True:
        ordered = np.sort(rows, axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if not twice.any():
            return rows
        rows[twice] = np.searchsorted(edges, rng.random((int(twice.sum()), factor)) * edges[-1] * (1 - 1e-12))


def one_each(count: int, racks: list[np.ndarray], rng: Generator) -> Int32Array:
    """Rows with one broker of each of three racks drawn for it."""
    chosen = np.argsort(rng.random((count, len(racks))), axis=1)[:, :FACTOR]
    picks = np.stack([rng.choice(rack, (count, FACTOR)) for rack in racks])
    return picks[chosen, np.arange(count)[:, None], np.arange(FACTOR)].astype(np.int32)


def named(numbers: np.ndarray) -> tuple[str | None, ...]:
    return tuple(f"rack-{number}" for number in numbers.tolist())


def cases(brokers: int, count: int) -> dict[str, Callable[[], Case]]:
    """The eleven cases, made when they are asked for."""
    every = np.arange(brokers)
    bare: tuple[str | None, ...] = (None,) * brokers
    skew = np.linspace(0.5, 1.5, brokers)
    new = tuple((BrokerId(brokers + n), None) for n in range(10))

    def rng() -> Generator:
        return np.random.default_rng(7)

    def grown() -> Case:
        racks = every % 3
        racks[brokers - brokers // 10 :] = 0
        old = every[: brokers - brokers // 10]
        return Case(rows=one_each(count, [old[old % 3 == r] for r in range(3)], rng()), racks=named(racks))

    def fourth() -> Case:
        racks = every * 4 // brokers
        return Case(rows=one_each(count, [every[racks == r] for r in range(3)], rng()), racks=named(racks))

    def lost() -> Case:
        rows = one_each(count, [every[every % 5 == r] for r in range(5)], rng())
        gone = tuple(BrokerId(int(n)) for n in every[every % 5 == 4])
        return Case(rows=rows, racks=named(every % 5), goal=Goal(remove=gone))

    def uneven(*shares: float) -> Case:
        racks = np.searchsorted(np.cumsum(shares)[:-1], every / brokers, side="right")
        return Case(rows=drawn(count, np.ones(brokers) if len(shares) == 3 else skew, rng()), racks=named(racks))

    return {
        "add 10": lambda: Case(rows=striped(count, brokers), racks=bare, goal=Goal(kind="add", add=new)),
        "remove 5": lambda: Case(
            rows=striped(count, brokers), racks=bare, goal=Goal(remove=tuple(map(BrokerId, range(5))))
        ),
        "random start": lambda: Case(rows=drawn(count, np.ones(brokers), rng()), racks=bare),
        "uneven start": lambda: Case(rows=drawn(count, skew, rng()), racks=bare),
        "fix rack violations": lambda: Case(rows=drawn(count, np.ones(brokers), rng()), racks=named(every % 5)),
        "3 racks, one grows": grown,
        "fourth rack added": fourth,
        "rack lost": lost,
        "factor 2 -> 3, skewed": lambda: Case(
            rows=drawn(count, skew, rng(), 2), racks=named(every % 5), goal=Goal(kind="factor", factor=3)
        ),
        "3 uneven racks, rule never kept": lambda: uneven(0.5, 0.3, 0.2),
        "4 uneven racks, rule never kept": lambda: uneven(0.4, 0.3, 0.2, 0.1),
    }


def generated(plan: Plan) -> int:
    """Replicas that --generate moves: each topic placed anew on the brokers that stay."""
    view, entropy = plan.view, JavaRandom(1)
    brokers = [one for one in view.brokers if one.id not in plan.goal.remove]
    factor = plan.goal.factor or FACTOR
    moved = 0
    for start in range(0, view.partitions.count, TOPIC_SIZE):
        before = view.partitions.replicas[start : start + TOPIC_SIZE]
        spec = PlacementSpec(start_partition=0, partition_count=before.shape[0], replication_factor=factor)
        rows = ClassicPlacer().place(spec, brokers, entropy)
        moved += int((~(rows[:, :, None] == before[:, None, :]).any(axis=2)).sum())
    return moved


def sized(view: ClusterView) -> ClusterView:
    """The view with sizes drawn."""
    sizes = np.random.default_rng(3).lognormal(20, 1, view.partitions.count).astype(np.int64)
    return attrs.evolve(view, partitions=attrs.evolve(view.partitions, size_bytes=sizes), totals=None)


def measure(name: str, case: Case, tolerance: float | None) -> dict[str, object]:
    """One row of the table: of a plan by replicas, or by bytes within a tolerance."""
    view, goal = case.view(), case.goal
    if tolerance is not None:
        view, goal = sized(view), attrs.evolve(goal, by="bytes", tolerance=tolerance)
    start = time.process_time()
    plan = make_plan(view, goal)
    planned = time.process_time()
    wrong, found = plan.faults(), plan.tally
    checked = time.process_time()
    if wrong or (tolerance is None and not found.is_least):
        print(f"{name}: {wrong or found}", file=sys.stderr)
    row: dict[str, object] = {"case": name, "moved": found.moved}
    if tolerance is None:
        row |= {"bound": found.moved_bound, "--generate": generated(plan)}
        row |= {"leaders": found.leader_changes, "at least": found.leader_changes_least}
    else:
        row |= {"copied GB": round((found.moved_bytes or 0) / 1e9)}
        row |= {"gap %": round(100 * (found.moved_bytes_gap or 0), 4)}
    return row | {
        "plan s": round(planned - start, 2),
        "check s": round(checked - planned, 2),
        "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.planning", description="Measure plans.")
    parser.add_argument("--large", action="store_true", help="1,000 brokers and a million partitions")
    parser.add_argument("--tolerance", type=float, metavar="PERCENT", help="plan by bytes, within so many per cent")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    options = parser.parse_args()
    brokers, count = (1_000, 1_000_000) if options.large else (100, 100_000)
    tolerance = None if options.tolerance is None else options.tolerance / 100
    for name, small in cases(30, 300).items():  # Compiles every kernel.
        measure(name, small(), None if tolerance is None else 0.5)
    rows = [measure(name, make(), tolerance) for name, make in cases(brokers, count).items()]
    title = f"{count:,} partitions, factor {FACTOR}, {brokers:,} brokers"
    show(title, describe_machine("numpy", "numba"), rows, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
