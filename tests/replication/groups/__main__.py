"""Many seeds with groups at once: `python -m tests.replication.groups [SEEDS] [MINUTES] [KIND] [GROUPS] [FIRST]`.

100 seeds of 5 simulated minutes with 3 groups each if nothing is said. Each seed that breaks is told with the command
to repeat it; at the end come what the groups did in all, and the CPU seconds of all processes.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections import Counter

import attrs

from broker.error_codes import ErrorCode
from broker.units import MINUTE_MS, DurationMs
from replication.groups import GroupsExtension, with_groups
from replication.simulation import harsh, run, swarm


@attrs.frozen
class Seed:
    """What came of one seed."""

    number: int
    event_count: int
    cpu_s: float
    finding: str
    read_count: int
    duplicate_count: int
    rebalance_count: int
    load_count: int
    commits: dict[ErrorCode, int]


def one(task: tuple[int, float, str, int]) -> Seed:
    """Run a seed."""
    number, minutes, kind, groups = task
    began = time.process_time()
    options = with_groups((harsh if kind == "harsh" else swarm)(number, DurationMs(int(minutes * MINUTE_MS))))
    life = GroupsExtension.drawn(options, groups)
    outcome = run(options, extension=life)
    counts = life.counts
    return Seed(
        number,
        outcome.event_count,
        time.process_time() - began,
        str(outcome.findings[0]) if outcome.is_broken else "",
        counts.read_count,
        counts.duplicate_count,
        counts.rebalance_count,
        counts.load_count,
        dict(counts.commits),
    )


def main(arguments: list[str]) -> int:
    given = [*arguments, *("100", "5", "swarm", "3", "0")[len(arguments) :]]
    count, minutes, kind, groups, first = int(given[0]), float(given[1]), given[2], int(given[3]), int(given[4])
    done: list[Seed] = []
    commits: Counter[ErrorCode] = Counter()
    with multiprocessing.Pool(os.cpu_count()) as pool:
        tasks = [(number, minutes, kind, groups) for number in range(first, first + count)]
        for seed in pool.imap(one, tasks):
            done.append(seed)
            commits.update(seed.commits)
            if seed.finding:
                print(
                    f"seed {seed.number}: {seed.finding}\n  again: brokerside simulate --{kind} --minutes {minutes:g} "
                    f"--groups {groups} --seed {seed.number}",
                    flush=True,
                )
    broken = sum(bool(seed.finding) for seed in done)
    events, cpu_s = sum(seed.event_count for seed in done), sum(seed.cpu_s for seed in done)
    print(f"{count} runs of {minutes:g} minutes with {groups} groups, {events:,} events, {broken} broken")
    print(
        f"{sum(seed.read_count for seed in done):,} records handed out, "
        f"{sum(seed.duplicate_count for seed in done):,} of them again; "
        f"{sum(seed.rebalance_count for seed in done):,} rebalances; "
        f"coordinators began {sum(seed.load_count for seed in done):,} times"
    )
    print("commits: " + ", ".join(f"{error.name} {number:,}" for error, number in sorted(commits.items())))
    print(f"{cpu_s:.1f} CPU seconds, {events / cpu_s:,.0f} events a CPU second")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
