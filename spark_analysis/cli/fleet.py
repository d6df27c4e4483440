"""Define `brokerside fleet`, which simulates the clusters of a recipe and reports on them."""

from __future__ import annotations

from typing import Any, Final

import attrs
import click

from broker.cli import takes
from broker.errors import UsageError
from placement.placers.registry import load_placer
from spark_analysis.cli.interrupts import ending_at_once
from spark_analysis.cli.running import LOCAL_CLUSTERS_MAX, SPARK, RunOptions, run_info, run_job, run_options
from spark_analysis.engines import Engine
from spark_analysis.fleet.reading import load_recipe
from spark_analysis.fleet.recipe import CLUSTER_COUNT_MAX, SEED_MAX, Recipe

RECIPE_DEFAULT: Final = "demo"


@attrs.frozen(kw_only=True)
class FleetOptions(RunOptions):
    """Hold the options of `brokerside fleet`: a recipe, and the values that replace the recipe's."""

    recipe_name: str
    clusters: int | None
    seed: int | None
    placers: str | None
    partitions: bool


@click.command()
@click.argument("recipe_name", metavar="[RECIPE]", default=RECIPE_DEFAULT)
@click.option(
    "--clusters", type=click.IntRange(1, CLUSTER_COUNT_MAX), help="Number of clusters (default: the recipe's)."
)
@click.option("--seed", type=click.IntRange(0, SEED_MAX), help="Seed of the random generator (default: the recipe's).")
@click.option(
    "--placers",
    metavar="NAMES",
    help="Placers, separated by commas: striped, classic, copyset (an example with few copysets) or the name of an "
    "installed one (default: the recipe's).",
)
@click.option(
    "--partitions",
    is_flag=True,
    help="Also write the table of partitions: a row per partition and placer.",
)
@run_options(SPARK, f"up to {LOCAL_CLUSTERS_MAX:,} clusters")
@takes(FleetOptions)
def fleet(options: FleetOptions) -> int:
    """Simulate a fleet of clusters, place every topic as Kafka would, and report how even the clusters are.

    RECIPE is a TOML file, or one of the names that `brokerside recipes` lists.
    """
    recipe = load_recipe(options.recipe_name)
    if options.clusters is not None:
        recipe = attrs.evolve(recipe, cluster_count=options.clusters)
    if options.seed is not None:
        recipe = attrs.evolve(recipe, seed=options.seed)
    if options.placers is not None:
        recipe = _placed_by(recipe, options.placers)
    info = run_info("fleet", recipe.name, recipe_text=recipe.text, seed=recipe.seed, asked=options.asked)
    with ending_at_once():
        from spark_analysis.jobs import analyse_fleet

    def job(engine: Engine, progress: Any) -> None:
        analyse_fleet(
            engine,
            recipe,
            options.place,
            progress=progress,
            overwrite=True,
            partitions=options.partitions,
            asked=options.asked,
        )

    run_job(job, info, options, is_small=recipe.cluster_count <= LOCAL_CLUSTERS_MAX)
    return 0


def _placed_by(recipe: Recipe, names: str) -> Recipe:
    """Return the recipe with every shape placed by these placers; raise UsageError for a list without a name."""
    placers = tuple(dict.fromkeys(name.strip() for name in names.split(",")))
    if not all(placers):
        raise UsageError(f"--placers {names!r}: allowed is a list of names with commas between them")
    for name in placers:
        load_placer(name)
    return attrs.evolve(recipe, shapes=tuple(attrs.evolve(shape, placers=placers) for shape in recipe.shapes))
