"""Compact or recover a partition as its broker would, on a copy or in place.

Source: org.apache.kafka.storage.internals.log.{Cleaner, LogCleanerManager, LogSegment.recover}, 4.4.0. The offline use
is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal

import attrs

from broker.errors import CorruptDataError
from broker.ids import Offset
from broker.units import MIB, TimeMs
from broker.wording import counted, listed
from log.compaction import CleanerOptions, clean, log_to_clean
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown, unfinished_files
from log.segments.file_names import LOG
from log.storage import Storage
from log.tools.open_log import Extent, held_text
from log.tools.sources import SourceFolder, is_log_file
from log.tools.transactions import LogTransactions

COPY_BYTES: Final = 4 * MIB
NAMES_SHOWN_MAX: Final = 3


@attrs.frozen(kw_only=True)
class Rework:
    """Hold the options of a compaction or recovery; `out` None changes the files in place."""

    kind: Literal["compact", "recover"]
    config: LogConfig = attrs.field(factory=LogConfig)
    now_ms: TimeMs
    out: Path | None = None
    topics: frozenset[str] = frozenset()
    include_active: bool = False
    """Whether to roll the active segment first, so that it is compacted too."""
    cleaner: CleanerOptions = attrs.field(factory=CleanerOptions)
    recovery_point: Offset | None = None


@attrs.frozen
class ReworkResult:
    """Report the result for one partition: extent before and after, log end, and remarks."""

    directory: str
    before: Extent
    after: Extent
    log_start_offset: Offset
    log_end_offset: Offset
    remarks: tuple[str, ...] = ()


def copy_folder(folder: SourceFolder, target: Storage, directory: str, advance: Callable[[int], None]) -> None:
    """Copy a folder's files, with their modification times, into a new directory of another storage.

    So are those that a broker was putting in the place of others, as it is they that hold the records then.
    """
    target.make_directory(directory)
    for file in (*folder.files, *folder.unfinished):
        path = f"{directory}/{file.name}"
        data = file.view()
        copied = target.open(path, create=True)
        for start in range(0, len(data), COPY_BYTES):
            copied.append(data[start : start + COPY_BYTES])
            advance(min(COPY_BYTES, len(data) - start))
        copied.close()
        target.set_modified_ms(path, folder.storage.modified_ms(file.path))


def left_behind_lines(names: Sequence[str], *, is_done: bool) -> list[str]:
    """Return lines on the unfinished and deleted files that opening a log removes or completes.

    Kafka's LogLoader removes files that are marked as deleted or were not finished, and puts complete ones in place.
    With `is_done` it has happened already.
    """
    removed, complete = unfinished_files(sorted(names))
    removes, puts = ("removed", "put") if is_done else ("removes", "puts")
    what = {
        f"{removes} {{}} that a broker had marked as deleted or not finished: {{}}": removed,
        f"{puts} {{}} of a broker in the place of those that they replace: {{}}": complete,
    }
    return [
        text.format(counted(len(found), "file"), listed(found[:NAMES_SHOWN_MAX], len(found)))
        for text, found in what.items()
        if found
    ]


def compact_partition(
    storage: Storage, directory: str, rework: Rework, last_shutdown: LastShutdown, transactions: LogTransactions
) -> ReworkResult:
    """Clean a partition once below its last stable offset; raise CorruptDataError or RefusedError as a cleaner does."""
    before, now_ms = Extent.of(storage, directory), rework.now_ms
    remarks = left_behind_lines(storage.list(directory), is_done=True)
    log = PartitionLog.open(storage, directory, rework.config, last_shutdown, now_ms=now_ms)
    if log.log_end_offset < transactions.end_offset:
        raise CorruptDataError(f"opening it cut the log from {transactions.end_offset} to {log.log_end_offset}")
    log.update_high_watermark(log.log_end_offset)
    if log.last_stable_offset > transactions.last_stable_offset:  # Without a snapshot it knows of no producers.
        log.update_high_watermark(transactions.last_stable_offset)
    if rework.include_active and log.active_segment.size_bytes > 0:
        log.roll(now_ms=now_ms)
    target = log_to_clean(log, None, now_ms=now_ms)
    if target.cleanable_bytes > 0:
        cleaned = clean(target, now_ms=now_ms, options=rework.cleaner)
        remarks.append(f"cleaned up to offset {cleaned.end_offset}")
        if cleaned.stats.keyless_count:
            verb = "was" if cleaned.stats.keyless_count == 1 else "were"
            remarks.append(f"{counted(cleaned.stats.keyless_count, 'record')} without a key {verb} dropped")
        if cleaned.end_offset < target.end_offset:
            remarks.append("the map was full: more passes clean the rest")
    else:
        remarks.append("nothing to clean: no segment but the active one is dirty below the last stable offset")
    if transactions.open:
        remarks.append(held_text(transactions.open[0], now_ms))
    return _closed(log, before, now_ms, tuple(remarks))


def recover_partition(storage: Storage, directory: str, rework: Rework, last_shutdown: LastShutdown) -> ReworkResult:
    """Open a partition as after a crash, from its recovery point on, and close it; raises CorruptDataError."""
    before = Extent.of(storage, directory)
    names = storage.list(directory)
    last_shutdown = attrs.evolve(last_shutdown, clean=False)
    log = PartitionLog.open(storage, directory, rework.config, last_shutdown, now_ms=rework.now_ms)
    log.update_high_watermark(log.log_end_offset)
    change = _closed(log, before, rework.now_ms, ())
    left = set(storage.list(directory))
    gone = sorted(name for name in names if name not in left and is_log_file(name) and name.endswith(LOG))
    cut = before.size_bytes - change.after.size_bytes
    remarks = left_behind_lines(names, is_done=True)
    _, complete = unfinished_files(names)
    if not complete:  # What takes the place of segments has another size: nothing can be said of cuts.
        remarks += [f"{counted(cut, 'byte')} {'was' if cut == 1 else 'were'} cut"] if cut else ["nothing was cut"]
    if last_shutdown.recovery_point > change.log_start_offset:
        remarks.append(f"what is below the recovery point, {last_shutdown.recovery_point}, was taken as it is")
    remarks.extend(f"segment {name} was removed" for name in gone)
    return attrs.evolve(change, remarks=tuple(remarks))


def _closed(log: PartitionLog, before: Extent, now_ms: TimeMs, remarks: tuple[str, ...]) -> ReworkResult:
    log.flush(now_ms=now_ms, include_active_end=True)
    log.run_scheduled(TimeMs(now_ms + log.config.file_delete_delay_ms + 1))
    log.close(now_ms=now_ms)
    return ReworkResult(
        directory=log.directory,
        before=before,
        after=Extent.of(log.storage, log.directory),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        remarks=remarks,
    )
