"""Define `brokerside report`, which reports on real clusters from dumps and metadata logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import click

from broker.cli import EXIT_REFUSED, FiniteRange, printable, takes
from broker.cli_options import COUNT, idle_without, live_options
from broker.known import Known
from broker.wording import listed
from placement.balance.measures import TOLERANCE
from placement.formats.racks import Racks
from spark_analysis.answers.registry import Asked, asked_of
from spark_analysis.cli.commands import PROGRAM
from spark_analysis.cli.interrupts import ending_at_once
from spark_analysis.cli.live_options import LiveOptions, dump_or_live, snapshot_of
from spark_analysis.cli.running import AUTO, LOCAL_BYTES_MAX, RunOptions, run_info, run_job, run_options
from spark_analysis.engines import Engine
from spark_analysis.live.cluster import LIVE
from spark_analysis.report.figures import plural
from spark_analysis.report.gates import GATES, failures, gates_of
from spark_analysis.report.model import GivenInput, Report
from spark_analysis.report.since import courses
from spark_analysis.sources.dumps import FORMATS, DumpInput, read_zones, size_bytes, stated_of
from spark_analysis.sources.inputs import (
    STDIN,
    STDIN_NAME,
    are_empty,
    by_dates,
    check_inputs,
    dump_inputs,
    moment,
    racks_in,
    saved_inputs,
    skipped_in,
    with_groups_of,
    with_sizes_of,
)
from spark_analysis.sources.listing import name_of
from spark_analysis.sources.series import grouping_of
from spark_analysis.tables.place import Place, inside

_EMPTY: Final = (
    "is empty: with a filter such as --under-replicated-partitions, kafka-topics --describe prints nothing when no "
    "partition is concerned. Nothing to report."
)
_RACKS: Final = (
    'Racks of the brokers: JSON {"1": "west"}, or CSV lines broker,rack; for several clusters '
    '{"prod": {"1": "west"}}, or cluster,broker,rack.'
)
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@attrs.frozen(kw_only=True)
class ReportOptions(RunOptions, LiveOptions):
    """Hold the options of `brokerside report`: inputs, and facts that the inputs lack."""

    dumps: tuple[str, ...]
    racks: Path | None
    sizes: tuple[str, ...]
    named_format: str | None
    min_isr: int | None
    down: str | None
    alive: str | None
    moments: bool | None
    at: tuple[str, ...]
    strict: bool
    fail_on: str | None
    tolerance: float
    groups: tuple[str, ...]
    group_zones: Path | None

    def check_asked(self) -> None:
        """Raise UsageError for questions or assumptions that make no sense, or groups that nothing asks about."""
        asked_of(self.ask, self.assume, given_groups=bool(self.groups))

    @property
    def named(self) -> tuple[str, ...]:
        """Return what names the inputs: the dumps, and the live cluster."""
        return (*self.dumps, *(() if self.live is None and self.dumps else (dump_or_live(None, self, name="DUMP..."),)))

    @property
    def beside(self) -> tuple[str, ...]:
        """Return the files that are given for dumps, and are none."""
        return (*(str(each) for each in (self.racks, self.group_zones) if each is not None), *self.sizes, *self.groups)

    @property
    def asked(self) -> tuple[Asked, ...]:
        """Return the questions of --ask, with the values of --assume, about the groups of --groups."""
        return asked_of(self.ask, self.assume, given_groups=bool(self.groups))


@click.command()
@idle_without("--fail-on", "--tolerance")
@idle_without("--groups", "--group-zones")
@click.argument("dumps", nargs=-1, metavar="DUMP...")
@live_options
@click.option("--racks", type=_FILE, help=_RACKS)
@click.option(
    "--sizes",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Replica sizes: output of kafka-log-dirs --describe, topicmappr's partition metadata, or Cruise Control's "
    "/partition_load. NAME is the cluster, where there are several. May be repeated.",
)
@click.option(
    "--groups",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Consumer groups for --ask consumers and --ask traffic, instead of generated ones: output of "
    "kafka-consumer-groups --describe with --members --verbose or --offsets. NAME as for --sizes. May be repeated.",
)
@click.option(
    "--group-zones",
    type=_FILE,
    help="Zones of the members of --groups: CSV lines host,zone or client id,zone; a trailing * matches a prefix.",
)
@click.option(
    "--format",
    "named_format",
    type=click.Choice(FORMATS),
    metavar="FORMAT",
    help=f"Format of the dumps: {', '.join(FORMATS)} (default: by their content).",
)
@click.option("--min-isr", type=COUNT, help="min.insync.replicas of topics whose dump does not show it.")
@click.option(
    "--moments/--separate",
    default=None,
    help="Treat dumps as successive moments of clusters, by dates or numbers in the names of files or folders, else in "
    "the order given, and by topics in common; or as separate clusters (default: moments if numbered 1-…, 2-…). With "
    "--moments, a single metadata log gives the moment before each change of its unfenced brokers.",
)
@click.option(
    "--at",
    "at",
    multiple=True,
    metavar="OFFSET|TIME",
    help="Moment of a metadata log: an offset, or a UTC time such as 2026-11-21T18:30. May be repeated.",
)
@click.option(
    "--fail-on",
    metavar="GATES",
    help=f"Exit with status 1 when a cluster fails one of these gates, separated by commas: {', '.join(GATES)}. A "
    "state that the input does not show fails its gate.",
)
@click.option(
    "--tolerance",
    type=FiniteRange(0, 100),
    metavar="PERCENT",
    default=100 * TOLERANCE,
    show_default=True,
    help="Share of replicas, leaders or bytes that may have to move before a cluster counts as uneven.",
)
@click.option("--down", metavar="IDS", help="Brokers that are down whatever the dumps show, such as 3,5 or 0-2.")
@click.option("--alive", metavar="IDS", help="Brokers that are alive whatever the dumps show.")
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with status 1 when a row was rejected, or a dump is not whole or not in --racks.",
)
@run_options(AUTO, "below a gibibyte of input")
@takes(ReportOptions)
def report(options: ReportOptions) -> int:
    """Report what is wrong with clusters, how even they are, and what to do next.

    \b
    A DUMP is a file, or NAME=FILE to name its cluster, in one of these formats:
    kafka-topics --describe; kcat -L, also -J; kafka-reassign-partitions JSON;
    Cruise Control's /load, /kafka_cluster_state and rebalance answers;
    what `brokerside snapshot` wrote. --bootstrap-server names a live cluster.
    Or it is a KRaft metadata log: the directory __cluster_metadata-0, a segment
    of it or a snapshot (*.checkpoint), with racks and settings in it.
    Files may be compressed (gzip, Zstandard); - is standard input, a pattern or a
    directory stands for its files, those in the folders below it included.

    \b
    brokerside report prod.txt stage.txt --racks racks.csv --out today
    brokerside report /var/lib/kafka/__cluster_metadata-0 --moments
    brokerside report daily/ --moments --fail-on leaderless,under-replicated
    """
    racks = None if options.racks is None else racks_in(str(options.racks))
    at = tuple(map(moment, options.at))
    live = snapshot_of(options)
    named = dump_inputs(options.named, options.named_format, options.moments, at, beside=options.beside)
    stated = stated_of(options.down, options.alive)
    named = tuple(attrs.evolve(dump, stated=stated) for dump in named)
    with saved_inputs(with_groups_of(with_sizes_of(named, options.sizes), options.groups), live) as inputs:
        if are_empty(inputs):
            for dump in inputs:
                click.echo(f"{printable(dump.source or dump.path)} {_EMPTY}")
            return 0
        return _report(inputs, racks, options)


def _report(inputs: Sequence[DumpInput], racks: Racks | None, options: ReportOptions) -> int:
    check_inputs(inputs)
    zones = None if options.group_zones is None else read_zones(str(options.group_zones))
    gates = () if options.fail_on is None else gates_of(options.fail_on)
    with ending_at_once():
        from spark_analysis.jobs import analyse_dumps

    def job(engine: Engine, progress: Any) -> None:
        analyse_dumps(
            engine,
            inputs,
            racks,
            options.place,
            progress=progress,
            min_insync_replicas_default=options.min_isr,
            overwrite=True,
            asked=options.asked,
            zones=zones,
        )

    given = tuple(given_input(dump, options) for dump in inputs)
    info = run_info(
        "dumps",
        _title(inputs),
        tolerance=options.tolerance / 100,
        given=given,
        asked=options.asked,
        grouping=grouping_of(inputs),
        skipped=skipped_in(options.named),
    )
    if options.moments is None:
        _hint_at_moments(inputs)
    result = run_job(job, info, options, is_small=sum(size_bytes(dump.path) for dump in inputs) < LOCAL_BYTES_MAX)
    _warn(result, options.place)
    failed = failures(result, gates, tolerance=options.tolerance / 100)
    for sentence in failed:
        click.echo(f"{PROGRAM}: failed: {printable(sentence)}", err=True)
    known = [Known.of_text(row.facts.known) for row in result.current_rows if row.facts.known]
    lacks = any(each.partial or each.racks_missing for each in known)
    return EXIT_REFUSED if failed or (options.strict and (result.rows_rejected or lacks)) else 0


def _hint_at_moments(inputs: Sequence[DumpInput]) -> None:
    """Print a hint at --moments on standard error where names of dumps differ in a date alone."""
    if len(inputs) == 1 or inputs[0].series is not None:
        return
    counts = Counter(each.cluster for each in by_dates(inputs) if each.moment)
    several = [str(name) for name, count in counts.items() if count > 1]
    if several:
        said = f"{listed(several[:3], len(several))}: several dates; --moments orders them, and says what got worse"
        click.echo(printable(f"{PROGRAM}: note: {said}"), err=True)


def _warn(result: Report, out: Place) -> None:
    """Say on standard error which inputs cannot be used, and how many rows were put aside."""
    if result.unusable.count:
        first = result.unusable.rows[0].fault or ""
        click.echo(
            f"{PROGRAM}: warning: {result.unusable.count:,} of {plural(result.inputs.count, 'input')} cannot be used; "
            f"the first: {printable(first)}",
            err=True,
        )
    for one in courses(result):
        if one.missed:
            said = f"there is no dump of {one.name} of {one.missed}: its last is of {one.moment}, and is looked at"
            click.echo(f"{PROGRAM}: warning: {printable(said)}", err=True)
    if result.rows_rejected:
        click.echo(
            f"{PROGRAM}: warning: {result.rows_rejected:,} of {result.rows_in:,} rows were put aside; the reasons are "
            f"in {printable(inside(out, 'report.html'))} and {printable(inside(out, 'tables/rejects'))}",
            err=True,
        )


def given_input(dump: DumpInput, options: ReportOptions) -> GivenInput:
    """Return the arguments by which the what-if commands take the last moment of an input, completed as here."""
    path = dump.source or dump.path
    alone = STDIN_NAME if path == STDIN else name_of(path)
    name = dump.cluster or dump.name
    facts = (
        ("--racks", None if options.racks is None else str(options.racks)),
        ("--sizes", dump.sizes),
        ("--at", options.at[-1] if options.at else None),
        ("--format", options.named_format),
        ("--min-isr", None if options.min_isr is None else str(options.min_isr)),
        ("--down", options.down),
        ("--alive", options.alive),
        ("--command-config", options.command_config if path.startswith(LIVE) else None),
    )
    return GivenInput(
        name=dump.name or path,
        dump=path if path.startswith(LIVE) or name in (alone, path) else f"{name}={path}",
        options=tuple(part for name, value in facts if value is not None for part in (name, value)),
        cluster=dump.cluster,
        moment=dump.moment,
        missed=dump.missed,
    )


def _title(inputs: Sequence[DumpInput]) -> str:
    names = list(dict.fromkeys(dump.cluster or dump.name or dump.path for dump in inputs))
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
