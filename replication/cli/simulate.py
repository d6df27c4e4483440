"""Define the command `simulate`: run a cluster under faults from a seed and report what happens."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import attrs
import click

from broker.cli import EXIT_REFUSED, printable
from broker.cli_options import (
    check_seeds,
    idle_beside,
    idle_without,
    minutes_option,
    printing_option,
    seed_option,
    seeds_option,
    shape_options,
)
from broker.errors import UsageError
from broker.machines import FORMS
from broker.releases import NEWEST, Release
from broker.units import MINUTE_MS, DurationMs
from broker.wording import counted
from log.cli.output import progress
from placement.placers.registry import load_placer
from placement.spec import ReplicaPlacer
from replication.checkers import INVARIANTS, loss_lines
from replication.cli.retention import RetentionChoice, retention_choices
from replication.groups import GROUP_INVARIANTS, GroupsExtension, with_groups
from replication.groups.plan import GROUP_COUNT_MAX
from replication.roles.states import Machine, find_machines
from replication.rules.switches import rules_of, sound, without
from replication.simulation.fault import Fault, fault_lines
from replication.simulation.faults import draw_plan
from replication.simulation.options import MINUTES_MAX, FaultKind, Options, harsh, quiet, swarm
from replication.simulation.plan_file import read_plan
from replication.simulation.policies import placed
from replication.simulation.report import lacking_line, lacking_rules, options_lines, shrink, shrunk_lines, verdict_line
from replication.simulation.run import Outcome, run
from replication.simulation.tally import Tally, outcome_fields
from replication.simulation.varied import varied

_KINDS: Final = {"quiet": quiet, "swarm": swarm, "harsh": harsh, "varied": varied}
_RELEASES: Final = {False: NEWEST.name, True: "3.5"}


@click.command()
@idle_beside("--diagram", but=("--format",))
@idle_without("--diagram", "--format")
@idle_beside("--app", but=("--seed", "--seeds", "--minutes", "--plan", "--json", "--shrink"))
@seed_option()
@shape_options(
    {
        "swarm": "Draw options and faults from the seed (the default).",
        "quiet": "Run without faults.",
        "harsh": "Run with every kind of fault of processes and networks, often.",
        "varied": "Draw settings, disks, splits and controllers from the seed, too.",
    }
)
@minutes_option(0.01, MINUTES_MAX)
@seeds_option()
@click.option(
    "--kafka",
    "--rules",
    "release",
    metavar="RELEASE",
    help=f"Kafka release whose rules apply, 0.10.2 to {NEWEST} (default {NEWEST}; 3.5 with --zookeeper).",
)
@click.option("--without", "left_out", metavar="RULE", multiple=True, help="Switch a rule off; may be repeated.")
@click.option(
    "--placer",
    metavar="NAME",
    help="Placement policy of the partitions: striped, classic, the name of an installed one, or module:Class.",
)
@click.option("--zookeeper", "has_zookeeper", is_flag=True, help="Let a broker be the controller, as before KRaft.")
@click.option(
    "--groups",
    type=click.IntRange(0, GROUP_COUNT_MAX),
    default=0,
    metavar="COUNT",
    help="Run COUNT consumer groups, drawn from the seed (default 0).",
)
@retention_choices
@click.option(
    "--plan",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Run the faults of a JSON file, as --shrink prints it, in the place of those drawn; see --fault-kinds.",
)
@printing_option("--fault-kinds", lambda: fault_lines(FaultKind.__members__), "Print the kinds of faults and exit.")
@click.option(
    "--app",
    metavar="MODULE:MAIN",
    help="Run `async def main(kafka)` of an asyncio program on virtual time, under drawn faults.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as one JSON object instead of lines.")
@click.option("--shrink", "shrinks", is_flag=True, help="Find the fewest faults that still break a broken run.")
@click.option(
    "--diagram",
    is_flag=False,
    flag_value="all",
    metavar="[NAME]",
    help="Print the state machine NAME, or all of the simulation's, and exit.",
)
@click.option("--format", "form", type=click.Choice(FORMS), default="text", help="Format of --diagram (default text).")
def simulate(
    seed: int,
    kind: str,
    minutes: float,
    seeds: int,
    release: str | None,
    left_out: tuple[str, ...],
    groups: int,
    choice: RetentionChoice,
    placer: str | None,
    diagram: str | None,
    form: str,
    plan: Path | None,
    app: str | None,
    *,
    as_json: bool,
    has_zookeeper: bool,
    shrinks: bool,
) -> int:
    """Run a cluster on a virtual clock under faults and check the invariants at every step.

    Runs are strict: fewer than min.insync.replicas brokers lose records at one
    time. An election that the settings allow, as of the last known leader
    (KIP-966), may still lose records that all in sync had acknowledged: the
    verdict then says so and names the election; it is no broken invariant.

    \b
    Examples:
      brokerside simulate --swarm --seed 7 --minutes 10
      brokerside simulate --harsh --seeds 100
      brokerside simulate --varied --seeds 100
      brokerside simulate --groups 3 --minutes 5
      brokerside simulate --retention --minutes 10
      brokerside simulate --quiet --compact --retention-ms 20000 --reset earliest
      brokerside simulate --zookeeper --kafka 2.8 --seed 18
      brokerside simulate --seed 3 --without strict_min_isr --shrink
      brokerside simulate --seed 3 --without strict_min_isr --plan plan.json
      brokerside simulate --app my_service:main --seeds 100 --minutes 10
      brokerside simulate --app my_service:main --seed 17 --plan plan.json
      brokerside simulate --diagram replica --format mermaid
    """
    if diagram is not None:
        click.echo("\n\n".join(machine_lines(machine, form) for machine in find_machines(diagram)))
        return 0
    check_seeds(seed, seeds)
    if seeds > 1 and (plan is not None or (shrinks and app is None)):
        option = "--shrink" if plan is None else "--plan"
        raise UsageError(f"{option} has no effect with --seeds; leave out one of the two")
    if app is not None:
        # Late: the wire formats are an extra.
        from replication.testing.app_cli import simulate_app

        return simulate_app(app, seed, seeds, minutes, plan, shrinks=shrinks, as_json=as_json)
    followed = release or _RELEASES[has_zookeeper]
    rules = without(sound(rules_of(followed)), *left_out)
    duration_ms = DurationMs(int(minutes * MINUTE_MS))
    command = _command(kind, minutes, release, left_out, groups) + " --zookeeper" * has_zookeeper + choice.text
    policy = None if placer is None else load_placer(placer)
    if placer is not None:
        command += f" --placer {printable(placer)}"
    if plan is not None:
        command += f" --plan {printable(str(plan))}"

    def draw(seed: int) -> _SeededRun:
        options = _KINDS[kind](seed, duration_ms, rules)
        role_settings = attrs.evolve(options.role_settings, has_zookeeper=has_zookeeper)
        drawn = choice.applied(attrs.evolve(options, role_settings=role_settings))
        return _SeededRun(drawn, groups, policy, followed, None if plan is None else read_plan(plan))

    if seeds > 1:
        return _many(map(draw, range(seed, seed + seeds)), seeds, command, as_json=as_json)
    return _one(draw(seed), f"{command} --seed {seed}", shrinks=shrinks, as_json=as_json)


class _SeededRun:
    """Hold one seed's options: its cluster, consumer groups, placement policy, release, and its plan of faults."""

    def __init__(
        self,
        options: Options,
        groups: int,
        placer: ReplicaPlacer | None,
        release: str,
        plan: tuple[Fault, ...] | None,
    ) -> None:
        options = with_groups(options) if groups else options
        self.options = options if placer is None else placed(options, placer)
        self.plan = draw_plan(self.options) if plan is None else plan
        self._groups = groups
        self.release = NEWEST if release == "current" else Release(release)

    def run(self) -> Outcome:
        """Run the seed."""
        return self.again(self.options)

    def again(self, options: Options) -> Outcome:
        """Run other options under the faults and the consumer groups of this seed."""
        return run(options, self.plan, extension=self.groups_extension())

    def shrunk(self, broken: Outcome) -> Outcome:
        """Return the run of the fewest faults found that break an invariant of those that `broken` breaks."""
        return shrink(broken, lambda plan: run(self.options, plan, extension=self.groups_extension()))

    def groups_extension(self) -> GroupsExtension | None:
        """Return the consumer groups for one run; None if there are none."""
        return GroupsExtension.drawn(self.options, self._groups, self.release) if self._groups else None


