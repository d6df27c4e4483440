"""The `brokerside` command: every package's commands under one roof.

`report` and `fleet` start Spark and write a folder: `tables/` with Parquet, and `report.html`.
The other commands are pure Python and start at once; pyspark is imported by the two alone.

Constraints: standard output carries the answer, standard error the progress and the warnings;
exit status 1 means that something was refused or, with --strict, put aside, and 2 that nothing was done.

Source: ours; the commands' inputs are those of Kafka's own tools.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import click
from rich.console import Console

from broker.cli import EXIT_REFUSED, printable, run
from placement.formats.racks import read_racks
from spark_analysis.fleet.reading import list_recipes, load_recipe
from spark_analysis.kernels import DumpInput
from spark_analysis.report.load import load_report
from spark_analysis.report.model import Report, RunInfo
from spark_analysis.report.terminal import summary_json, terminal_summary
from spark_analysis.report.write import write_page
from spark_analysis.sources.dumps import FORMATS
from spark_analysis.sources.inputs import check_inputs, dump_inputs, moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

    from log.tools.problems import Problems
    from log.tools.sources import SourceFolder

PROGRAM: Final = "brokerside"
RECIPE_DEFAULT: Final = "demo"
OUT_DEFAULT: Final = Path("brokerside-out")
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


JOINED: Final[Mapping[str, tuple[str, str]]] = {
    "assign": ("placement.cli", "assign"),
    "config": ("broker.__main__", "config"),
    "diagram": ("broker.__main__", "diagram"),
    "explore": ("replication.explore.cli", "explore"),
    "groups": ("replication.groups.alone.cli", "groups"),
    "log": ("log.cli.commands", "log"),
    "mirror": ("replication.mirror.cli", "mirror"),
    "requests": ("broker.requests.cli", "requests_command"),
    "scenario": ("replication.scenarios.cli", "scenario"),
    "simulate": ("replication.cli.simulate", "simulate"),
}
"""The other packages' commands: the module and the name of each, loaded when it is asked for."""


