"""`brokerside groups simulate`: a group's life under each protocol, side by side.

Plays a seeded plan, a named scenario, or the events of a file, and prints what they cost: rebalances and latencies,
time without an owner, moves, duplicates, commits refused, members dropped. With --json, everything counted.

Exit status: 0, or 1 where an invariant was broken, 2 for what cannot be played.

Source: ours.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import attrs
import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from broker.cli import EXIT_REFUSED, CommandGroup, check_chart, printable
from broker.errors import UsageError
from broker.ids import INT64_MAX
from placement.consumer.cli import assign_command
from replication.groups.alone.chart import to_html, to_svg
from replication.groups.alone.life import Life, live
from replication.groups.alone.modes import assignor_of
from replication.groups.alone.plan import Shape, seeded_scenario
from replication.groups.alone.scenario import MEMBER_COUNT_MAX, PARTITION_COUNT_MAX, GroupRunScenario, Mode
from replication.groups.alone.scenario_file import read_scenario
from replication.groups.alone.scenarios import SCENARIOS
from replication.groups.alone.telling import figures, lines

_ALL: Final = "all"
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
MINUTES_MAX: Final = 24 * 60
_SHAPE: Final = Shape()


@click.group(cls=CommandGroup)
def groups() -> None:
    """Consumer groups: who gets which partitions, and why; and a group's life on a virtual clock."""


groups.add_command(assign_command)


@groups.command("simulate")
@click.option("--seed", type=click.IntRange(0, INT64_MAX), default=0, show_default=True, help="Decides everything.")
@click.option(
    "--protocol",
    type=click.Choice([*(mode.value for mode in Mode), _ALL]),
    help="One protocol, or all side by side; a scenario knows which it is about.",
)
@click.option("--assignor", help="Of one protocol; each has Kafka's default: range, cooperative-sticky, uniform.")
@click.option("--members", type=click.IntRange(1, MEMBER_COUNT_MAX), default=_SHAPE.members, show_default=True)
@click.option("--partitions", type=click.IntRange(1, PARTITION_COUNT_MAX), default=_SHAPE.partitions, show_default=True)
@click.option("--minutes", type=click.IntRange(1, MINUTES_MAX), default=_SHAPE.minutes, show_default=True)
@click.option("--scenario", "name", metavar="NAME", help="A named scenario instead of a seeded plan.")
@click.option("--list-scenarios", "lists", is_flag=True, help="List the named scenarios.")
@click.option("--events", type=_FILE, help="A scenario in JSON instead of a seeded plan.")
@click.option("--json", "as_json", is_flag=True, help="Print everything counted as JSON.")
@click.option(
    "--chart",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write who owned which partition when, as .svg or .html.",
)
def simulate_command(
    seed: int, protocol: str | None, assignor: str | None, lists: bool, as_json: bool, chart: Path | None, **plan: Any
) -> int:
    """Play a group's life: members join, leave, crash, dawdle and come back, under each protocol.

    \b
    Examples:
      brokerside groups simulate --seed 7
      brokerside groups simulate --scenario shared-group-id --chart incident.html
      brokerside groups simulate --seed 7 --protocol eager --assignor sticky --members 10 --partitions 60

    \b
    EVENTS is JSON:
      {"minutes": 4, "topics": {"orders": 6},
       "members": [{"name": "a", "topics": ["orders"]},
                   {"name": "b", "topics": ["orders"], "instance_id": "i1", "revoke_ms": 10000}],
       "events": [{"at_ms": 0, "kind": "start", "target": "a"},
                  {"at_ms": 60000, "kind": "start", "target": "b"},
                  {"at_ms": 90000, "kind": "freeze", "target": "a", "for_ms": 40000},
                  {"at_ms": 99000, "kind": "add-partitions", "target": "orders", "count": 8}]}
    """
    if lists:
        for scenario in SCENARIOS.values():
            click.echo(f"{scenario.name:<16}{scenario.title}")
        return 0
    check_chart(chart)
    scenario = attrs.evolve(_scenario(seed, **plan), assignor=assignor)
    modes = _modes(scenario, protocol)
    lives = [live(scenario, mode, seed) for mode in modes]
    _show(lives, as_json=as_json)
    if chart is not None:
        chart.write_text(to_svg(lives) if chart.suffix == ".svg" else to_html(lives), encoding="utf-8")
    return 0 if all(life.is_clean for life in lives) else EXIT_REFUSED


def _scenario(
    seed: int, *, members: int, partitions: int, minutes: int, name: str | None, events: Path | None
) -> GroupRunScenario:
    if name is not None and events is not None:
        raise UsageError("--scenario and --events cannot both be played")
    if events is not None:
        return read_scenario(events.read_bytes(), source=events.name)
    if name is None:
        return seeded_scenario(seed, Shape(members=members, partitions=partitions, minutes=minutes))
    if name not in SCENARIOS:
        raise UsageError(f"there is no scenario {name!r}; there are {', '.join(SCENARIOS)}")
    return SCENARIOS[name]


def _modes(scenario: GroupRunScenario, protocol: str | None) -> tuple[Mode, ...]:
    """Return the protocols asked for; raises UsageError where one does not take the assignor."""
    modes = scenario.modes if protocol is None else tuple(Mode) if protocol == _ALL else (Mode(protocol),)
    if scenario.assignor is not None and len(modes) > 1:
        raise UsageError("--assignor needs one --protocol: they do not share any")
    for mode in modes:
        assignor_of(scenario, mode)
    return modes


def _show(lives: list[Life], *, as_json: bool) -> None:
    if as_json:
        click.echo(
            json.dumps({"version": 1, "scenario": lives[0].scenario.name, "lives": [one.figures() for one in lives]})
        )
        return
    scenario = lives[0].scenario
    if scenario.how:
        click.echo(scenario.how)
    Console(soft_wrap=True).print(_table(lives))
    for line in lines(lives):
        click.echo(line)


def _table(lives: list[Life]) -> Table:
    scenario = lives[0].scenario
    # A plain text: in a string, rich would take brackets for markup.
    shown = Table(title=Text(f"{printable(scenario.name)}: {printable(scenario.title)}"), title_justify="left")
    shown.add_column("", no_wrap=True)
    for life in lives:
        shown.add_column(Text(f"{life.mode.value}\n{printable(life.assignor)}"), justify="right")
    for name, cells in figures(lives):
        shown.add_row(name, *cells)
    return shown
