"""Share the options, the reading and the output of the what-if commands, which take one cluster each.

It decides how `DUMP` with its options becomes one `ClusterView`, and how an answer leaves: tables for people, JSON on
standard output with --json, files in the folder of --out. pyspark is not imported. Exit status: 0 done; 1
a finding or a refusal; 2 unusable input or options.

`read_cluster` yields a `Cluster`: the view with racks, sizes and the default of min.insync.replicas, and the
capacities. Every column of the view is in memory when it is yielded; the block only keeps a saved standard input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import click
import pyarrow as pa
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from broker.cli import printable
from broker.cli_options import COUNT, live_options
from broker.cluster import ClusterView
from broker.errors import InputError, UsageError
from broker.known import known_of
from broker.min_isr import with_min_isr
from broker.units import parse_size
from broker.wording import counted, listed
from placement.formats.capacity import CAPACITY_BYTES_MAX, Capacities, read_capacities
from placement.formats.parsed import ParsedDump
from spark_analysis.cli.commands import PROGRAM
from spark_analysis.cli.live_options import LiveOptions, dump_or_live, snapshot_of
from spark_analysis.sources.dated_names import of_path
from spark_analysis.sources.dumps import FORMATS, DumpInput, as_stated, read_named, stated_of, with_racks, with_sizes
from spark_analysis.sources.files import read_small_file
from spark_analysis.sources.inputs import are_empty, by_dates, dump_inputs, moment, racks_in, saved_inputs
from spark_analysis.tables.answers import answer_text, write_answer

_SUMMARY: Final = "{kind}.json"
_NAMES_SHOWN_MAX: Final = 10
_WIDTH_MIN: Final = 100
_WIDTH_PIPED: Final = 1 << 14  # More than any table needs: none is made wider than its cells.


@attrs.frozen(kw_only=True)
class AnswerOptions:
    """Hold the options that say where an answer goes."""

    out: Path | None
    as_json: bool


@attrs.frozen(kw_only=True)
class ClusterOptions(AnswerOptions, LiveOptions):
    """Hold the options that turn a DUMP into one cluster, and those of its answer."""

    cluster: str | None
    racks: str | None
    sizes: str | None
    capacity: str | None
    at: str | None
    named_format: str | None
    min_isr: int | None
    partial: bool
    down: str | None
    alive: str | None


@attrs.frozen(kw_only=True)
class Cluster:
    """Hold one cluster as read: its view, its capacities, and the account of the rows of its dump."""

    view: ClusterView
    capacities: Capacities
    account: ParsedDump


def cluster_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options of `ClusterOptions` to a command; the argument DUMP is the command's own."""
    command = live_options(command)
    for option in reversed(
        (
            click.option(
                "--racks",
                metavar="FILE",
                help='Racks of the brokers: JSON {"1": "west"}, or CSV lines broker,rack.',
            ),
            click.option(
                "--sizes",
                metavar="FILE",
                help="Sizes of the replicas: what kafka-log-dirs --describe printed, topicmappr's partition metadata, "
                "or Cruise Control's /partition_load.",
            ),
            click.option(
                "--capacity",
                metavar="FILE",
                help="Capacities of the brokers: Cruise Control's capacity.json, or CSV lines "
                "broker,disk_bytes,network_in,network_out (bytes, bytes a second; -1 is every other broker).",
            ),
            click.option(
                "--cluster",
                metavar="NAME",
                help="Cluster to take where DUMP describes several, without the date in its name its last moment.",
            ),
            click.option(
                "--at",
                metavar="OFFSET|TIME",
                help="Moment of a metadata log: an offset, or a UTC time such as 2026-11-21T18:30 (default: its end).",
            ),
            click.option(
                "--format",
                "named_format",
                type=click.Choice(FORMATS),
                metavar="FORMAT",
                help=f"Format of the dump: {', '.join(FORMATS)} (default: by its content).",
            ),
            click.option("--min-isr", type=COUNT, help="min.insync.replicas of topics that do not show theirs."),
            click.option(
                "--partial",
                is_flag=True,
                help="Take the partitions listed as the whole cluster although some are missing; the answer says so. "
                "Without this flag such a dump is refused with status 2.",
            ),
            click.option("--down", metavar="IDS", help="Brokers that are down whatever the dump shows, such as 3,0-2."),
            click.option("--alive", metavar="IDS", help="Brokers that are alive whatever the dump shows."),
        )
    ):
        command = option(command)
    return command


