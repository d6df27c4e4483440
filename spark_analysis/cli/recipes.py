"""Define `brokerside recipes`, apart from the fleet's command, which loads pyarrow."""

from __future__ import annotations

import click

from spark_analysis.fleet.reading import list_recipes, load_recipe


@click.command()
def recipes() -> None:
    """List the recipes that come with the library, by the name that `brokerside fleet` takes."""
    for name in list_recipes():
        recipe = load_recipe(name)
        click.echo(f"{name:<24} {recipe.cluster_count:>6} clusters  {recipe.name}")
