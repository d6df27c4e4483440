"""Many seeds on all cores: `python -m tests.replication.simulation [SEEDS] [MINUTES] [KIND] [FIRST]`.

1,000 seeds of 10 simulated minutes from seed 0 on by default; KIND is swarm, harsh or varied, with +retention behind it
for logs that are cut and compacted. Each seed that breaks is printed with the command to repeat it, and at the end the
coverage of one run in ten. Exit status 1 if anything is broken.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor

from broker.units import MINUTE_MS, DurationMs
from replication.simulation import Simulation, harsh, swarm, varied
from replication.simulation.retention import with_retention
from tests.replication.simulation.coverage import Coverage, coverage_lines, run_covered

SHAPES = {"swarm": swarm, "harsh": harsh, "varied": varied}
COVERED_ONE_IN = 10


def one(seed: int, minutes: float, kind: str) -> tuple[str, int, Coverage]:
    """Run a seed; return what is broken, "" if nothing, the number of events and the coverage."""
    shape, _, kept = kind.partition("+")
    options = SHAPES[shape](seed, DurationMs(int(minutes * MINUTE_MS)))
    simulation = Simulation(with_retention(options) if kept else options)
    coverage = Coverage()
    if seed % COVERED_ONE_IN:
        outcome = simulation.finish()
        coverage.rare.update(outcome.rare)
    else:
        outcome = run_covered(simulation, coverage)
    return str(outcome.findings[0]) if outcome.is_broken else "", outcome.event_count, coverage


def main(arguments: list[str]) -> int:
    given = [*arguments, *("1000", "10", "swarm", "0")[len(arguments) :]]
    count, minutes, kind, first = int(given[0]), float(given[1]), given[2], int(given[3])
    coverage, broken, event_count = Coverage(), 0, 0
    seeds = range(first, first + count)
    with ProcessPoolExecutor() as pool:
        results = pool.map(one, seeds, [minutes] * count, [kind] * count, chunksize=2)
        for seed, (what, events, covered) in zip(seeds, results, strict=True):
            coverage += covered
            event_count += events
            broken += bool(what)
            if what:
                shape = kind.replace("+", " --")
                print(f"seed {seed}: {what}")
                print(f"  again: brokerside simulate --{shape} --minutes {minutes:g} --seed {seed}", flush=True)
    print(f"{count:,} runs, {event_count:,} events, {broken} broken")
    for line in coverage_lines(coverage):
        print(line)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
