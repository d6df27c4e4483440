"""Run `brokerside log stats`, which measures logs and estimates the bytes that compaction would save.

Source: ours.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import attrs
import click
from rich.console import Console
from rich.table import Table

from broker.cli import EXIT_REFUSED, printable, takes
from broker.cli_options import idle_beside
from broker.errors import CorruptDataError, InputError
from broker.units import TimeMs
from broker.workers import Advance, Workers
from log.cli.options import JOBS, JSON, NOW, PATHS, QUIET, time_ms
from log.cli.output import file_cost, folder_cost, print_error, print_lines, progress
from log.compaction import CompactionEstimate
from log.tools.compactable import estimate_of_files
from log.tools.sources import SourceFile, SourceFolder, expand_all, segment_folders
from log.tools.stats import SegmentStats, measure_segment
from log.tools.stats_rows import compaction_json, compaction_row, segment_json, segment_rows


@attrs.frozen(kw_only=True)
class StatsCommand:
    """Hold the options of `brokerside log stats`: the files to measure and the form of the output."""

    paths: tuple[Path, ...]
    total_only: bool
    compaction: bool
    jobs: int | None
    now_ms: TimeMs = attrs.field(converter=time_ms)
    as_json: bool
    quiet: bool


@click.command("stats")
@idle_beside("--no-compaction", "--now-ms")
@PATHS
@click.option("--total-only", is_flag=True, help="Print only the sum of all segments.")
@click.option(
    "--compaction/--no-compaction", default=True, help="Estimate what compaction would save, or not (default: do)."
)
@NOW
@JOBS
@JSON
@QUIET
@takes(StatsCommand)
def command(options: StatsCommand) -> int:
    """Measure the contents of logs and estimate the bytes that compaction would save.

    It prints codecs, keys, batches, times and transactions.

    \b
    brokerside log stats orders-0/00000000000000000000.log
    brokerside log stats --total-only --json /var/lib/kafka
    """
    folders = segment_folders(expand_all(options.paths))
    estimates: list[CompactionEstimate | None] = []
    readings = 2 if options.compaction else 1
    with (
        Workers(options.jobs) as workers,
        progress("Reading", sum(map(folder_cost, folders)) * readings, quiet=options.quiet) as advance,
    ):
        total, is_whole = _measured(folders, options, workers, advance)
        if options.compaction:
            work = partial(_estimate, now_ms=options.now_ms)
            for found in workers.in_order(work, folders, cost=folder_cost, advance=advance):
                if isinstance(found, str):
                    print_error(found)
                estimates.append(None if isinstance(found, str) else found)
    if len(folders) > 1:  # Offsets of different partitions have nothing to do with each other.
        total.first_offset = total.last_offset = None
    _show("total", total, _summed([each for each in estimates if each is not None]), as_json=options.as_json)
    return 0 if is_whole and not total.damage_count and None not in estimates else EXIT_REFUSED


def _measured(
    folders: Sequence[SourceFolder], options: StatsCommand, workers: Workers, advance: Advance
) -> tuple[SegmentStats, bool]:
    """Show the statistics of each segment; return their sum, and whether every segment could be read."""
    total, is_whole = SegmentStats(), True
    files = [file for folder in folders for file in folder.files]
    measured = workers.in_order(_measure, files, cost=file_cost, advance=advance)
    for file, stats in zip(files, measured, strict=True):
        if isinstance(stats, InputError):
            print_error(str(stats))
            is_whole = False
            continue
        total.merge(stats)
        if not options.total_only:
            _show(file.shown, stats, None, as_json=options.as_json)
    return total, is_whole


def _measure(file: SourceFile, advance: Advance) -> SegmentStats | InputError:
    """Return the statistics of a segment, or why it cannot be read."""
    try:
        return measure_segment(file, advance)
    except InputError as refusal:
        return refusal


def _show(name: str, stats: SegmentStats, estimate: CompactionEstimate | None, *, as_json: bool) -> None:
    if as_json:
        extra = {} if estimate is None else {"compaction": compaction_json(estimate)}
        print_lines([json.dumps({"file": name, **segment_json(stats), **extra})])
        return
    table = Table(title=printable(name), title_justify="left", show_header=False)
    for what, value in (*segment_rows(stats), *(() if estimate is None else (compaction_row(estimate),))):
        table.add_row(what, value)
    Console(highlight=False, markup=False).print(table)


def _estimate(folder: SourceFolder, _: Advance, *, now_ms: TimeMs) -> CompactionEstimate | str:
    """Return what compaction would save in one partition, or the damage that forbids it."""
    try:
        return estimate_of_files(folder.files, now_ms=now_ms)
    except (CorruptDataError, InputError) as damage:
        return f"what compaction would save in {folder.shown}: {damage}"


def _summed(estimates: Sequence[CompactionEstimate]) -> CompactionEstimate | None:
    """Return the estimates of several partitions as one."""
    if not estimates:
        return None
    names = [field.name for field in attrs.fields(type(estimates[0].stats))]
    sums = {name: sum(getattr(each.stats, name) for each in estimates) for name in names}
    return CompactionEstimate(
        stats=type(estimates[0].stats)(**sums),
        distinct_key_count=sum(each.distinct_key_count for each in estimates),
        is_complete=all(each.is_complete for each in estimates),
    )
