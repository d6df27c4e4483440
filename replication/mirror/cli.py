"""Define the command `mirror`: copy one simulated cluster into another under faults and report the result.

Source: ours; click.
"""

from __future__ import annotations

from typing import Final

import click

from broker.cli import EXIT_REFUSED
from broker.cli_options import check_seeds, idle_beside, minutes_option, seed_option, seeds_option, shape_options
from broker.units import MINUTE_MS, DurationMs
from broker.wording import counted
from replication.mirror.checks import PROMISES
from replication.mirror.options import MirrorOptions, quiet_mirror, swarm_mirror
from replication.mirror.outcome import MirrorOutcome
from replication.mirror.run import run_mirror
from replication.mirror.scenarios import SCENARIOS, differences, find_scenario
from replication.simulation.options_text import options_lines

_KINDS: Final = {"quiet": quiet_mirror, "swarm": swarm_mirror}
MINUTES_MAX: Final = 1_000


@click.command()
@idle_beside("--list")
@idle_beside("--scenario")
@seed_option()
@shape_options({"swarm": "Draw clusters and faults from the seed (the default).", "quiet": "Run without faults."})
@minutes_option(0.1, MINUTES_MAX)
@seeds_option()
@click.option("--scenario", metavar="NAME", help="Run the scenario NAME step by step.")
@click.option("--list", "is_list", is_flag=True, help="List the scenarios and exit.")
def mirror(seed: int, kind: str, minutes: float, seeds: int, scenario: str | None, *, is_list: bool) -> int:
    """Copy one cluster into another as MirrorMaker 2 does, and check the copy.

    \b
    Examples:
      brokerside mirror --seed 7 --minutes 2
      brokerside mirror --seeds 50
      brokerside mirror --scenario M02
    """
    if is_list:
        for each in SCENARIOS:
            click.echo(f"{each.name}  {each.title}")
        return 0
    if scenario is not None:
        return _print_scenario(scenario)
    check_seeds(seed, seeds)
    duration_ms = DurationMs(int(minutes * MINUTE_MS))
    if seeds > 1:
        return _many(kind, range(seed, seed + seeds), duration_ms, minutes)
    options = _KINDS[kind](seed, duration_ms)
    for line in mirror_lines(options):
        click.echo(line)
    outcome = run_mirror(options, click.echo)
    for line in verdict_lines(outcome):
        click.echo(line)
    if outcome.is_clean:
        return 0
    click.echo(f"again: brokerside mirror --{kind} --minutes {minutes:g} --seed {seed}")
    return EXIT_REFUSED


def mirror_lines(options: MirrorOptions) -> list[str]:
    """Return the options of a run as lines, the seed first."""
    settings = options.settings
    deaths = ", ".join(f"at {each.at_ms} ms for {each.for_ms}" for each in options.deaths) or "never"
    return [
        f"seed {options.seed}: {settings.source} is copied to {settings.target}",
        f"offset.lag.max {settings.offset_lag_max}, offsets committed every {settings.commit_ms} ms, checkpoints every "
        f"{settings.checkpoint_ms} ms; the mirror dies {deaths}",
        *(f"source: {line}" for line in options_lines(options.source)),
        *(f"target: {line}" for line in options_lines(options.target)),
    ]


def verdict_lines(outcome: MirrorOutcome) -> list[str]:
    """Return the result of a run as lines; the last one is the verdict."""
    lines = []
    for copy in outcome.copies:
        unsound = "" if copy.is_sound else "; not judged: an unclean election lost records"
        lines.append(
            f"{copy.partition}: {counted(len(copy.source), 'record')}, {len(copy.target):,} on the target, "
            f"{copy.duplicate_count} of them again{unsound}"
        )
    for failover in outcome.failovers:
        lines.append(
            f"failover at {failover.at_ms} ms, {failover.partition}: from {failover.upstream} to "
            f"{failover.downstream}, {failover.missed_count} missed, {failover.read_again_count} read again, "
            f"{failover.behind_count} not copied yet"
        )
    lines.append(
        f"{counted(outcome.sync_count, 'offset sync')}, {counted(outcome.checkpoint_count, 'checkpoint')}, "
        f"digest {outcome.digest}"
    )
    for finding in outcome.findings:
        promise = f" ({PROMISES[finding.code]})" if finding.code in PROMISES else ""
        lines.append(f"BROKEN: {finding}{promise}")
    return lines if outcome.findings else [*lines, "nothing is broken"]


def _print_scenario(name: str) -> int:
    scenario = find_scenario(name)
    click.echo(f"{scenario.name}: {scenario.title}\n{scenario.how}\n")
    outcome = run_mirror(scenario.options, click.echo)
    for line in verdict_lines(outcome):
        click.echo(line)
    different = differences(scenario, outcome)
    for line in different:
        click.echo(f"NOT AS EXPECTED: {line}")
    if not different:
        click.echo("as expected")
    return EXIT_REFUSED if different else 0


def _many(kind: str, seeds: range, duration_ms: DurationMs, minutes: float) -> int:
    broken = copied = again = 0
    for seed in seeds:
        outcome = run_mirror(_KINDS[kind](seed, duration_ms))
        copied += sum(len(copy.source) for copy in outcome.copies)
        again += sum(copy.duplicate_count for copy in outcome.copies)
        if not outcome.is_clean:
            broken += 1
            click.echo(f"seed {seed}: {outcome.findings[0]}")
            click.echo(f"  again: brokerside mirror --{kind} --minutes {minutes:g} --seed {seed}")
    click.echo(
        f"{counted(len(seeds), 'run')}, {counted(copied, 'record')} copied, {again:,} of them again, {broken} broken"
    )
    return EXIT_REFUSED if broken else 0
