"""Many seeds in one command, on all cores: `python -m tests.replication.simulation [SEEDS] [MINUTES] [KIND] [FIRST]`.

1,000 seeds of 10 simulated minutes from seed 0 on if nothing is said; KIND is swarm, harsh or varied, with +retention
behind it for logs that are cut and compacted. Each seed that breaks is told with the command to repeat it. At the end
come the totals: events, faults, elections, what was lost and whether that is explained, and the coverage: which
transitions, lines of rules, error codes and rare states were reached, and whom each fault struck, measured in one run
of ten. Exit status 1 if anything is broken.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections import Counter

import attrs

from broker.units import MINUTE_MS, DurationMs
from replication.simulation import Simulation, harsh, swarm, varied
from replication.simulation.coverage import Coverage, coverage_lines, run_covered
from replication.simulation.retention import with_retention

PROGRESS_S = 15.0
SHAPES = {"swarm": swarm, "harsh": harsh, "varied": varied}
COVERED_ONE_IN = 10


@attrs.frozen
class Result:
    """What came of one seed; `counts` adds up."""

    seed: int
    broken: str
    counts: Counter[str]
    coverage: Coverage


def one(task: tuple[int, float, str]) -> Result:
    """Run a seed."""
    seed, minutes, kind = task
    began = time.process_time()
    shape, _, kept = kind.partition("+")
    options = SHAPES[shape](seed, DurationMs(int(minutes * MINUTE_MS)))
    simulation = Simulation(with_retention(options) if kept else options)
    if seed % COVERED_ONE_IN:
        outcome = simulation.finish()
        coverage = Coverage(rare=Counter(outcome.rare))
    else:
        outcome, coverage = run_covered(simulation)
    report = outcome.durability
    lost_of_all = report.lost_by_all
    counts = Counter(
        {
            "runs": 1,
            "broken": int(outcome.is_broken),
            "events": outcome.event_count,
            "simulated ms": outcome.simulated_ms,
            "CPU us": int((time.process_time() - began) * 1e6),
            "faults": len(outcome.plan),
            "clean elections": outcome.election_count,
            "unclean elections": outcome.unclean_count,
            "losses of disks and tails": outcome.loss_count,
            "writes acknowledged by all": report.acked_count,
            "of these lost": len(lost_of_all),
            "of these lost for no reason": len(report.lost_for_no_reason),
            "writes acknowledged by one": report.acked_by_one_count,
            "of those lost, which acks=1 allows": len(report.lost_by_one),
        }
    )
    if outcome.retention is not None:
        counts["acknowledged and expired"] = outcome.retention.expired_count
        counts["acknowledged and superseded"] = outcome.retention.superseded_count
    return Result(seed, str(outcome.findings[0]) if outcome.is_broken else "", counts, coverage)


def main(arguments: list[str]) -> int:
    given = [*arguments, *("1000", "10", "swarm", "0")[len(arguments) :]]
    count, minutes, kind, first = int(given[0]), float(given[1]), given[2], int(given[3])
    counts: Counter[str] = Counter()
    coverage = Coverage()
    began = told_at = time.monotonic()
    with multiprocessing.Pool(os.cpu_count()) as pool:
        tasks = [(seed, minutes, kind) for seed in range(first, first + count)]
        for result in pool.imap(one, tasks, chunksize=2):
            counts += result.counts
            coverage += result.coverage
            if result.broken:
                print(f"seed {result.seed}: {result.broken}")
                shape = kind.replace("+", " --")
                print(f"  again: brokerside simulate --{shape} --minutes {minutes:g} --seed {result.seed}", flush=True)
            if time.monotonic() - told_at > PROGRESS_S:
                told_at = time.monotonic()
                print(f"  {counts['runs']} of {count} runs, {told_at - began:.0f} s", flush=True)
    on_line(counts, coverage, time.monotonic() - began)
    return 1 if counts["broken"] else 0


def on_line(counts: Counter[str], coverage: Coverage, wall_s: float) -> None:
    """Print the totals."""
    cpu_s = counts.pop("CPU us") / 1e6
    print(f"{cpu_s:.1f} CPU seconds, {wall_s:.1f} s by the clock, {counts['events'] / cpu_s:,.0f} events a CPU second")
    for what, number in counts.items():
        print(f"{number:>14,}  {what}")
    for line in coverage_lines(coverage):
        print(line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
