"""Run `brokerside log stats`, which measures logs and estimates the bytes that compaction would save.

Source: ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import click
from rich.console import Console
from rich.table import Table

from broker.cli import EXIT_REFUSED, printable, takes
from broker.cli_options import idle_beside
from broker.cluster import Int64Array
from broker.errors import CorruptDataError, InputError
from broker.ids import Offset
from broker.units import TimeMs, format_size
from broker.wording import counted
from broker.workers import Advance, Workers
from log.cli.output import (
    JOBS,
    JSON,
    NOW,
    PATHS,
    QUIET,
    file_cost,
    folder_cost,
    print_error,
    print_lines,
    progress,
    time_ms,
)
from log.compaction import CompactionEstimate
from log.tools.findings import Finding, of_refusal
from log.tools.open_log import (
    Cleanable,
    NotCompactableError,
    OpenLog,
    held_text,
    last_shutdowns,
    measure_segment,
)
from log.tools.sources import SourceFile, SourceFolder, expand_all, segment_folders
from log.tools.stats import SegmentStats
from log.tools.timestamps import doubtful, time_text

PERCENT: Final = 100
_FilePart: TypeAlias = tuple[SourceFile, Offset]
"""A segment, and the start offset of its log."""


def segment_json(stats: SegmentStats, now_ms: TimeMs) -> dict[str, Any]:
    """Return every figure as JSON; distributions are [from, to, count] with half-open ranges."""
    found = (stats.timestamp_min, stats.timestamp_max)
    return {
        "sizeBytes": stats.size_bytes,
        "batches": stats.batch_count,
        "records": stats.record_count,
        "firstOffset": stats.first_offset,
        "lastOffset": stats.last_offset,
        "codecs": {
            name: {
                "batches": codec.batch_count,
                "records": codec.record_count,
                "storedBytes": codec.stored_size_bytes,
                "unpackedBytes": codec.unpacked_size_bytes,
                "ratio": round(codec.ratio, 3),
            }
            for name, codec in sorted(stats.codecs.items())
        },
        "keys": {
            "distinct": stats.keys.count,
            "isExact": stats.keys.is_exact,
            "null": stats.null_key_count,
            "tombstones": stats.tombstone_count,
        },
        "keyBytes": stats.key_size_bytes,
        "valueBytes": stats.value_size_bytes,
        "headers": stats.header_count,
        "batchBytes": {"max": stats.batch_size_bytes_max, "classes": list(classes(stats.batch_size_classes))},
        "batchRecords": {"max": stats.batch_record_count_max, "classes": list(classes(stats.batch_record_classes))},
        "timestamps": {
            "min": stats.timestamp_min,
            "max": stats.timestamp_max,
            "none": stats.no_timestamp_count,
            "late": stats.late_count,
            "latenessMsMax": stats.lateness_ms_max,
            "doubts": sorted({doubt for each in found if each is not None if (doubt := doubtful(each, now_ms))}),
        },
        "transactions": {
            "batches": stats.transactional_batch_count,
            "commits": stats.commit_count,
            "aborts": stats.abort_count,
        },
        "otherControlRecords": stats.other_control_count,
        "producers": len(stats.producer_ids),
        "damages": stats.damage_count,
        "damagedBytes": stats.damaged_size_bytes,
        "batchesNotRead": stats.unread_batch_count,
    }


def compaction_json(estimate: CompactionEstimate, held: Sequence[str] = ()) -> dict[str, Any]:
    """Return the estimate of a compaction as JSON; `held` says which transactions keep it from more."""
    return {
        "bytesBefore": estimate.stats.bytes_read,
        "bytesAfter": estimate.stats.bytes_written,
        "recordsBefore": estimate.stats.records_read,
        "recordsAfter": estimate.stats.records_written,
        "recordsWithoutKey": estimate.stats.keyless_count,
        "isComplete": estimate.is_complete,
        "canBeCompacted": _can_be_compacted(estimate),
        "heldBy": list(held),
    }


def _can_be_compacted(estimate: CompactionEstimate) -> bool:
    """Return whether there are keys to compact by; a cleaner drops all records without a key."""
    return estimate.distinct_key_count > 0 or not estimate.stats.keyless_count


def classes(counts: Int64Array) -> Iterator[tuple[int, int, int]]:
    """Yield the non-empty classes of a distribution: from, to (exclusive), count."""
    for digits, count in enumerate(counts.tolist()):
        if count:
            yield (1 << digits) >> 1, 1 << digits, count


def segment_rows(stats: SegmentStats, now_ms: TimeMs) -> Iterator[tuple[str, str]]:
    """Yield each figure as name and value."""
    yield "size", f"{format_size(stats.size_bytes)} ({counted(stats.size_bytes, 'byte')})"
    yield "batches, records", f"{stats.batch_count:,}, {stats.record_count:,}"
    if stats.first_offset is not None and stats.last_offset is not None:
        missing = stats.last_offset + 1 - stats.first_offset - stats.record_count
        yield "offsets", f"{stats.first_offset} to {stats.last_offset}, {missing:,} of them without a record"
    for name, codec in sorted(stats.codecs.items()):
        share = f"{counted(codec.record_count, 'record')} in {counted(codec.batch_count, 'batch', 'batches')}"
        yield f"codec {name}", f"{share}, {format_size(codec.stored_size_bytes)}, ratio {codec.ratio:.2f}"
    about = "" if stats.keys.is_exact else "about "
    yield "different keys", f"{about}{stats.keys.count:,}"
    yield "null keys, tombstones", f"{stats.null_key_count:,}, {stats.tombstone_count:,}"
    yield "keys, values", f"{format_size(stats.key_size_bytes)}, {format_size(stats.value_size_bytes)}"
    if stats.header_count:
        yield "record headers", f"{stats.header_count:,}"
    yield "bytes a batch", _distribution(stats.batch_size_classes, stats.batch_size_bytes_max)
    yield "records a batch", _distribution(stats.batch_record_classes, stats.batch_record_count_max)
    yield from _time_rows(stats, now_ms)
    if stats.transactional_batch_count or stats.commit_count or stats.abort_count:
        ends = f"{stats.commit_count:,} committed, {stats.abort_count:,} aborted"
        yield "transactions", f"{counted(stats.transactional_batch_count, 'batch', 'batches')}, {ends}"
    if stats.other_control_count:
        yield "other control records", f"{stats.other_control_count:,}"
    yield "producers with an id", f"{len(stats.producer_ids):,}"
    if stats.damage_count:
        skipped = counted(stats.damaged_size_bytes, "byte")
        yield "damage", f"{counted(stats.damage_count, 'place')}, {skipped} passed over"
    if stats.unread_batch_count:
        batches = counted(stats.unread_batch_count, "batch", "batches")
        yield "not read", f"records of {batches}, which stand for more than is read; that is no damage"


def compaction_row(estimate: CompactionEstimate) -> tuple[str, str]:
    """Return the savings of a compaction as name and value."""
    if not _can_be_compacted(estimate):
        return "compaction", "no keys: cannot be compacted"
    before = estimate.stats.bytes_read
    saved = estimate.bytes_saved * PERCENT / before if before else 0
    kept = f"{estimate.stats.records_written:,} of {counted(estimate.stats.records_read, 'record')} stay"
    more = "" if estimate.is_complete else "; more in later passes"
    if estimate.stats.keyless_count:
        more += f"; {estimate.stats.keyless_count:,} without a key would be lost"
    return "compaction would save", f"{format_size(estimate.bytes_saved)} ({saved:.1f} %), {kept}{more}"


def _time_rows(stats: SegmentStats, now_ms: TimeMs) -> Iterator[tuple[str, str]]:
    if stats.timestamp_min is not None and stats.timestamp_max is not None:
        yield "timestamps", f"{time_text(TimeMs(stats.timestamp_min))} to {time_text(TimeMs(stats.timestamp_max))}"
        doubts = (doubtful(each, now_ms) for each in (stats.timestamp_min, stats.timestamp_max))
        yield from (("", doubt) for doubt in dict.fromkeys(doubts) if doubt is not None)
        late = counted(stats.late_count, "record")
        yield "late", f"{late}, up to {stats.lateness_ms_max:,} ms" if stats.late_count else "none"
    if stats.no_timestamp_count:
        yield "without timestamp", f"{stats.no_timestamp_count:,}"


def _distribution(counts: Int64Array, largest: int) -> str:
    found = ", ".join(f"{start}-{end - 1}: {count:,}" for start, end, count in classes(counts))
    return f"{found}; largest {largest:,}" if found else "none"


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
def stats_command(options: StatsCommand) -> int:
    """Measure the contents of logs and estimate the bytes that compaction would save.

    It prints codecs, keys, batches, times and transactions.

    \b
    brokerside log stats orders-0/00000000000000000000.log
    brokerside log stats --total-only --json /var/lib/kafka
    """
    folders = segment_folders(expand_all(options.paths))
    starts = [last.log_start_offset for last in last_shutdowns(folders, print_error)]
    found, is_refused = list[Cleanable](), False
    readings = 2 if options.compaction else 1
    with (
        Workers(options.jobs) as workers,
        progress("Reading", sum(map(folder_cost, folders)) * readings, quiet=options.quiet) as advance,
    ):
        parts = [(file, start) for folder, start in zip(folders, starts, strict=True) for file in folder.files]
        total, damaged = _measured(parts, options, workers, advance)
        if options.compaction:
            work = partial(_estimate, damaged=damaged, now_ms=options.now_ms)
            started = list(zip(folders, starts, strict=True))
            for each in workers.in_order(work, started, cost=lambda part: folder_cost(part[0]), advance=advance):
                if isinstance(each, Cleanable):
                    found.append(each)
                else:
                    print_error(each.text)
                    is_refused |= not each.is_limit
    if len(folders) > 1:  # Offsets of different partitions have nothing to do with each other.
        total.first_offset = total.last_offset = None
    held = [held_text(each.held_by, options.now_ms) for each in found if each.held_by is not None]
    _show("total", total, _summed([each.estimate for each in found]), options, held)
    is_damaged = any(not found.is_limit for found in damaged.values())
    return EXIT_REFUSED if is_refused or is_damaged else 0


def _measured(
    parts: Sequence[_FilePart], options: StatsCommand, workers: Workers, advance: Advance
) -> tuple[SegmentStats, dict[str, Finding]]:
    """Show the statistics of each segment; return their sum, and the damage or refusal of each segment that has one."""
    total, damaged = SegmentStats(), dict[str, Finding]()
    measured = workers.in_order(_measure, parts, cost=lambda part: file_cost(part[0]), advance=advance)
    for (file, _), stats in zip(parts, measured, strict=True):
        if isinstance(stats, InputError):
            damaged[file.shown] = of_refusal(stats)
            print_error(str(stats))
            continue
        if stats.damage is not None:
            damaged[file.shown] = stats.damage
        total.merge(stats)
        if not options.total_only:
            _show(file.shown, stats, None, options)
    return total, damaged


def _measure(part: _FilePart, advance: Advance) -> SegmentStats | InputError:
    """Return the statistics of a segment, or why it cannot be read."""
    try:
        file, log_start_offset = part
        return measure_segment(file, advance, log_start_offset=log_start_offset)
    except InputError as refusal:
        return refusal


def _show(
    name: str,
    stats: SegmentStats,
    estimate: CompactionEstimate | None,
    options: StatsCommand,
    held: Sequence[str] = (),
) -> None:
    now_ms = options.now_ms
    if options.as_json:
        extra = {} if estimate is None else {"compaction": compaction_json(estimate, held)}
        print_lines([json.dumps({"file": name, **segment_json(stats, now_ms), **extra})])
        return
    table = Table(title=printable(name), title_justify="left", show_header=False)
    for what, value in (*segment_rows(stats, now_ms), *(() if estimate is None else (compaction_row(estimate),))):
        table.add_row(what, value)
    for text in held:
        table.add_row("held", printable(text))
    Console(highlight=False, markup=False).print(table)


@attrs.frozen
class _Refused:
    """Hold why compaction is not estimated, and whether the log is sound and only stands for more than is read."""

    text: str
    is_limit: bool


def _estimate(
    part: tuple[SourceFolder, Offset], _: Advance, *, damaged: Mapping[str, Finding], now_ms: TimeMs
) -> Cleanable | _Refused:
    """Return what compaction would save in one partition, or the damage that forbids it."""
    folder, log_start_offset = part
    try:
        for found in (damaged[file.shown] for file in folder.files if file.shown in damaged):
            raise NotCompactableError.of(found)
        return OpenLog(folder).estimate(
            include_active=True, now_ms=now_ms, log_start_offset=log_start_offset, is_verified=True
        )
    except (CorruptDataError, InputError) as damage:
        is_limit = isinstance(damage, NotCompactableError) and damage.is_limit
        return _Refused(f"what compaction would save in {folder.shown}: {damage}", is_limit)


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
