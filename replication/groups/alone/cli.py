"""Run `brokerside groups simulate`: one group under each protocol, side by side.

Constraints: the exit status is 0, 1 where an invariant was broken, 2 for what cannot be run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs
import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from broker.cli import EXIT_REFUSED, kafka_option, printable, takes
from broker.cli_options import idle_beside, seed_option
from broker.errors import UsageError
from broker.group.consumer.target import BATCHES_SINCE
from broker.releases import Release
from broker.small_files import read_small
from broker.units import DurationMs
from broker.wording import unknown
from replication.groups.alone.group_run import GroupRun, lines, run_group, table_rows
from replication.groups.alone.scenario import (
    EVENTS_BYTES_MAX,
    MEMBER_COUNT_MAX,
    PARTITION_COUNT_MAX,
    SingleGroupScenario,
    read_scenario,
)
from replication.groups.alone.scenarios import SCENARIOS
from replication.groups.alone.seeded_scenario import Shape, seeded_scenario
from replication.groups.client.assigning import GroupProtocol

_ALL: Final = "all"
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
MINUTES_MAX: Final = 24 * 60
ASSIGNMENT_INTERVAL_MS_MAX: Final = 15_000  # Kafka's default of group.consumer.max.assignment.interval.ms.
_SHAPE: Final = Shape()


@attrs.frozen(kw_only=True)
class SimulateOptions:
    """Hold the options of `groups simulate`, as they were given."""

    seed: int
    protocol: str | None
    assignor: str | None
    assignment_interval_ms: int | None
    members: int
    partitions: int
    minutes: int
    scenario: str | None
    list_scenarios: bool
    events: Path | None
    release: Release
    json: bool

    def chosen_scenario(self) -> SingleGroupScenario:
        """Return the scenario to run; raise UsageError for an unknown name, or for two scenarios."""
        interval_ms = None if self.assignment_interval_ms is None else DurationMs(self.assignment_interval_ms)
        if interval_ms is not None and self.release < BATCHES_SINCE:
            raise UsageError(f"--assignment-interval-ms needs Kafka {BATCHES_SINCE} or later (KIP-1263)")
        return attrs.evolve(
            self._scenario_without_assignor(), assignor=self.assignor, assignment_interval_ms=interval_ms
        )

    def _scenario_without_assignor(self) -> SingleGroupScenario:
        if self.scenario is not None and self.events is not None:
            raise UsageError("--scenario and --events cannot both be played")
        if self.events is not None:
            return read_scenario(read_small(self.events, size_bytes_max=EVENTS_BYTES_MAX), source=self.events.name)
        if self.scenario is None:
            shape = Shape(members=self.members, partitions=self.partitions, minutes=self.minutes)
            return seeded_scenario(self.seed, shape)
        if self.scenario not in SCENARIOS:
            listing = "brokerside groups simulate --list-scenarios"
            raise UsageError(unknown("scenario", self.scenario, SCENARIOS, listing))
        return SCENARIOS[self.scenario]

    def chosen_protocols(self, scenario: SingleGroupScenario) -> tuple[GroupProtocol, ...]:
        """Return the protocols to run; raise UsageError if one does not take the assignor."""
        if self.protocol is None:
            chosen = scenario.protocols
        else:
            chosen = tuple(GroupProtocol) if self.protocol == _ALL else (GroupProtocol(self.protocol),)
        if scenario.assignor is not None and len(chosen) > 1:
            raise UsageError("--assignor needs one --protocol: they do not share any")
        if scenario.assignment_interval_ms is not None and GroupProtocol.CONSUMER not in chosen:
            raise UsageError("--assignment-interval-ms is a setting of the consumer protocol, which is not run")
        for protocol in chosen:
            scenario.assignor_of(protocol)
        return chosen


@click.command("simulate")
@idle_beside("--list-scenarios")
@idle_beside("--scenario", "--members", "--partitions", "--minutes")
@idle_beside("--events", "--members", "--partitions", "--minutes")
@seed_option()
@click.option(
    "--protocol",
    type=click.Choice([*(protocol.value for protocol in GroupProtocol), _ALL]),
    help="Protocol of the group, or all side by side (default: those that the scenario is about).",
)
@click.option(
    "--assignor",
    metavar="NAME",
    help="Assignor of the one --protocol (default range, cooperative-sticky or uniform, as Kafka's).",
)
@click.option(
    "--assignment-interval-ms",
    type=click.IntRange(0, ASSIGNMENT_INTERVAL_MS_MAX),
    help="Shortest time between two assignments of a consumer group: consumer.assignment.interval.ms (default 1000).",
)
@click.option(
    "--members",
    type=click.IntRange(1, MEMBER_COUNT_MAX),
    default=_SHAPE.members,
    show_default=True,
    help="Members of the drawn scenario.",
)
@click.option(
    "--partitions",
    type=click.IntRange(1, PARTITION_COUNT_MAX),
    default=_SHAPE.partitions,
    show_default=True,
    help="Partitions of the drawn scenario's topic.",
)
@click.option(
    "--minutes",
    type=click.IntRange(1, MINUTES_MAX),
    default=_SHAPE.minutes,
    show_default=True,
    help="Simulated minutes of the drawn scenario, at least 5.",
)
@click.option("--scenario", metavar="NAME", help="Run a named scenario instead of a drawn one.")
@click.option("--list-scenarios", is_flag=True, help="List the named scenarios and exit.")
@click.option("--events", type=_FILE, help="Run the scenario of a JSON file instead of a drawn one.")
@kafka_option()
@click.option("--json", is_flag=True, help="Print everything counted as JSON instead of a table.")
@takes(SimulateOptions)
def simulate_command(options: SimulateOptions) -> int:
    """Run one group under each protocol, on a virtual clock, and compare what rebalances cost.

    Members join, leave, crash, stop polling and come back; partitions are added, coordinators fail over.

    \b
    Examples:
      brokerside groups simulate --seed 7
      brokerside groups simulate --scenario shared-group-id
      brokerside groups simulate --seed 7 --protocol eager --assignor sticky
      brokerside groups simulate --seed 7 --protocol consumer --kafka 4.2

    \b
    EVENTS is JSON:
      {"minutes": 4, "topics": {"orders": 6},
       "members": [{"name": "a", "topics": ["orders"]},
                   {"name": "b", "topics": ["orders"], "instance_id": "i1",
                    "revoke_ms": 10000}],
       "events": [{"at_ms": 0, "kind": "start", "target": "a"},
                  {"at_ms": 60000, "kind": "start", "target": "b"},
                  {"at_ms": 90000, "kind": "freeze", "target": "a",
                   "for_ms": 40000},
                  {"at_ms": 99000, "kind": "add-partitions", "target": "orders",
                   "count": 8}]}

    \b
    Kinds of events, of a member unless another target is named:
      start, close, crash  its process starts, closes its consumer, or dies
      bounce               it closes its consumer, and starts again after for_ms
      stall                its application does not poll for for_ms
      freeze               its whole process stands still for for_ms
      crash-leading        it dies when it learns that it leads a classic group
      twin                 a second process starts with its instance_id
      hold-commits         its commits of the next for_ms arrive after that
      lose-answer          the response to its next heartbeat is lost
      add-partitions       the topic that is the target has count partitions
      failover             the coordinator's broker dies, back after for_ms
    """
    if options.list_scenarios:
        for scenario in SCENARIOS.values():
            click.echo(f"{scenario.name:<16}{scenario.title}")
        return 0
    scenario = options.chosen_scenario()
    protocols, release = options.chosen_protocols(scenario), options.release
    group_runs = [run_group(scenario, protocol, options.seed, release) for protocol in protocols]
    _show(group_runs, as_json=options.json)
    return 0 if all(group_run.is_clean for group_run in group_runs) else EXIT_REFUSED


def _show(group_runs: Sequence[GroupRun], *, as_json: bool) -> None:
    scenario = group_runs[0].scenario
    if as_json:
        lives = [group_run.to_json() for group_run in group_runs]
        click.echo(json.dumps({"version": 1, "scenario": scenario.name, "lives": lives}))
        return
    if scenario.how:
        click.echo(scenario.how)
    Console(soft_wrap=True).print(_table(group_runs))
    for line in lines(group_runs):
        click.echo(line)


def _table(group_runs: Sequence[GroupRun]) -> Table:
    scenario = group_runs[0].scenario
    # A plain text: in a string, rich would take brackets for markup.
    shown = Table(title=Text(f"{printable(scenario.name)}: {printable(scenario.title)}"), title_justify="left")
    shown.add_column("", no_wrap=True)
    for group_run in group_runs:
        shown.add_column(Text(f"{group_run.protocol.value}\n{printable(group_run.assignor)}"), justify="right")
    for name, cells in table_rows(group_runs):
        shown.add_row(name, *cells)
    return shown