def _one(seeded: _SeededRun, again: str, *, shrinks: bool, as_json: bool) -> int:
    """Run one seed and print what happens; `again` is the command that repeats it. Return the exit status."""
    if as_json:
        outcome = seeded.run()
        smallest = seeded.shrunk(outcome) if shrinks and outcome.is_broken else None
        fields = outcome_fields(outcome) | {"again": again, "shrunk": smallest and outcome_fields(smallest)}
        click.echo(json.dumps(fields))
        return EXIT_REFUSED if outcome.is_broken else 0
    groups = seeded.groups_extension()
    for line in (*options_lines(seeded.options), *(() if groups is None else groups.plan.lines())):
        click.echo(line)
    outcome = run(seeded.options, seeded.plan, click.echo, extension=groups)
    _print_verdict(outcome)
    if outcome.is_broken and seeded.release != NEWEST:
        for name in lacking_rules(seeded.options, seeded.again):
            click.echo(f"  {lacking_line(seeded.release.name, name)}")
    for line in () if groups is None else groups.counts.lines():
        click.echo(line)
    if not outcome.is_broken:
        return 0
    click.echo(f"again: {again}")
    if shrinks:
        smallest = seeded.shrunk(outcome)
        for line in (*shrunk_lines(smallest.plan, len(outcome.plan)), f"BROKEN: {smallest.findings[0]}"):
            click.echo(line)
    return EXIT_REFUSED


