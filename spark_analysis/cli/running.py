"""Share the options, the start of Spark and the report between `brokerside fleet` and `brokerside report`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import attrs
import click
from rich.console import Console

from broker.cli import printable
from spark_analysis.cli.commands import PROGRAM
from spark_analysis.cli.interrupts import ending_at_once
from spark_analysis.report.load import load_report
from spark_analysis.report.model import Report, RunInfo
from spark_analysis.report.terminal import summary_json, terminal_summary
from spark_analysis.report.write import write_for_programs, write_page

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUT_DEFAULT: Final = Path("brokerside-out")


@attrs.frozen(kw_only=True)
class RunOptions:
    """Hold the options of every command that runs a job: the place of its tables, the Spark to use, and the output."""

    out: Path
    master: str | None
    as_json: bool
    quiet: bool


def run_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options of `RunOptions` to a command."""
    for option in (
        click.option(
            "--out",
            type=click.Path(file_okay=False, path_type=Path),
            default=OUT_DEFAULT,
            show_default=True,
            help="Folder for tables/, report.html, report.json, report.prom; an earlier run's are replaced.",
        ),
        click.option(
            "--master", metavar="URL", help="Spark master; local[*], all cores of this machine, if not given."
        ),
        click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON."),
        click.option("--quiet", is_flag=True, help="Show no progress bar."),
    ):
        command = option(command)
    return command


def run_info(kind: Literal["fleet", "dumps"], title: str, **facts: Any) -> RunInfo:
    """Return the report's record of this run: the command line and the version beside `facts`."""
    command = shlex.join([PROGRAM, *sys.argv[1:]])
    return RunInfo(kind=kind, title=title, command=command, version=version(PROGRAM), **facts)


def run_job(job: Callable[[SparkSession, Any], None], info: RunInfo, options: RunOptions) -> Report:
    """Run `job(spark, progress)` on a session of its own and return the report of the tables that it wrote.

    The page is written and its summary printed.
    """
    with ending_at_once():
        from spark_analysis.session.progress import progress
        from spark_analysis.session.spark_session import spark_session

    if not options.quiet:
        click.echo("Starting Spark …", err=True)
    with spark_session(app_name=PROGRAM, master=options.master) as spark:
        job(spark, partial(progress, quiet=options.quiet))
    result = load_report(options.out, info)
    _finish(result, options)
    return result


def _finish(result: Report, options: RunOptions) -> None:
    page = write_page(options.out, result)
    write_for_programs(options.out, result)
    if options.as_json:
        click.echo(summary_json(result))
    else:
        Console(highlight=False, soft_wrap=True).print(terminal_summary(result))
        click.echo(f"Report: {printable(str(page))}")
