"""Shrink the plan of a failing run to the fewest faults that still break the same invariant.

Options and seed stay the same; each try is a whole run, at most `tries_max` of them.

Source: Zeller, Hildebrandt: Simplifying and Isolating Failure-Inducing Input (2002), the ddmin algorithm.
"""

from __future__ import annotations

from collections.abc import Callable

from replication.simulation.faults import Fault
from replication.simulation.run import Outcome

TRIES_MAX = 200

Runner = Callable[[tuple[Fault, ...]], Outcome]


def shrink(outcome: Outcome, again: Runner, tries_max: int = TRIES_MAX) -> Outcome:
    """Return the outcome of the smallest plan found that breaks the same invariants; `again` runs a plan."""
    assert outcome.is_broken, outcome.options.seed
    codes = {finding.code for finding in outcome.findings}
    best, part_count, tries = outcome, 2, 0
    while len(best.plan) > 0 and tries < tries_max:
        plan = best.plan
        size = max(1, len(plan) // part_count)
        for start in range(0, len(plan), size):
            tries += 1
            tried = again(plan[:start] + plan[start + size :])
            if any(finding.code in codes for finding in tried.findings):
                best, part_count = tried, max(2, part_count - 1)
                break
            if tries >= tries_max:
                break
        else:
            if size == 1:
                break
            part_count = min(len(plan), 2 * part_count)
    return best
