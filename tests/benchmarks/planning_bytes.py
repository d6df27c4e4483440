"""How few bytes plans by bytes copy, how near the bound, and how fast: the eleven cases of `planning` with sizes.

    python -m tests.benchmarks.planning_bytes [--large] [--case NAME]... [--target counts|5|1]... [--json]

What it measures: for each case and target (even counts, or bytes within 5 or 1 %) the bytes that the plan copies, the
part of them above the proven bound, replicas moved, CPU seconds of the plan and of the independent check, and the
greatest resident memory so far. 100 brokers with 100,000 partitions, with --large 1,000 with a million; factor 3
everywhere, sizes lognormal (sigma 1, median 485 MB). "more" is what the plan that moves the fewest replicas would copy
beside it, for even counts.

Left out: compilation, which a small plan takes away before.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from typing import Final

import attrs
import numpy as np

from broker.cluster import ClusterView
from placement.planning.plan import make_plan
from tests.benchmarks.planning import Case, cases
from tests.benchmarks.report import describe_machine, show

TARGETS: Final = {"counts": None, "5": 0.05, "1": 0.01}


def sized(view: ClusterView) -> ClusterView:
    """The view with sizes drawn."""
    sizes = np.random.default_rng(3).lognormal(20, 1, view.partitions.count).astype(np.int64)
    return attrs.evolve(view, partitions=attrs.evolve(view.partitions, size_bytes=sizes), totals=None)


def measure(name: str, case: Case, target: str) -> dict[str, object]:
    """One row of the table."""
    view = sized(case.view())
    goal = attrs.evolve(case.goal, by="bytes", tolerance=TARGETS[target])
    start = time.process_time()
    plan = make_plan(view, goal)
    planned = time.process_time()
    wrong = plan.faults()
    checked = time.process_time()
    found = plan.tally
    if wrong:
        print(f"{name}: {wrong}", file=sys.stderr)
    row: dict[str, object] = {
        "case": name,
        "target": target,
        "copied GB": round((found.moved_bytes or 0) / 1e9),
        "gap %": round(100 * (found.moved_bytes_gap or 0), 4),
        "moved": found.moved,
        "plan s": round(planned - start, 2),
        "check s": round(checked - planned, 2),
        "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    if target == "counts":
        moved = make_plan(view, case.goal).reassignment
        copied = int((moved.copy_bytes * moved.added.sum(axis=1)).sum())
        row["more"] = f"{copied / max(found.moved_bytes or 0, 1):.2f}x"
    return row


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.planning_bytes", description="Measure plans.")
    parser.add_argument("--large", action="store_true", help="1,000 brokers and a million partitions")
    parser.add_argument("--case", action="append", help="one of the cases; may be repeated")
    parser.add_argument("--target", action="append", choices=tuple(TARGETS), help="what becomes even; may be repeated")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    options = parser.parse_args()
    brokers, count = (1_000, 1_000_000) if options.large else (100, 100_000)
    targets = options.target or list(TARGETS)
    for small in cases(30, 300).values():  # Compiles every kernel.
        for target in targets:
            tolerance = None if TARGETS[target] is None else 0.5
            make_plan(sized(small().view()), attrs.evolve(small().goal, by="bytes", tolerance=tolerance)).faults()
    rows = [
        measure(name, make(), target)
        for name, make in cases(brokers, count).items()
        if options.case is None or name in options.case
        for target in targets
    ]
    title = f"{count:,} partitions, factor 3, {brokers:,} brokers"
    show(title, describe_machine("numpy", "numba"), rows, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
