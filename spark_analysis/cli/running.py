"""Share the options, the run of a job and the report between `brokerside fleet` and `brokerside report`."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal

import attrs
import click
from rich.console import Console

from broker.cli import printable
from broker.cli_options import idle_without
from broker.errors import UsageError
from broker.wording import encodable
from spark_analysis.answers.registry import QUESTIONS, Asked, asked_of
from spark_analysis.cli.commands import PROGRAM
from spark_analysis.cli.interrupts import ending_at_once
from spark_analysis.cli.into import Sink, instant, session_of, sink_engine
from spark_analysis.engines import Engine, LocalEngine
from spark_analysis.report.commands import ELECTIONS
from spark_analysis.report.load import load_report
from spark_analysis.report.model import Report, RunInfo
from spark_analysis.report.terminal import LINE_LENGTH_MAX, summary_json, terminal_summary
from spark_analysis.report.write import REPORT_NAME, WRITTEN, write_for_programs, write_page
from spark_analysis.session.settings import chosen_master, is_connect, is_submitted, parse_settings
from spark_analysis.tables.answers import claimed_folder
from spark_analysis.tables.place import Place, inside, is_uri, place_of

AUTO: Final = "auto"
LOCAL: Final = "local"
SPARK: Final = "spark"
LOCAL_BYTES_MAX: Final = 1 << 30  # Some eight million partitions: about half a minute of one core.
LOCAL_CLUSTERS_MAX: Final = 1_000
OUT_DEFAULT: Final = "brokerside-out"
_SECRET: Final = re.compile(r"((?:--conf=)?spark\.[^=]*(?:secret|password|token|access\.?key)[^=]*=).*", re.I | re.S)
"""As spark.redaction.regex of Spark 4.3."""
_QUESTIONS: Final = "; ".join(f"{name} ({about})" for name, (_, about) in QUESTIONS.items())


@attrs.frozen(kw_only=True)
class RunOptions:
    """Hold the options of every command that runs a job: the place of its tables, the Spark to use, and the output."""

    out: str
    engine: str
    master: str | None
    conf: tuple[str, ...]
    as_json: bool
    quiet: bool
    ask: tuple[str, ...]
    assume: tuple[str, ...]
    into: str | None
    observed_at: str | None
    run_id: str | None

    def __attrs_post_init__(self) -> None:
        if self.engine == LOCAL and self.into is not None:
            raise UsageError("--into needs Spark, which has the catalog; leave out --engine local")
        if self.engine == LOCAL and is_uri(self.out):
            raise UsageError(f"--out {self.out} needs Spark, which writes to URIs; leave out --engine local")
        if self.into is not None and self.observed_at is None:
            raise UsageError("--into needs --observed-at TIME, the time of what the tables say")
        if self.observed_at is not None:
            instant(self.observed_at)
        if self.engine == LOCAL and self.master is not None:
            raise UsageError("--master has no effect with --engine local; leave out one of the two")
        if self.engine == LOCAL and self.conf:
            raise UsageError("--conf has no effect with --engine local; leave out one of the two")
        parse_settings(self.conf)
        self.check_asked()
        if isinstance(self.place, str) and is_connect(chosen_master(self.master, os.environ, self.settings)):
            raise UsageError(
                f"--out {self.out}: of a Spark Connect session only the server can write there, and the page is made "
                "here; give a folder that both see"
            )

    @property
    def place(self) -> Place:
        """Return where tables and the page are written."""
        return place_of(self.out)

    @property
    def asks_for_spark(self) -> bool:
        """Return whether an option, or spark-submit, says that Spark runs the job."""
        given = self.master is not None or bool(self.conf) or self.into is not None or is_uri(self.out)
        return given or is_submitted(os.environ)

    @property
    def sink(self) -> Sink | None:
        """Return where the tables are written too; None without --into."""
        if self.into is None or self.observed_at is None:
            return None
        observed_at = instant(self.observed_at)
        return Sink(self.into, self.run_id or observed_at.isoformat(), observed_at)

    def check_asked(self) -> None:
        """Raise UsageError for questions or assumptions that make no sense."""
        asked_of(self.ask, self.assume)

    @property
    def settings(self) -> dict[str, str]:
        """Return the Spark settings of --conf."""
        return parse_settings(self.conf)

    @property
    def asked(self) -> tuple[Asked, ...]:
        """Return the questions of --ask, with the values of --assume."""
        return asked_of(self.ask, self.assume)


def run_options(engine: str, small: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return a decorator that adds the options of `RunOptions` to a command.

    `engine` is the engine unless one is named; `small` says in words what auto runs in this process.
    """
    options = (
        click.option(
            "--out",
            metavar="FOLDER",
            default=OUT_DEFAULT,
            show_default=True,
            help="Output folder, or a URI that Spark writes to, such as s3a://…: tables/, report.html, report.json, "
            "report.prom; those of an earlier run are replaced.",
        ),
        click.option(
            "--engine",
            type=click.Choice((AUTO, LOCAL, SPARK)),
            default=engine,
            show_default=True,
            help=f"Where to run, with equal results: local is this process, spark is Spark; auto is local {small} "
            "unless --master, --conf or a URI is given or spark-submit runs the command.",
        ),
        click.option(
            "--master",
            metavar="URL",
            help="Spark master, or sc://HOST:PORT of a Spark Connect server (default: spark-submit's, or local[*], all "
            "cores of this machine).",
        ),
        click.option(
            "--conf",
            multiple=True,
            metavar="KEY=VALUE",
            help="Spark setting, such as spark.executor.memory=4g. May be repeated.",
        ),
        click.option(
            "--ask",
            multiple=True,
            type=click.Choice(tuple(QUESTIONS)),
            metavar="QUESTION",
            help=f"Also answer a question about every cluster: {_QUESTIONS}. May be repeated.",
        ),
        click.option(
            "--assume",
            multiple=True,
            metavar="NAME=VALUE",
            help="Assumption of --ask; the page lists names, units and defaults. May be repeated.",
        ),
        click.option(
            "--into",
            metavar="CATALOG.SCHEMA",
            help="Also write the rows to the tables of the same names in this schema of a Spark catalog, with run_id "
            "and observed_at; those of the same run are replaced, those of others stay.",
        ),
        click.option(
            "--observed-at",
            metavar="TIME",
            help="For --into: time at which the clusters were observed, in UTC unless it has a zone.",
        ),
        click.option("--run-id", metavar="NAME", help="For --into: name of the run (default: --observed-at)."),
        click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON."),
        click.option("--quiet", is_flag=True, help="Show no progress bar."),
    )

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        command = idle_without("--into", "--run-id", "--observed-at")(command)
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def run_info(kind: Literal["fleet", "dumps"], title: str, **facts: Any) -> RunInfo:
    """Return the report's record of this run: the command line and the version beside `facts`."""
    command = encodable(shlex.join([PROGRAM, *without_secrets(sys.argv[1:])]))
    return RunInfo(kind=kind, title=title, command=command, version=version(PROGRAM), **facts)


