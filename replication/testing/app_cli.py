"""Run `brokerside simulate --app`: an application under drawn faults, many seeds side by side.

Source: ours.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import Final

import attrs
import click

from broker.cli import EXIT_REFUSED, printable
from broker.wording import counted
from broker.workers import PROCESS_COST, Advance, in_order
from log.cli.output import progress
from replication.simulation.plan_file import fault_fields, read_plan
from replication.simulation.report import shrunk_lines
from replication.testing.app import NOT_CONNECTED, AppOutcome, AppRun, run_app, running_text, shrunk, spec_of
from replication.testing.cli import verdict_fields
from replication.testing.fault_watch import struck_text

_HASH_SEED: Final = "PYTHONHASHSEED"


def simulate_app(
    app: str, seed: int, seeds: int, minutes: float, plan: Path | None, *, shrinks: bool, as_json: bool
) -> int:
    """Run an application for `seeds` seeds from `seed` on; print the broken ones and the count; return the status.

    The faults are those of the file `plan`, or drawn without it. The status is 0 for an application that runs until its
    minutes are over, as services do, and not 0 for one whose clients never connected.
    """
    _fix_hashes()
    logging.lastResort = logging.NullHandler()  # Clients warn of every broker that is away.
    sys.path.insert(0, os.getcwd())
    faults = None if plan is None else read_plan(plan)
    first = AppRun(app=app, seed=seed, minutes=minutes, spec=spec_of(app), faults=faults)
    command = f"brokerside simulate --app {printable(app)} --minutes {minutes:g}"
    if plan is not None:
        command += f" --plan {printable(str(plan))}"
    asked = [attrs.evolve(first, seed=each) for each in range(seed, seed + seeds)]
    counts = _Counts()
    with progress("Running", seeds, quiet=False, size_min=2) as advance:
        for each, found in zip(
            asked, in_order(_run, asked, cost=lambda _: PROCESS_COST, jobs=None, advance=_nothing), strict=True
        ):
            advance(1)
            counts.add(found)
            is_noted = found.is_broken or found.outcome.durability.lost_by_all or found.is_idle
            if not (as_json or is_noted or seeds == 1):
                continue
            again = f"{command} --seed {each.seed}"
            smallest = shrunk(each, found) if shrinks and found.is_broken else None
            if as_json:
                click.echo(json.dumps(_fields(found) | {"again": again, "shrunk": smallest and _fields(smallest)}))
            else:
                _print(found, again, smallest)
    if not as_json:
        click.echo(counts.line(seeds, minutes))
    return EXIT_REFUSED if counts.broken or counts.idle else 0


@attrs.define
class _Counts:
    """Count the seeds that are broken, lost records, were cut off or idle, and the faults with those that struck."""

    broken: int = 0
    lossy: int = 0
    cut: int = 0
    idle: int = 0
    faults: int = 0
    struck: int = 0

    def add(self, found: AppOutcome) -> None:
        """Count one seed."""
        self.broken += found.is_broken
        self.lossy += bool(found.outcome.durability.lost_by_all)
        self.cut += not found.has_ended
        self.idle += found.is_idle
        self.faults += len(found.plan)
        self.struck += found.struck_count

    def line(self, seeds: int, minutes: float) -> str:
        """Return the counts of `seeds` seeds in one line."""
        rest = f"; in {self.cut} {running_text(minutes)}" if self.cut else ""
        rest += f"; in {self.idle} {NOT_CONNECTED}" if self.idle else ""
        lossy, struck = f"{self.lossy} lost records acknowledged by all", struck_text(self.struck, self.faults)
        return f"{self.broken} of {counted(seeds, 'seed')} broken, {lossy}; {struck}{rest}"


def _run(asked: AppRun, _advance: Advance) -> AppOutcome:
    logging.lastResort = logging.NullHandler()
    return run_app(asked)


def _nothing(_: int) -> None:
    pass


def _print(found: AppOutcome, again: str, smallest: AppOutcome | None) -> None:
    click.echo(f"seed {found.seed}, {struck_text(found.struck_count, len(found.plan))}: {found.line()}")
    click.echo(f"  again: {again}")
    if smallest is not None:
        for line in (*shrunk_lines(smallest.plan, len(found.plan)), smallest.line()):
            click.echo(f"  {line}")


def _fields(found: AppOutcome) -> dict[str, object]:
    return {
        "seed": found.seed,
        **verdict_fields(found.outcome),
        "is_broken": found.is_broken,
        "error": found.error,
        "task_error": found.task_error,
        "ended": found.has_ended,
        "connected": found.has_connected,
        "faults_struck": found.struck_count,
        "plan": [fault_fields(fault) for fault in found.plan],
    }


def _fix_hashes() -> None:
    """Start this command anew with a fixed seed of Python's hashes, by which clients' sets of texts are ordered."""
    if os.environ.get(_HASH_SEED, "random") == "random":
        environment = {**os.environ, _HASH_SEED: "0"}
        os.execve(sys.executable, [sys.executable, "-m", "spark_analysis", *sys.argv[1:]], environment)  # Not a shell.
