"""Many seeds in one command, on all cores: `python -m tests.replication.simulation [SEEDS] [MINUTES] [KIND]`.

1,000 seeds of 10 simulated minutes if nothing is said. Each seed that breaks is told with the command to repeat it;
at the end come the events, the CPU seconds of all processes and events a CPU second.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time

from broker.units import MINUTE_MS, DurationMs
from replication.simulation import harsh, run, swarm


def one(task: tuple[int, float, str]) -> tuple[int, int, float, str]:
    """Run a seed; return it with its events, CPU seconds and first finding, "" for none."""
    seed, minutes, kind = task
    began = time.process_time()
    outcome = run((harsh if kind == "harsh" else swarm)(seed, DurationMs(int(minutes * MINUTE_MS))))
    told = "" if outcome.is_clean else str(outcome.findings[0])
    return seed, outcome.event_count, time.process_time() - began, told


def main(arguments: list[str]) -> int:
    given = [*arguments, *("1000", "10", "swarm")[len(arguments) :]]
    count, minutes, kind = int(given[0]), float(given[1]), given[2]
    event_count = broken = 0
    cpu_s = 0.0
    with multiprocessing.Pool(os.cpu_count()) as pool:
        tasks = [(seed, minutes, kind) for seed in range(count)]
        for seed, events, seconds, told in pool.imap(one, tasks, chunksize=4):
            event_count += events
            cpu_s += seconds
            if told:
                broken += 1
                print(f"seed {seed}: {told}\n  again: brokerside simulate --{kind} --minutes {minutes:g} --seed {seed}")
    print(f"{count} runs of {minutes:g} minutes, {event_count:,} events, {broken} broken")
    print(f"{cpu_s:.1f} CPU seconds, {event_count / cpu_s:,.0f} events a CPU second")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
