"""The commands `scenario list` and `scenario run NAME`: fault stories, told step by step.

It decides how a story is told: its title and how it happens, each change of state, and whether it went as it should.

Exit status: 0 if it did, 1 if not, 2 for a name that there is not.

Source: ours; click.
"""

from __future__ import annotations

import click

from broker.cli import EXIT_REFUSED, printable
from broker.errors import UsageError
from replication.scenarios.catalogue import SCENARIOS
from replication.scenarios.scenario import differences


@click.group()
def scenario() -> None:
    """Fault stories with known outcomes."""


@scenario.command("list")
def list_scenarios() -> None:
    """List the stories."""
    for each in SCENARIOS:
        click.echo(f"{each.name:<12} {each.title}")


@scenario.command("run")
@click.argument("name")
def run_scenario(name: str) -> int:
    """Tell the story NAME, or all of them for "all" with a line each."""
    if name == "all":
        return _run_all()
    found = [each for each in SCENARIOS if each.name == name]
    if not found:
        names = ", ".join(each.name for each in SCENARIOS)
        raise UsageError(f"there is no scenario '{printable(name)}'; there are {names}")
    story = found[0]
    click.echo(f"{story.name}: {story.title}\n{story.how}\nSource: {story.source}")
    outcome = story.play(click.echo)
    wrong = differences(story, outcome)
    report = outcome.durability
    click.echo(f"acknowledged {report.acked_count + report.acked_by_one_count}, lost {len(report.lost)}")
    for line in wrong:
        click.echo(f"OTHERWISE THAN EXPECTED: {line}")
    if not wrong:
        click.echo("as expected")
    return EXIT_REFUSED if wrong else 0


def _run_all() -> int:
    failed = 0
    for story in SCENARIOS:
        wrong = differences(story, story.play())
        failed += bool(wrong)
        click.echo(f"{story.name:<12} {'; '.join(wrong) or 'as expected'}")
    return EXIT_REFUSED if failed else 0