def machine_lines(machine: Machine, form: str) -> str:
    """Return a state machine's drawing; in text form below its name and title."""
    drawing = machine.text(form)
    return f"{machine.name}: {machine.title}\n\n{drawing}" if form == "text" else drawing


def _command(kind: str, minutes: float, release: str | None, left_out: tuple[str, ...], groups: int) -> str:
    parts = [f"brokerside simulate --{kind} --minutes {minutes:g}"]
    if groups:
        parts.append(f"--groups {groups}")
    if release:
        parts.append(f"--kafka {release}")
    return " ".join([*parts, *(f"--without {name}" for name in left_out)])


def _print_verdict(outcome: Outcome) -> None:
    report = outcome.durability
    click.echo(verdict_line(outcome))
    if outcome.is_broken:
        first = outcome.findings[0]
        invariant = {**INVARIANTS, **GROUP_INVARIANTS}[first.code]
        click.echo(f"  {first.code}, {invariant.name}: {invariant.statement}")
    click.echo(
        f"{counted(outcome.event_count, 'event')} in {outcome.simulated_ms:,} ms, "
        f"{counted(len(outcome.plan), 'fault')}, "
        f"{counted(outcome.loss_count, 'broker')} lost records, {counted(outcome.unclean_count, 'unclean election')}"
    )
    click.echo(
        f"acknowledged by all: {report.acked_count}, of these lost {len(report.lost_by_all)}; "
        f"acknowledged by one: {report.acked_by_one_count}, lost {len(report.lost_by_one)}"
    )
    for line in loss_lines(report.lost):
        click.echo(f"  lost: {line}")
    if (taken := outcome.retention) is not None:
        click.echo(
            f"expired: {taken.expired_count}, superseded: {taken.superseded_count}; "
            f"expired before a consumer came: {taken.unread_count}"
        )
    click.echo(f"digest {outcome.digest}")


def _many(runs: Iterable[_SeededRun], count: int, command: str, *, as_json: bool) -> int:
    tally = Tally()
    with progress("Running", count, quiet=False, size_min=2) as advance:
        for seeded in runs:
            outcome = seeded.run()
            tally.add(outcome)
            if not (outcome.is_clean or as_json):
                seed = seeded.options.seed
                click.echo(f"seed {seed}: {verdict_line(outcome).removeprefix('BROKEN: ')}")
                click.echo(f"  again: {command} --seed {seed}")
            advance(1)
    for line in (json.dumps(tally.fields()),) if as_json else tally.lines():
        click.echo(line)
    return EXIT_REFUSED if tally.broken_count else 0
