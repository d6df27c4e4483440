"""Define the commands `scenario list` and `scenario run NAME`."""

from __future__ import annotations

import json
from typing import Final

import click

from broker.cli import EXIT_REFUSED, CommandGroup
from broker.errors import UsageError
from broker.wording import unknown
from replication.scenarios.catalogue import SCENARIOS, NamedScenario
from replication.scenarios.result import ScenarioResult
from replication.simulation.history import LineSink, discard_line

_NAME_WIDTH: Final = max(len(scenario.name) for scenario in SCENARIOS)


@click.group(cls=CommandGroup)
def scenario() -> None:
    """List and run named fault scenarios with known outcomes."""


@scenario.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per scenario.")
def list_scenarios(*, as_json: bool) -> None:
    """List the name and the title of every scenario."""
    for scenario in SCENARIOS:
        if as_json:
            about = {"name": scenario.name, "title": scenario.title, "how": scenario.how, "source": scenario.source}
            click.echo(json.dumps(about))
        else:
            click.echo(f"{scenario.name:<{_NAME_WIDTH}} {scenario.title}")


@scenario.command("run")
@click.argument("name", required=False)
@click.option("--all", "plays_all", is_flag=True, help="Run every scenario and print one line each.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per scenario; a single one has its steps.")
def run_scenario(name: str | None, *, plays_all: bool, as_json: bool) -> int:
    """Run the scenario NAME step by step, or with --all every scenario, and compare with the known outcome."""
    if (name is None) != plays_all:
        raise UsageError("give the name of one scenario, or --all")
    if plays_all:
        return _run_all(as_json=as_json)
    found = _scenario_named(name or "")
    return _run_as_json(found) if as_json else _run_one(found, click.echo)


def _scenario_named(name: str) -> NamedScenario:
    """Return the scenario `name`, in any case; raise UsageError with the nearest name when there is none."""
    by_name = {scenario.name.lower(): scenario for scenario in SCENARIOS}
    if (found := by_name.get(name.lower())) is not None:
        return found
    known = (scenario.name for scenario in SCENARIOS)
    raise UsageError(unknown("scenario", name, known, "brokerside scenario list"))


def _run_one(scenario: NamedScenario, on_line: LineSink) -> int:
    on_line(f"{scenario.name}: {scenario.title}\n{scenario.how}\nSource: {scenario.source}")
    result = scenario.play(on_line)
    on_line(result.summary)
    for line in result.differences:
        on_line(f"OTHERWISE THAN EXPECTED: {line}")
    if result.is_expected:
        on_line("as expected")
    return 0 if result.is_expected else EXIT_REFUSED


def _run_as_json(scenario: NamedScenario) -> int:
    steps: list[str] = []
    result = scenario.play(steps.append)
    click.echo(
        json.dumps({**_as_json(scenario, result), "how": scenario.how, "source": scenario.source, "steps": steps})
    )
    return 0 if result.is_expected else EXIT_REFUSED


def _run_all(*, as_json: bool) -> int:
    failed = 0
    for scenario in SCENARIOS:
        result = scenario.play(discard_line)
        failed += not result.is_expected
        if as_json:
            click.echo(json.dumps(_as_json(scenario, result)))
        else:
            verdict = "; ".join(result.differences) or "as expected"
            click.echo(f"{scenario.name:<{_NAME_WIDTH}} {verdict:<14} {scenario.title}")
    if not as_json:
        click.echo(f"{len(SCENARIOS)} scenarios, {failed} otherwise than expected")
    return EXIT_REFUSED if failed else 0


def _as_json(scenario: NamedScenario, result: ScenarioResult) -> dict[str, object]:
    return {
        "name": scenario.name,
        "title": scenario.title,
        "is_expected": result.is_expected,
        "summary": result.summary,
        "differences": list(result.differences),
    }
