"""The commands `scenario list` and `scenario run NAME`: fault stories, told step by step.

It decides how a story is told: its title and how it happens, each change of state, and whether it went as it should.

Exit status: 0 if it did, 1 if not, 2 for a name that there is not.

Worked example: `scenario run S01-before` tells how a committed record is lost; `scenario run --all --json` tells the
verdict of every story, one object a line.

Source: ours; click.
"""

from __future__ import annotations

import json

import click

from broker.cli import EXIT_REFUSED, printable
from broker.errors import UsageError
from replication.scenarios.catalogue import SCENARIOS
from replication.scenarios.verdict import Story, Verdict
from replication.simulation.trace import Tell, silent


@click.group()
def scenario() -> None:
    """Fault stories with known outcomes."""


@scenario.command("list")
@click.option("--json", "as_json", is_flag=True, help="One object a story.")
def list_scenarios(*, as_json: bool) -> None:
    """List the stories."""
    for story in SCENARIOS:
        if as_json:
            about = {"name": story.name, "title": story.title, "how": story.how, "source": story.source}
            click.echo(json.dumps(about))
        else:
            click.echo(f"{story.name:<12} {story.title}")


@scenario.command("run")
@click.argument("name", required=False)
@click.option("--all", "plays_all", is_flag=True, help="Every story, a line each.")
@click.option("--json", "as_json", is_flag=True, help="One object a story, the steps included if it is one.")
def run_scenario(name: str | None, *, plays_all: bool, as_json: bool) -> int:
    """Tell the story NAME, or with --all the verdict of each."""
    if (name is None) != plays_all:
        raise UsageError("give the name of one scenario, or --all")
    if plays_all:
        return _run_all(as_json=as_json)
    found = [story for story in SCENARIOS if story.name == name]
    if not found:
        names = ", ".join(story.name for story in SCENARIOS)
        raise UsageError(f"there is no scenario '{printable(name or '')}'; there are {names}")
    return _tell_json(found[0]) if as_json else _tell(found[0], click.echo)


def _tell(story: Story, tell: Tell) -> int:
    tell(f"{story.name}: {story.title}\n{story.how}\nSource: {story.source}")
    verdict = story.play(tell)
    tell(verdict.told)
    for line in verdict.differences:
        tell(f"OTHERWISE THAN EXPECTED: {line}")
    if verdict.is_expected:
        tell("as expected")
    return 0 if verdict.is_expected else EXIT_REFUSED


def _tell_json(story: Story) -> int:
    steps: list[str] = []
    verdict = story.play(steps.append)
    click.echo(json.dumps({**_as_json(story, verdict), "how": story.how, "source": story.source, "steps": steps}))
    return 0 if verdict.is_expected else EXIT_REFUSED


def _run_all(*, as_json: bool) -> int:
    failed = 0
    for story in SCENARIOS:
        verdict = story.play(silent)
        failed += not verdict.is_expected
        if as_json:
            click.echo(json.dumps(_as_json(story, verdict)))
        else:
            click.echo(f"{story.name:<12} {'; '.join(verdict.differences) or 'as expected':<14} {story.title}")
    if not as_json:
        click.echo(f"{len(SCENARIOS)} stories, {failed} otherwise than expected")
    return EXIT_REFUSED if failed else 0


def _as_json(story: Story, verdict: Verdict) -> dict[str, object]:
    return {
        "name": story.name,
        "title": story.title,
        "is_expected": verdict.is_expected,
        "told": verdict.told,
        "differences": list(verdict.differences),
    }