def without_secrets(words: Iterable[str]) -> list[str]:
    """Return the words of a command, without the values of settings that Spark itself shows to nobody.

    >>> without_secrets(["--conf", "spark.hadoop.fs.s3a.secret.key=abc", "--conf=spark.executor.memory=4g"])
    ['--conf', 'spark.hadoop.fs.s3a.secret.key=(redacted)', '--conf=spark.executor.memory=4g']
    """
    return [_SECRET.sub(r"\g<1>(redacted)", word) for word in words]


def run_job(job: Callable[[Engine, Any], None], info: RunInfo, options: RunOptions, *, is_small: bool) -> Report:
    """Run `job(engine, progress)` on the engine that is chosen, and return the report of the tables that it wrote.

    `is_small` work needs no Spark. The page is written and its summary printed.
    """
    with ending_at_once():
        from spark_analysis.session.progress import progress

    local = is_local(options.engine, asks_for_spark=options.asks_for_spark, is_small=is_small)
    shown, place = partial(progress, quiet=options.quiet), options.place
    named = attrs.evolve(info, out=str(place))
    if isinstance(place, str):
        from spark_analysis.uri_folder import uri_folder

        with started_engine(options, local=False) as engine, uri_folder(session_of(engine), place) as folder:
            with claimed_folder(folder.desk, "report", WRITTEN):
                folder.claim()
                job(engine, shown)
                folder.fetch_tables()
                result = load_report(folder.desk, named)
                _write(result, folder.desk)
            folder.send(ELECTIONS)
    else:
        with claimed_folder(place, "report", WRITTEN):
            with started_engine(options, local=local) as engine:
                job(engine, shown)
            result = load_report(place, named)
            _write(result, place)
    _show(result, options)
    return result


def is_local(engine: str, *, asks_for_spark: bool, is_small: bool) -> bool:
    """Return whether to run in this process."""
    return engine == LOCAL or (engine == AUTO and is_small and not asks_for_spark)


@contextmanager
def started_engine(options: RunOptions, *, local: bool) -> Iterator[Engine]:
    """Yield the engine; with Spark, its session has the settings of the options and ends with the block."""
    if local:
        yield LocalEngine()
        return
    with ending_at_once():
        from spark_analysis.session.spark_session import spark_session
    if not options.quiet:
        click.echo("Starting Spark …", err=True)
    with spark_session(app_name=PROGRAM, master=options.master, options=options.settings) as spark:
        yield sink_engine(spark, options.sink, options.asked)


def _write(result: Report, folder: Path) -> None:
    write_page(folder, result)
    write_for_programs(folder, result)


def _show(result: Report, options: RunOptions) -> None:
    if options.as_json:
        click.echo(summary_json(result))
    else:
        console = Console(highlight=False, soft_wrap=True)
        cut = LINE_LENGTH_MAX if console.is_terminal else None
        console.print(terminal_summary(result, line_length_max=cut))
        click.echo(f"Report: {printable(inside(options.place, REPORT_NAME))}")
