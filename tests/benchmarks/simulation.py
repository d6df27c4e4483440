"""Events a core that the simulation plays: `python -m tests.benchmarks.simulation [ROUNDS] [--json]`.

Three shapes: a quiet cluster whose replicas mostly ask each other for news, a swarm of faults over drawn clusters, and
a busy cluster that writes a hundred records a second; and the swarm again in runs of three minutes. Each with every
check, without what is looked at each second (L15, L16) and after each order (L14), and without checks. CPU time, as the
machine may be shared; medians of the rounds, which go through all shapes in turn so that a slow minute of the machine
touches all alike.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from unittest import mock

import attrs

from broker.units import DurationMs, TimeMs
from replication.checkers import steps
from replication.simulation import Options, draw_plan, quiet, run, swarm
from replication.simulation.cluster import Cluster
from replication.simulation.fault_injection import FaultInjector
from replication.simulation.history import Trace
from replication.simulation.promptness import LagWatch, WriteWatch
from tests.benchmarks.report import describe_machine, show

ROUNDS = 5
SWARM_SEEDS = range(4)


def _of_ten(seconds: int, producers: int, produce_ms: int) -> Options:
    return attrs.evolve(
        quiet(1, DurationMs(seconds * 1_000)),
        brokers=5,
        racks=5,
        partitions=10,
        producers=producers,
        produce_ms=DurationMs(produce_ms),
    )


SHAPES: dict[str, tuple[Options, ...]] = {
    "quiet: 5 brokers, 10 partitions, 4 writes/s": (_of_ten(60, 2, 500),),
    "busy: 5 brokers, 10 partitions, 100 writes/s": (_of_ten(20, 10, 100),),
    "swarm: 3-5 brokers, 1-3 partitions, faults": tuple(swarm(seed, DurationMs(120_000)) for seed in SWARM_SEEDS),
    "swarm of 3 minutes a run": tuple(swarm(seed, DurationMs(180_000)) for seed in range(8)),
}


def checked(options: Options) -> int:
    """Play a run with every check; return its events."""
    outcome = run(options)
    assert not outcome.is_broken, outcome.findings[0]
    return outcome.event_count


def unwatched(options: Options) -> int:
    """Play a run with every check but L14 to L16."""
    with ExitStack() as stack:
        for watch in (LagWatch, WriteWatch):
            stack.enter_context(mock.patch.object(watch, "begin", return_value=None))
        stack.enter_context(mock.patch.object(steps, "ORDERS", frozenset()))
        return checked(options)


def unchecked(options: Options) -> int:
    """Play the same time of the same cluster with nobody looking."""
    cluster = Cluster(options, Trace())
    FaultInjector(cluster, draw_plan(options))
    cluster.begin()
    cluster.run_until(TimeMs(options.duration_ms))
    return cluster.event_count


def rate(play: Callable[[Options], int], all_options: tuple[Options, ...]) -> tuple[int, float]:
    """Return the events and the events a CPU second."""
    gc.collect()
    began = time.process_time()
    event_count = sum(play(options) for options in all_options)
    return event_count, event_count / (time.process_time() - began)


def main(arguments: list[str]) -> int:
    given = [argument for argument in arguments if argument != "--json"]
    rounds = int(given[0]) if given else ROUNDS
    checked(quiet(1, DurationMs(5_000)))  # What is loaded or compiled at first use does not count.
    rates: dict[tuple[str, str], list[float]] = {}
    counts: dict[tuple[str, str], int] = {}
    for _ in range(rounds):
        for shape, all_options in SHAPES.items():
            for name, play in (("checked", checked), ("without L14 to L16", unwatched), ("unchecked", unchecked)):
                counts[shape, name], a_second = rate(play, all_options)
                rates.setdefault((shape, name), []).append(a_second)
    rows = [
        {
            "shape": shape,
            "steps": name,
            "events": counts[shape, name],
            "events/CPU s": round(statistics.median(found)),
            "least": round(min(found)),
            "most": round(max(found)),
            "CPU ms a run": round(1_000 * counts[shape, name] / statistics.median(found) / len(SHAPES[shape])),
        }
        for (shape, name), found in rates.items()
    ]
    title = f"Events of the simulation a core, median of {rounds} rounds"
    show(title, describe_machine("attrs", "sortedcontainers"), rows, as_json="--json" in arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