class _Commands(click.Group):
    """Our own commands and the joined ones; what is not called is not loaded."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *JOINED])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in JOINED:
            return super().get_command(ctx, cmd_name)
        module, name = JOINED[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        return command


def _write_log_tables(
    folders: Sequence[SourceFolder], out: Path, problems: Problems, advance: Callable[[int], None]
) -> Iterable[str]:
    from spark_analysis.tables.log import write_log_tables

    return write_log_tables(folders, out, problems, advance)


@click.group(
    cls=_Commands,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "obj": {"write_tables": _write_log_tables},
    },
)
@click.version_option(version(PROGRAM), prog_name=PROGRAM)
def brokerside() -> None:
    """The broker side of Apache Kafka, offline: exact placement, and balance over very many clusters."""


def _run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--out",
            type=click.Path(file_okay=False, path_type=Path),
            default=OUT_DEFAULT,
            show_default=True,
            help="Folder for tables/ (Parquet) and report.html; an earlier run's are replaced.",
        ),
        click.option(
            "--master", metavar="URL", help="Spark master; local[*], all cores of this machine, if not given."
        ),
        click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON."),
        click.option("--quiet", is_flag=True, help="No progress bar."),
    ):
        command = option(command)
    return command


@brokerside.command()
@click.argument("recipe_name", metavar="[RECIPE]", default=RECIPE_DEFAULT)
@click.option("--clusters", type=click.IntRange(1), help="Number of clusters, instead of the recipe's.")
@click.option("--seed", type=int, help="Seed of the fleet, instead of the recipe's.")
@_run_options
def fleet(recipe_name: str, clusters: int | None, seed: int | None, out: Path, **how: Any) -> int:
    """Simulate a fleet of clusters, place every topic as Kafka would, and report how balanced it is.

    RECIPE is a TOML file, or the name of one that is shipped: see `brokerside recipes`.
    """
    recipe = load_recipe(recipe_name)
    if clusters is not None:
        recipe = attrs.evolve(recipe, cluster_count=clusters)
    if seed is not None:
        recipe = attrs.evolve(recipe, seed=seed)
    info = RunInfo(
        kind="fleet",
        title=recipe.name,
        command=_command_line(),
        version=version(PROGRAM),
        recipe_text=recipe.text,
        seed=recipe.seed,
    )

    def job(spark: SparkSession, progress: Any) -> None:
        from spark_analysis.jobs import analyse_fleet

        analyse_fleet(spark, recipe, out, progress=progress, overwrite=True)

    _finish(_run(job, out, info, **how), out, as_json=how["as_json"])
    return 0


@brokerside.command()
def recipes() -> None:
    """List the recipes that come with the library; each is a name for `brokerside fleet`."""
    for name in list_recipes():
        recipe = load_recipe(name)
        click.echo(f"{name:<24} {recipe.cluster_count:>6} clusters  {recipe.name}")


@brokerside.command()
@click.argument("dumps", nargs=-1, required=True, metavar="DUMP...")
@click.option("--racks", type=_FILE, help='Racks of the brokers: JSON {"1": "west"}, or CSV lines broker,rack.')
@click.option(
    "--format", "named_format", type=click.Choice(FORMATS), help="Format of the dumps, when content is not enough."
)
@click.option("--min-isr", type=click.IntRange(1), help="min.insync.replicas of topics that do not show theirs.")
@click.option(
    "--moments/--separate",
    default=None,
    help="The dumps are one cluster at successive moments, or clusters of their own. "
    "Dumps numbered 1-…, 2-… are taken as moments. With one metadata log, the moments before its live brokers changed.",
)
@click.option(
    "--at",
    "at",
    multiple=True,
    metavar="OFFSET|TIME",
    help="A moment of a metadata log: an offset, or a UTC time such as 2026-11-21T18:30. May be repeated.",
)
@click.option("--strict", is_flag=True, help="Exit with status 1 when any row was put aside.")
@_run_options
def report(
    dumps: tuple[str, ...],
    racks: Path | None,
    named_format: str | None,
    min_isr: int | None,
    moments: bool | None,
    at: tuple[str, ...],
    strict: bool,
    out: Path,
    **how: Any,
) -> int:
    """Report on real clusters, from what Kafka's tools and their peers printed of them.

    \b
    A DUMP is a file, or NAME=FILE to name its cluster, in one of these formats:
    kafka-topics --describe; kcat -L -J; kafka-reassign-partitions JSON; Cruise
    Control's /load, /kafka_cluster_state and rebalance answers.
    Or it is a KRaft metadata log: the directory __cluster_metadata-0, a segment
    of it or a snapshot (*.checkpoint), with racks and settings in it.

    \b
    brokerside report prod.txt stage.txt --racks racks.csv --out today
    brokerside report /var/lib/kafka/__cluster_metadata-0 --moments
    """
    given = None if racks is None else read_racks(racks.read_bytes(), source=racks.name)
    inputs = dump_inputs(dumps, named_format, moments, tuple(map(moment, at)))
    check_inputs(inputs)
    info = RunInfo(kind="dumps", title=_title(inputs), command=_command_line(), version=version(PROGRAM))

    def job(spark: SparkSession, progress: Any) -> None:
        from spark_analysis.jobs import analyse_dumps

        analyse_dumps(spark, inputs, given, out, progress=progress, min_insync_replicas_default=min_isr, overwrite=True)

    result = _run(job, out, info, **how)
    _finish(result, out, as_json=how["as_json"])
    if result.rows_rejected:
        click.echo(
            f"{PROGRAM}: warning: {result.rows_rejected} of {result.rows_in} rows were put aside; "
            f"the reasons are in {out / 'report.html'} and {out / 'tables' / 'rejects'}",
            err=True,
        )
    return EXIT_REFUSED if strict and result.rows_rejected else 0


def _title(inputs: Sequence[DumpInput]) -> str:
    names = [dump.name or dump.path for dump in inputs]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _command_line() -> str:
    return shlex.join([PROGRAM, *sys.argv[1:]])


def _run(
    job: Callable[[SparkSession, Any], None],
    out: Path,
    info: RunInfo,
    *,
    master: str | None,
    quiet: bool,
    as_json: bool,
) -> Report:
    from spark_analysis.session.progress import progress
    from spark_analysis.session.spark_session import spark_session

    if not quiet:
        click.echo("Starting Spark …", err=True)
    with spark_session(app_name=PROGRAM, master=master) as spark:
        job(spark, partial(progress, quiet=quiet))
    return load_report(out, info)


def _finish(result: Report, out: Path, *, as_json: bool) -> None:
    page = write_page(out, result)
    if as_json:
        click.echo(summary_json(result))
    else:
        Console(highlight=False, soft_wrap=True).print(terminal_summary(result))
        click.echo(f"Report: {printable(str(page))}")


def main() -> None:
    """Run the command line and leave with its exit status."""
    sys.exit(run(brokerside, PROGRAM))
