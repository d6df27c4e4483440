"""The commands `scenario list` and `scenario run NAME`: fault scenarios, told step by step.

It decides how a scenario is told: its title and how it happens, each change of state, and whether it went as it should.

Exit status: 0 if it did, 1 if not, 2 for a name that there is not.

Worked example: `scenario run S01-before` tells how a committed record is lost; `scenario run --all --json` tells the
verdict of every scenario, one object a line.

Source: ours; click.
"""

from __future__ import annotations

import json

import click

from broker.cli import EXIT_REFUSED, CommandGroup, printable
from broker.errors import UsageError
from replication.scenarios.catalogue import SCENARIOS
from replication.scenarios.verdict import NamedScenario, Verdict
from replication.simulation.trace import Tell, silent


@click.group(cls=CommandGroup)
def scenario() -> None:
    """Fault scenarios with known outcomes."""


@scenario.command("list")
@click.option("--json", "as_json", is_flag=True, help="One object a scenario.")
def list_scenarios(*, as_json: bool) -> None:
    """List the scenarios."""
    for scenario in SCENARIOS:
        if as_json:
            about = {"name": scenario.name, "title": scenario.title, "how": scenario.how, "source": scenario.source}
            click.echo(json.dumps(about))
        else:
            click.echo(f"{scenario.name:<12} {scenario.title}")


@scenario.command("run")
@click.argument("name", required=False)
@click.option("--all", "plays_all", is_flag=True, help="Every scenario, a line each.")
@click.option("--json", "as_json", is_flag=True, help="One object a scenario, the steps included if it is one.")
def run_scenario(name: str | None, *, plays_all: bool, as_json: bool) -> int:
    """Tell the scenario NAME, or with --all the verdict of each."""
    if (name is None) != plays_all:
        raise UsageError("give the name of one scenario, or --all")
    if plays_all:
        return _run_all(as_json=as_json)
    found = [scenario for scenario in SCENARIOS if scenario.name == name]
    if not found:
        names = ", ".join(scenario.name for scenario in SCENARIOS)
        raise UsageError(f"there is no scenario '{printable(name or '')}'; there are {names}")
    return _tell_json(found[0]) if as_json else _tell(found[0], click.echo)


def _tell(scenario: NamedScenario, tell: Tell) -> int:
    tell(f"{scenario.name}: {scenario.title}\n{scenario.how}\nSource: {scenario.source}")
    verdict = scenario.play(tell)
    tell(verdict.told)
    for line in verdict.differences:
        tell(f"OTHERWISE THAN EXPECTED: {line}")
    if verdict.is_expected:
        tell("as expected")
    return 0 if verdict.is_expected else EXIT_REFUSED


def _tell_json(scenario: NamedScenario) -> int:
    steps: list[str] = []
    verdict = scenario.play(steps.append)
    click.echo(
        json.dumps({**_as_json(scenario, verdict), "how": scenario.how, "source": scenario.source, "steps": steps})
    )
    return 0 if verdict.is_expected else EXIT_REFUSED


def _run_all(*, as_json: bool) -> int:
    failed = 0
    for scenario in SCENARIOS:
        verdict = scenario.play(silent)
        failed += not verdict.is_expected
        if as_json:
            click.echo(json.dumps(_as_json(scenario, verdict)))
        else:
            click.echo(f"{scenario.name:<12} {'; '.join(verdict.differences) or 'as expected':<14} {scenario.title}")
    if not as_json:
        click.echo(f"{len(SCENARIOS)} scenarios, {failed} otherwise than expected")
    return EXIT_REFUSED if failed else 0


def _as_json(scenario: NamedScenario, verdict: Verdict) -> dict[str, object]:
    return {
        "name": scenario.name,
        "title": scenario.title,
        "is_expected": verdict.is_expected,
        "told": verdict.told,
        "differences": list(verdict.differences),
    }
