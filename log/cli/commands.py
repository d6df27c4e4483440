"""`brokerside log`: read, check, measure and rework log files without a broker.

Standard output carries the answer, standard error the progress, the problems and the warnings. Exit status 0 is all
well, 1 damage found or something refused, 2 wrong usage. Input is never written to, but by `--in-place`, and then only
after the plan was shown and confirmed.

Source: `dump` follows kafka.tools.DumpLogSegments; the rest is ours.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from broker.cli import EXIT_REFUSED, EXIT_USAGE, CommandGroup, printable
from broker.config import Scope, lookup, parse
from broker.errors import CorruptDataError, InputError, UsageError
from broker.ids import INT32_MAX, Offset
from broker.units import MIB, TimeMs, parse_size
from log.compaction import CleanerOptions, CompactionEstimate, SourceLog, estimate_compaction
from log.compaction.offset_map import SLOT_SIZE_BYTES
from log.indexes.txn_index import AbortedTransaction, aborted_transactions
from log.log_config import LogConfig
from log.metadata.durations import Story
from log.metadata.reading import Aside
from log.metadata.replay import Replay
from log.segments.file_names import LOG, TXN_INDEX
from log.tools.dump_options import DECODERS, DumpOptions
from log.tools.dump_rows import file_rows
from log.tools.dump_text import file_lines
from log.tools.findings import Checked, Finding, counted, of_error, of_refusal, passed_over
from log.tools.history_text import event_line, event_row, summary_lines, summary_row
from log.tools.metadata_source import metadata_files
from log.tools.problems import Problems
from log.tools.rework_plan import Plan, Rework, brokers_kept_out, check_copies, plan_lines, run_plans
from log.tools.sources import SourceFolder, expand_all
from log.tools.stats import SegmentTally, tally_segment
from log.tools.stats_rows import compaction_json, compaction_row, tally_json, tally_rows
from log.tools.verify import verify

Advance: TypeAlias = Callable[[int], None]
TableWriter: TypeAlias = Callable[[Sequence[SourceFolder], Path, Problems, Advance], Iterable[str]]
"""Writes the batches and records of folders as tables into a directory, notes damage, gives a line for each table."""

BAR_SIZE_BYTES_MIN: Final = 64 * MIB  # Read in about a tenth of a second; a bar for less only flickers.
LINES_PER_WRITE: Final = 1000
_PATHS = click.argument(
    "paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="PATH..."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
_QUIET = click.option("--quiet", is_flag=True, help="No progress bar.")
_KEEP_GOING = click.option("--keep-going", is_flag=True, help="Step over damage and read the rest.")
_NOW = click.option("--now-ms", type=click.IntRange(0), help="The time to go by, in ms since 1970; now if not given.")


@click.group(cls=CommandGroup)
def log() -> None:
    """Segments, indexes and checkpoints on disk, without a broker.

    \b
    A PATH is a file, a partition's directory, or a broker's whole log directory.

    \b
    brokerside log dump --print-data-log orders-0/00000000000000000000.log
    brokerside log verify --keep-going /var/lib/kafka
    brokerside log stats orders-0
    """


@log.command()
@_PATHS
@click.option("--deep-iteration", "deep", is_flag=True, help="Print the records too, not only the batches.")
@click.option("--print-data-log", "print_data", is_flag=True, help="Print keys and values; implies --deep-iteration.")
@click.option("--skip-record-metadata", is_flag=True, help="Of records, print only keys and values.")
@click.option("--index-sanity-check", is_flag=True, help="Of indexes, only do the check that a starting broker does.")
@click.option("--verify-index-only", is_flag=True, help="Compare indexes with the log without printing them.")
@click.option("--key-decoder", type=click.Choice(sorted(DECODERS)), default="utf-8", show_default=True)
@click.option("--value-decoder", type=click.Choice(sorted(DECODERS)), default="utf-8", show_default=True)
@click.option("--cluster-metadata-decoder", "metadata", is_flag=True, help="Decode the records of cluster metadata.")
@click.option("--start-offset", type=click.IntRange(0), default=0, help="First offset to print.")
@click.option("--end-offset", type=click.IntRange(0), help="Offset to stop before.")
@click.option("--max-bytes", "bytes_max", type=click.IntRange(1, INT32_MAX), default=INT32_MAX, help="Bytes to read.")
@_KEEP_GOING
@_JSON
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Write Parquet tables here instead.")
@_QUIET
@click.pass_context
def dump(
    context: click.Context, /, paths: tuple[Path, ...], as_json: bool, out: Path | None, quiet: bool, **how: Any
) -> int:
    """Print what files hold, as kafka-dump-log does.

    \b
    brokerside log dump orders-0/00000000000000000000.log --deep-iteration
    brokerside log dump orders-0 --print-data-log --value-decoder hex --start-offset 100 --end-offset 200
    brokerside log dump __cluster_metadata-0 --cluster-metadata-decoder
    brokerside log dump orders-0 --json
    brokerside log dump /var/lib/kafka --out tables
    """
    how["print_data"] = how["print_data"] or how["metadata"]
    how["deep"] = how["deep"] or how["print_data"]
    options = DumpOptions(**how)
    if options.end_offset is not None and options.end_offset < options.start_offset:
        raise UsageError(f"--end-offset {options.end_offset} is below --start-offset {options.start_offset}")
    folders = expand_all(paths)
    problems = Problems()
    if out is not None:
        if not options.is_whole or options.start_offset or options.metadata:
            raise UsageError(
                "--out writes whole segments, values as bytes; --start-offset, --end-offset, --max-bytes and"
                " --cluster-metadata-decoder do not go with it"
            )
        _check_out(paths, out)
        _write_tables(context.find_object(dict), _with_segments(folders), out, problems, quiet)
        folders = []
    for file in (file for folder in folders for file in folder.files):
        rows = file_rows(file, options, problems)
        try:
            _print(map(json.dumps, rows) if as_json else file_lines(file, options, problems))
        except CorruptDataError as error:
            problems.damage(of_error(file.shown, error, file.view() if file.kind == LOG else None))
        except InputError as refusal:
            if not options.keep_going:
                raise
            problems.damage(of_refusal(refusal))
    for line in (*problems.lines(), *problems.damage_lines()):
        click.echo(printable(line), err=True)
    return EXIT_REFUSED if problems.has_damage else 0


@log.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path), metavar="PATH")
@click.option("--topic", "topics", multiple=True, help="Only events of this topic. May be repeated.")
@click.option("--summary", "is_summary", is_flag=True, help="Only the sums, not the events.")
@_KEEP_GOING
@_JSON
def history(path: Path, topics: tuple[str, ...], is_summary: bool, keep_going: bool, as_json: bool) -> int:
    """Tell what happened to a cluster, from its metadata log.

    \b
    PATH is __cluster_metadata-0, a log directory that has it, a segment of it, or a snapshot (*.checkpoint).

    \b
    Told are elections (unclean ones too), who left and joined the ISR, brokers fenced and for how long,
    reassignments, topics and settings; then for how long partitions were leaderless, under min ISR or under-replicated.
    The sums are of all topics.

    \b
    brokerside log history /var/lib/kafka/__cluster_metadata-0
    brokerside log history 00000000000000000000.log --topic orders --json
    """
    aside = Aside() if keep_going else None
    replay = Replay(metadata_files(path), aside=aside)
    story = Story(replay)
    events = (event for event in story.events() if not topics or event.topic in topics)
    lines = (json.dumps(event_row(each), ensure_ascii=False) if as_json else event_line(each) for each in events)
    try:
        _print(line for line in lines if not is_summary)
    except CorruptDataError as error:
        click.echo(printable(str(error)), err=True)
        return EXIT_REFUSED
    summary = story.summary()
    _print([json.dumps(summary_row(summary), ensure_ascii=False)] if as_json else summary_lines(summary))
    told = [*replay.disagreements, *map(str, () if aside is None else aside.errors)]
    for line in told:
        click.echo(printable(line), err=True)
    return EXIT_REFUSED if told else 0


@log.command("verify")
@_PATHS
@_KEEP_GOING
@_JSON
@_QUIET
def verify_command(paths: tuple[Path, ...], keep_going: bool, as_json: bool, quiet: bool) -> int:
    """Tell whether files are damaged; if so, exit status 1.

    Checked are checksums, structure, order, indexes and checkpoints.

    \b
    brokerside log verify orders-0
    brokerside log verify --keep-going --json /var/lib/kafka
    """
    folders = expand_all(paths)
    total, damage_count = Checked(), 0
    with _progress("Verifying", _size_bytes(folders), quiet) as advance:
        for folder in folders:
            for report in verify(folder, keep_going=keep_going, advance=advance):
                total += report.checked
                damage_count += len(report.findings)
                _print(_finding_json(finding) if as_json else finding.line() for finding in report.findings)
    if as_json:
        _print([json.dumps({"damages": damage_count, **attrs.asdict(total)})])
    else:
        _print(_verdict(total, damage_count))
    return EXIT_REFUSED if damage_count else 0


@log.command()
@_PATHS
@click.option("--total-only", is_flag=True, help="Only the sum over all segments.")
@click.option("--compaction/--no-compaction", default=True, help="Whether to find out what compaction would save.")
@_NOW
@_JSON
@_QUIET
def stats(
    paths: tuple[Path, ...], total_only: bool, compaction: bool, now_ms: int | None, as_json: bool, quiet: bool
) -> int:
    """Measure what logs are made of, and what compaction would save.

    Told are codecs, keys, batches, times and transactions.

    \b
    brokerside log stats orders-0/00000000000000000000.log
    brokerside log stats --total-only --json /var/lib/kafka
    """
    folders = _with_segments(expand_all(paths))
    total = SegmentTally()
    estimates: list[CompactionEstimate | None] = []
    is_whole = True
    with _progress("Reading", _size_bytes(folders) * (2 if compaction else 1), quiet) as advance:
        for file in (file for folder in folders for file in folder.files):
            try:
                tally = tally_segment(file, advance)
            except InputError as refusal:
                click.echo(printable(str(refusal)), err=True)
                is_whole = False
                continue
            total.merge(tally)
            if not total_only:
                _show_tally(file.shown, tally, None, as_json)
        for folder in folders if compaction else ():
            estimates.append(_estimate(folder, _now(now_ms)))
            advance(_size_bytes([folder]))
    if len(folders) > 1:  # Offsets of different partitions have nothing to do with each other.
        total.first_offset = total.last_offset = None
    _show_tally("total", total, _summed([each for each in estimates if each is not None]), as_json)
    return 0 if is_whole and not total.damage_count and None not in estimates else EXIT_REFUSED


def _rework_options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Work on a copy, made here."),
        click.option("--in-place", is_flag=True, help="Change PATH itself; the plan is shown and must be confirmed."),
        click.option("--yes", is_flag=True, help="Do not ask before --in-place."),
        click.option("--topic", "topics", multiple=True, help="Of a log directory, only this topic. May be repeated."),
        click.option("--config", "settings", multiple=True, metavar="NAME=VALUE", help="A topic setting of Kafka's."),
        _NOW,
        _QUIET,
    )
    for option in reversed(options):  # The help lists first what is applied last.
        command = option(command)
    return _PATHS(command)


@log.command()
@_rework_options
@click.option("--include-active", is_flag=True, help="Roll the active segment first, so that it is compacted too.")
@click.option("--map-size", default="128 MiB", show_default=True, help="Memory for keys, 24 bytes each.")
def compact(include_active: bool, map_size: str, **how: Any) -> int:
    """Compact partitions once, as a broker's cleaner does.

    The broker must be stopped. While one runs on the log directory, --in-place is refused.

    \b
    brokerside log compact orders-0 --out compacted
    brokerside log compact /var/lib/kafka --topic orders --in-place
    """
    options = CleanerOptions(map_slot_count=parse_size(map_size) // SLOT_SIZE_BYTES)
    now_ms = _now(how.pop("now_ms"))
    return _rework(Rework(kind="compact", now_ms=now_ms, include_active=include_active, cleaner=options), **how)


@log.command()
@_rework_options
@click.option("--recovery-point", type=click.IntRange(0), help="Offset to recover from; the checkpoint's if not given.")
def recover(recovery_point: int | None, **how: Any) -> int:
    """Recover partitions as a broker does after a crash.

    From the recovery point on every batch is checked, the log is cut at damage, and indexes are built anew.

    The broker must be stopped. While one runs on the log directory, --in-place is refused.

    \b
    brokerside log recover orders-0 --out recovered
    brokerside log recover orders-0 --in-place --recovery-point 0
    """
    point = None if recovery_point is None else Offset(recovery_point)
    now_ms = _now(how.pop("now_ms"))
    return _rework(Rework(kind="recover", now_ms=now_ms, recovery_point=point), **how)


def _rework(
    rework: Rework,
    *,
    paths: tuple[Path, ...],
    out: Path | None,
    in_place: bool,
    yes: bool,
    topics: tuple[str, ...],
    settings: tuple[str, ...],
    quiet: bool,
) -> int:
    if (out is None) == (not in_place):
        raise UsageError("say where to work: --out DIR for a copy, or --in-place, one of the two")
    rework = attrs.evolve(rework, config=_config(settings), out=out, topics=frozenset(topics))
    if out is not None:
        _check_out(paths, out)
    plans = [plan for folder in expand_all(paths) for plan in Plan.of(folder, rework)]
    if not plans:
        raise UsageError("no partition's directory is named that the options select")
    if out is not None:
        check_copies(plans, out)
    with brokers_kept_out(plans, rework):
        for plan in plans:
            _print(plan_lines(plan, rework))
        if in_place and not yes and not click.confirm("Change these files?", err=True):
            return EXIT_USAGE
        with _progress("Working", sum(plan.size_bytes for plan in plans), quiet) as advance:
            try:
                _print(run_plans(plans, rework, advance))
            except CorruptDataError as damage:
                click.echo(printable(str(damage)), err=True)
                return EXIT_REFUSED
    return 0


def _config(settings: Sequence[str]) -> LogConfig:
    values = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--config has {text!r}; the form is NAME=VALUE, such as segment.bytes=1048576")
        values[name] = parse(lookup(name, Scope.TOPIC), value)
    return LogConfig.parse(values)


def _with_segments(folders: Sequence[SourceFolder]) -> list[SourceFolder]:
    """Return the folders with their segments only; raises UsageError if there are none."""
    found = [attrs.evolve(folder, files=folder.of_kind(LOG)) for folder in folders]
    found = [folder for folder in found if folder.files]
    if not found:
        first = folders[0].shown if folders[0].is_whole else folders[0].files[0].shown
        raise UsageError(f"{first}: neither this nor anything else named is or holds a segment")
    return found


def _check_out(paths: Sequence[Path], out: Path) -> None:
    """Raise UsageError if output would go into one of the directories that are read."""
    for path in paths:
        if path.is_dir() and out.resolve().is_relative_to(path.resolve()):
            raise UsageError(f"--out {out} lies in {path}, which is only read")


def _now(now_ms: int | None) -> TimeMs:
    return TimeMs(time.time_ns() // 1_000_000 if now_ms is None else now_ms)


def _size_bytes(folders: Sequence[SourceFolder]) -> int:
    return sum(file.size_bytes for folder in folders for file in folder.of_kind(LOG))


def _print(lines: Iterable[str]) -> None:
    """Print lines, many at a time; what stands before an error is printed."""
    held: list[str] = []
    try:
        for line in lines:
            held.append(line if line.isprintable() else printable(line))
            if len(held) == LINES_PER_WRITE:
                click.echo("\n".join(held))
                held.clear()
    finally:
        if held:
            click.echo("\n".join(held))


@contextmanager
def _progress(title: str, size_bytes: int, quiet: bool) -> Iterator[Advance]:
    """Give what to call with bytes done; show a bar where somebody looks and it takes long enough."""
    if quiet or size_bytes < BAR_SIZE_BYTES_MIN or not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = (TextColumn(title), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=size_bytes)
        yield lambda count: bar.advance(task, count)


def _write_tables(
    joined: dict[str, TableWriter] | None, folders: Sequence[SourceFolder], out: Path, problems: Problems, quiet: bool
) -> None:
    if joined is None:
        raise UsageError("--out needs pyarrow; it is part of `brokerside log dump`")
    with _progress("Writing", _size_bytes(folders), quiet) as advance:
        _print(joined["write_tables"](folders, out, problems, advance))


def _finding_json(finding: Finding) -> str:
    return json.dumps(attrs.asdict(finding))


def _verdict(total: Checked, damage_count: int) -> Iterator[str]:
    batches, records = counted(total.batch_count, "batch", "batches"), counted(total.record_count, "record")
    damages = counted(damage_count, "damaged place") if damage_count else "no damage"
    yield f"{counted(total.file_count, 'file')}, {batches}, {records}: {damages}"
    if total.skipped_size_bytes:
        yield passed_over(total.skipped_size_bytes, total.skipped_batch_count)


def _show_tally(name: str, tally: SegmentTally, estimate: CompactionEstimate | None, as_json: bool) -> None:
    if as_json:
        extra = {} if estimate is None else {"compaction": compaction_json(estimate)}
        _print([json.dumps({"file": name, **tally_json(tally), **extra})])
        return
    table = Table(title=printable(name), title_justify="left", show_header=False)
    rows = [*tally_rows(tally), *([] if estimate is None else [compaction_row(estimate)])]
    for what, value in rows:
        table.add_row(what, value)
    Console(highlight=False, markup=False).print(table)


def _estimate(folder: SourceFolder, now_ms: TimeMs) -> CompactionEstimate | None:
    """Return what compaction would save in one partition; None, with a warning, where damage forbids it."""
    aborted: list[AbortedTransaction] = []
    try:
        for file in folder.files:
            index = file.sibling(TXN_INDEX)
            if index.exists():
                aborted.extend(aborted_transactions(index.view(), source=index.shown))
        sources = [SourceLog(file.view(), file.shown) for file in folder.files]
        return estimate_compaction(sources, now_ms=now_ms, aborted=aborted)
    except (CorruptDataError, InputError) as damage:
        click.echo(f"what compaction would save in {printable(folder.shown)}: {printable(str(damage))}", err=True)
        return None


def _summed(estimates: Sequence[CompactionEstimate]) -> CompactionEstimate | None:
    """Return the estimates of several partitions as one."""
    if not estimates:
        return None
    names = [field.name for field in attrs.fields(type(estimates[0].tally))]
    sums = {name: sum(getattr(each.tally, name) for each in estimates) for name in names}
    return CompactionEstimate(
        tally=type(estimates[0].tally)(**sums),
        distinct_key_count=sum(each.distinct_key_count for each in estimates),
        is_complete=all(each.is_complete for each in estimates),
    )
