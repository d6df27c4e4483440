"""Define the command `mirror`: copy one simulated cluster into another and report the result.

Constraints: seed and failures come first, then a line for each state change with its cluster, then the result. Exit
status 0 if nothing is broken, 1 if something is, 2 for wrong usage.
"""

from __future__ import annotations

from typing import Final

import click

from broker.cli import EXIT_REFUSED
from broker.cli_options import minutes_option, seed_option
from broker.units import MINUTE_MS, DurationMs
from broker.wording import counted
from replication.mirror.checks import PROMISES
from replication.mirror.run import MirrorOutcome, run_mirror, with_failures

MINUTES_MAX: Final = 1_000


@click.command()
@seed_option()
@minutes_option(0.1, MINUTES_MAX)
def mirror(seed: int, minutes: float) -> int:
    """Copy one cluster into another as MirrorMaker 2 does, and check the copy.

    A leader dies in each cluster and the mirror dies once; a group fails over
    to the target between two checkpoints and at the end.

    \b
    Example:
      brokerside mirror --seed 7 --minutes 2
    """
    options = with_failures(seed, DurationMs(int(minutes * MINUTE_MS)))
    settings, (death,) = options.settings, options.deaths
    click.echo(
        f"seed {seed}: {settings.source} is copied to {settings.target}; offset.lag.max {settings.offset_lag_max}, "
        f"checkpoints every {settings.checkpoint_ms} ms; the mirror dies at {death.start_ms} ms for {death.duration_ms}"
    )
    outcome = run_mirror(options, click.echo)
    for line in _result_lines(outcome):
        click.echo(line)
    if not outcome.findings:
        return 0
    click.echo(f"again: brokerside mirror --minutes {minutes:g} --seed {seed}")
    return EXIT_REFUSED


def _result_lines(outcome: MirrorOutcome) -> list[str]:
    """Return the result of a run as lines."""
    lines = [
        f"{copy.partition}: {counted(len(copy.source), 'record')}, {len(copy.target):,} on the target, "
        f"{copy.duplicate_count} of them again"
        for copy in outcome.copies
    ]
    lines += [
        f"failover at {failover.at_ms} ms, {failover.partition}: from {failover.upstream} to "
        f"{failover.downstream}, {failover.missed_count} missed, {failover.read_again_count} read again, "
        f"{failover.behind_count} not copied yet"
        for failover in outcome.failovers
    ]
    lines.append(
        f"{counted(outcome.sync_count, 'offset sync')}, {counted(outcome.checkpoint_count, 'checkpoint')}, "
        f"digest {outcome.digest}"
    )
    for finding in outcome.findings:
        promise = f" ({PROMISES[finding.code]})" if finding.code in PROMISES else ""
        lines.append(f"BROKEN: {finding}{promise}")
    return lines if outcome.findings else [*lines, "nothing is broken"]
