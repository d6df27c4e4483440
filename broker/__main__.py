"""Run `python -m broker`: print Kafka's settings, differences between releases, and broker registration states."""

from __future__ import annotations

import sys

import click

from broker.cli import CommandGroup, kafka_option, run
from broker.config import catalog, find
from broker.config.render import render_json, render_one, render_table
from broker.differences import table
from broker.machines import FORMS, drawn
from broker.registration import BROKER_TRANSITIONS, ZOOKEEPER_TRANSITIONS
from broker.releases import Release


@click.group(cls=CommandGroup)
def cli() -> None:
    """Print Kafka's settings, differences between releases or the broker's life cycle."""


@cli.command()
@click.argument("name", required=False)
@kafka_option()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def config(name: str | None, release: Release, as_json: bool) -> None:
    """Print all of Kafka's broker, topic and group settings, or everything known about the setting NAME."""
    settings = catalog(release) if name is None else find(name, release)
    if as_json:
        click.echo(render_json(settings))
    elif name is None:
        click.echo(render_table(settings))
    else:
        click.echo("\n\n".join(render_one(setting) for setting in settings))


@cli.command()
def differences() -> None:
    """Print what differs between the releases of Kafka that this library answers for."""
    click.echo(table())


@cli.command()
@click.argument("mode", type=click.Choice(["kraft", "zookeeper"]), default="kraft")
@click.option(
    "--format", "form", type=click.Choice(FORMS), default=FORMS[0], show_default=True, help="Format of the diagram."
)
def diagram(mode: str, form: str) -> None:
    """Print the broker's life cycle, as the controller sees it, from the model's transition table."""
    click.echo(drawn(BROKER_TRANSITIONS, form) if mode == "kraft" else drawn(ZOOKEEPER_TRANSITIONS, form))


if __name__ == "__main__":
    sys.exit(run(cli, "python -m broker"))