def answer_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options of `AnswerOptions` to a command."""
    for option in reversed(
        (
            click.option(
                "--out",
                type=click.Path(file_okay=False, path_type=Path),
                help="Folder for the answer as JSON and Parquet tables: a new one, or one of an earlier answer.",
            ),
            click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON."),
        )
    ):
        command = option(command)
    return command


@contextmanager
def read_cluster(dump: str | None, options: ClusterOptions) -> Iterator[Cluster]:
    """Yield the one cluster that `dump` and the options describe; without `dump`, that of --bootstrap-server.

    Rows that were put aside are counted on standard error. Raises UsageError when several clusters are described and
    --cluster names none of them, InputError for input that cannot be used or, without --partial, is not whole.
    """
    moments = () if options.at is None else (moment(options.at),)
    beside = tuple(each for each in (options.racks, options.sizes, options.capacity) if each is not None)
    named_dump = dump_or_live(dump, options)
    live = snapshot_of(options) if dump is None else None
    with saved_inputs(dump_inputs((named_dump,), options.named_format, None, moments, beside=beside), live) as inputs:
        named = inputs if len(inputs) == 1 else _chosen_input(inputs, options.cluster)
        if are_empty(named):
            raise InputError("is empty; nothing describes a cluster", source=named[0].source or named[0].path)
        account = read_named(named[0])
        account = _with_racks(account, named[0], options)
        view = _chosen(account.clusters, options.cluster if len(inputs) == 1 else None, named[0])
        if view.racks_missing is not None:
            raise UsageError(f"--racks {options.racks}: {view.racks_missing}")
        _warn_of_rejects(account)
        for note in () if options.at is None else account.notes:  # What a log says of the moment asked for.
            click.echo(printable(f"{PROGRAM}: warning: {note}"), err=True)
        yield Cluster(view=_completed(view, account, options), capacities=_capacities(options), account=account)


def view_of(dump: str, **given: Any) -> ClusterView:
    """Return the cluster that `dump` and the options in `given` describe, for a command with few of them."""
    options: dict[str, Any] = {each.name: given.get(each.name) for each in attrs.fields(ClusterOptions)}
    with read_cluster(dump, ClusterOptions(**options)) as cluster:
        return cluster.view


def throttle_of(text: str | None) -> int | None:
    """Return the bytes a second that --throttle names, None without it."""
    throttle = None if text is None else int(parse_size(text))
    if throttle == 0:
        raise UsageError("--throttle is 0; a rate is at least 1 byte a second")
    return throttle


def give_answer(
    options: AnswerOptions,
    *,
    kind: str,
    summary: Mapping[str, Any],
    tables: Mapping[str, pa.Table],
    shown: Sequence[RenderableType],
    views: Sequence[ClusterView],
    texts: Mapping[str, str] | None = None,
    summary_name: str | None = None,
) -> None:
    """Print `shown`, or `summary` as JSON with --json, and write both with `tables` and `texts` under --out.

    `tables` are named without their ending. In `out` the summary is `kind`.json unless `summary_name` says otherwise.
    What is known of each of `views` stands above `shown`, and in the summary.
    """
    known = [known_of(view) for view in views]
    if known:
        summary = {**summary, "known": [each.as_json() for each in known]}
    as_text = answer_text(summary)
    if options.out is not None:  # First, as whoever reads what is printed may stop reading.
        files: dict[str, pa.Table | str] = {f"{name}.parquet": table for name, table in tables.items()}
        files |= {summary_name or _SUMMARY.format(kind=kind): as_text, **(texts or {})}
        write_answer(options.out, kind, files)
    if options.as_json:
        click.echo(as_text, nl=False)
    else:
        console = Console(highlight=False, soft_wrap=True)
        # A terminal that is narrower wraps lines; a table made narrower would break its cells. A pipe has no width.
        console.width = max(console.width, _WIDTH_MIN) if console.is_terminal else _WIDTH_PIPED
        for line in (line for each in known for line in each.lines()):
            console.print(Text(printable(line)))
        for each in shown:
            console.print(each)
    if options.out is not None:
        click.echo(f"Written: {printable(str(options.out))}", err=options.as_json)


def shown_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, left_count: int = 1) -> Table:
    """Return a table for the terminal: the first `left_count` columns flush left, numbers flush right."""
    table = Table(title=Text(title), title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < left_count else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def _chosen_input(inputs: Sequence[DumpInput], cluster: str | None) -> tuple[DumpInput, ...]:
    """Return the input named `cluster`, else the last moment of the cluster of that name."""
    found = [each for each in inputs if each.name == cluster]
    if not found and cluster is not None:
        dated = [each for each in by_dates(inputs) if each.cluster == cluster]
        for each in dated[-1:] if len(dated) > 1 else ():
            said = f"--cluster {cluster}: taken is the last of {counted(len(dated), 'moment')}, {each.moment}"
            click.echo(printable(f"{PROGRAM}: note: {said}"), err=True)
        found = dated[-1:]
    if len(found) != 1:
        raise UsageError(_which([str(each.name) for each in inputs], cluster, "DUMP"))
    return (found[0],)


def _chosen(views: Sequence[ClusterView], cluster: str | None, dump: DumpInput) -> ClusterView:
    found = [view for view in views if cluster in (None, view.name)]
    if not found:
        found = [view for view in views if of_path(view.name, has_ending=False).cluster == cluster]
    if len(found) != 1:
        raise UsageError(_which([view.name for view in views], cluster, dump.source or dump.path))
    return found[0]


def _which(names: Sequence[str], cluster: str | None, source: str) -> str:
    shown = listed([repr(name) for name in names[:_NAMES_SHOWN_MAX]], len(names))
    if cluster is None:
        return f"{source} describes {len(names)} clusters ({shown}); choose one with --cluster NAME"
    return f"--cluster {cluster!r}: no single cluster of {source} bears this name; there are {shown}"


def _completed(view: ClusterView, account: ParsedDump, options: ClusterOptions) -> ClusterView:
    """Return the view with sizes and the default of min.insync.replicas."""
    if not view.partitions.count:
        what = f"has {counted(len(view.brokers), 'broker')} and no partition, so there is nothing to look at"
        raise InputError(what, source=account.source)
    if options.partial and not view.wholeness.is_whole:
        view = view.as_partial()
    if view.wholeness.refusal is not None:
        what = f"{view.wholeness.refusal}; kafka-topics --describe without a filter lists all, and --partial goes on"
        raise InputError(what, source=account.source)
    parsed = attrs.evolve(account, clusters=(view,))
    sized = with_sizes(parsed, options.sizes)
    if sized.account is not None:
        _warn_of_rejects(sized.account)
    (view,) = sized.parsed.clusters
    return with_min_isr(as_stated(view, stated_of(options.down, options.alive)), options.min_isr)


def _with_racks(account: ParsedDump, dump: DumpInput, options: ClusterOptions) -> ParsedDump:
    if options.racks is None:
        return account
    return with_racks(account, racks_in(options.racks), dump)


def _capacities(options: ClusterOptions) -> Capacities:
    if options.capacity is None:
        return Capacities()
    data = read_small_file(options.capacity, size_bytes_max=CAPACITY_BYTES_MAX)
    return read_capacities(data, source=options.capacity)


def _warn_of_rejects(account: ParsedDump) -> None:
    if account.rows_rejected:
        first = account.rejects[0]
        place = first.source if first.line is None else f"{first.source}:{first.line}"
        text = (
            f"{PROGRAM}: warning: {account.rows_rejected:,} of {account.rows_in:,} rows were put aside; "
            f"the first: {place}: {first.reason}"
        )
        click.echo(printable(text), err=True)
