"""Compact or recover a partition as its broker would, on a copy or in place.

Source: org.apache.kafka.storage.internals.log.{Cleaner, LogCleanerManager, LogConfig, LogSegment.recover}, 4.3.1;
KIP-226 for the default of all brokers. The offline use is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from broker.config import Scope, lookup, parse
from broker.errors import BrokersideError, CorruptDataError, UsageError
from broker.ids import Offset
from broker.units import MIB, TimeMs
from broker.wording import counted, listed
from log.batches.scan import header_chunks
from log.compaction import CleanerOptions, CompactionEstimate, SourceLog, clean, estimate_compaction, log_to_clean
from log.log_config import LogConfig
from log.metadata.image import CLUSTER_DEFAULT, RESOURCE_BROKER, RESOURCE_TOPIC, Resource
from log.metadata.replay import Replay
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown, unfinished_files
from log.segments.file_names import LOG, SWAP, TXN_INDEX
from log.segments.txn_index import AbortedTransaction, aborted_transactions
from log.storage import Storage
from log.storage.checkpoints import LOG_START_FILE, RECOVERY_POINT_FILE, read_offset_checkpoint
from log.storage.directory_names import parse_directory_name
from log.storage.metadata_files import CLEAN_SHUTDOWN_FILE
from log.tools.sources import METADATA_DIRECTORY, SourceFile, SourceFolder, is_log_file, metadata_files
from log.tools.verify_segment import verify_segment


class NotCompactableError(CorruptDataError):
    """A log has a batch that cannot be read, so that nothing of it is compacted."""


def estimate_of_files(files: Sequence[SourceFile], *, now_ms: TimeMs) -> CompactionEstimate:
    """Return the estimate for the segments of one partition, in order of their offsets.

    Raises CorruptDataError at damage, and InputError for a file that cannot be read.
    """
    aborted: list[AbortedTransaction] = []
    for file in files:
        index = file.sibling(TXN_INDEX)
        if index.exists():
            aborted.extend(aborted_transactions(index.view(), source=index.shown))
    sources = [SourceLog(file.view(), file.shown) for file in files]
    return estimate_compaction(sources, now_ms=now_ms, aborted=aborted)


def estimate_of_pass(folder: SourceFolder, *, include_active: bool, now_ms: TimeMs) -> CompactionEstimate:
    """Return the estimate for the segments that a pass over a partition's directory takes.

    Raises NotCompactableError at damage in any segment, the active one included.
    """
    swapped_in = [file for file in folder.unfinished if file.kind == LOG and file.stage == SWAP]
    files = folder.of_kind(LOG)
    for file in (*files, *swapped_in):
        report = verify_segment(file, (), keep_going=False, advance=lambda _: None)
        damages = [finding for finding in report.findings if finding.file == file.shown]
        if damages:  # What is wrong in an index is built anew; the cleaner asks none.
            raise _refusal(damages[0].line())
    try:
        return estimate_of_files(files if include_active else files[:-1], now_ms=now_ms)
    except CorruptDataError as damage:
        raise _refusal(str(damage)) from None


def _refusal(damage: str) -> NotCompactableError:
    return NotCompactableError(f"{damage}; nothing is compacted, `brokerside log recover` cuts the log there")


COPY_BYTES: Final = 4 * MIB
NAMES_SHOWN_MAX: Final = 3


@attrs.frozen
class Extent:
    """Count the segments, bytes and records in a partition's directory, from batch headers."""

    segment_count: int
    size_bytes: int
    record_count: int


@attrs.frozen
class ReworkResult:
    """Report the result for one partition: extent before and after, log end, and remarks."""

    directory: str
    before: Extent
    after: Extent
    log_start_offset: Offset
    log_end_offset: Offset
    remarks: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class CompactionRequest:
    """Ask for a cleaning pass: its time, its memory, and whether to roll the active segment first."""

    now_ms: TimeMs
    options: CleanerOptions = attrs.field(factory=CleanerOptions)
    include_active: bool = False


def extent(storage: Storage, directory: str) -> Extent:
    """Return the counts of segments, bytes and records in a directory."""
    names = [name for name in storage.list(directory) if name.endswith(LOG)]
    records = 0
    for name in names:
        file = storage.open(f"{directory}/{name}")
        records += sum(int(chunk.record_count.sum(dtype="int64")) for chunk in header_chunks(file.view()))
        file.close()
    sizes = [storage.size_bytes(f"{directory}/{name}") for name in names]
    return Extent(len(names), sum(sizes), records)


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


def last_shutdowns(storage: Storage, directories: Sequence[str]) -> list[LastShutdown]:
    """Return the last shutdown of each log from the files beside its directory, which are read once for all.

    Raises CorruptDataError for a damaged checkpoint.
    """
    clean = storage.exists(CLEAN_SHUTDOWN_FILE)
    recovery_points = read_offset_checkpoint(storage, RECOVERY_POINT_FILE)
    log_starts = read_offset_checkpoint(storage, LOG_START_FILE)
    partitions = [parse_directory_name(directory).partition for directory in directories]
    return [
        LastShutdown(
            clean=clean,
            recovery_point=recovery_points.get(partition, Offset(0)),
            log_start_offset=log_starts.get(partition, Offset(0)),
        )
        for partition in partitions
    ]


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
    storage: Storage, directory: str, config: LogConfig, last_shutdown: LastShutdown, request: CompactionRequest
) -> ReworkResult:
    """Clean a whole partition once; raise CorruptDataError or RefusedError as a cleaner does."""
    before = extent(storage, directory)
    remarks = left_behind_lines(storage.list(directory), is_done=True)
    log = PartitionLog.open(storage, directory, config, last_shutdown, now_ms=request.now_ms)
    log.update_high_watermark(log.log_end_offset)
    if request.include_active and log.active_segment.size_bytes > 0:
        log.roll(now_ms=request.now_ms)
    target = log_to_clean(log, None, now_ms=request.now_ms)
    if target.cleanable_bytes > 0:
        cleaned = clean(target, now_ms=request.now_ms, options=request.options)
        remarks.append(f"cleaned up to offset {cleaned.end_offset}")
        if cleaned.stats.keyless_count:
            verb = "was" if cleaned.stats.keyless_count == 1 else "were"
            remarks.append(f"{counted(cleaned.stats.keyless_count, 'record')} without a key {verb} dropped")
        if cleaned.end_offset < target.end_offset:
            remarks.append("the map was full: more passes clean the rest")
    else:
        remarks.append("nothing to clean: every segment but the active one ends the clean part, or an open transaction")
    return _closed(log, before, request.now_ms, tuple(remarks))


def recover_partition(
    storage: Storage, directory: str, config: LogConfig, last_shutdown: LastShutdown, now_ms: TimeMs
) -> ReworkResult:
    """Open a partition as after a crash, from its recovery point on, and close it; raises CorruptDataError."""
    before = extent(storage, directory)
    names = storage.list(directory)
    log = PartitionLog.open(storage, directory, config, attrs.evolve(last_shutdown, clean=False), now_ms=now_ms)
    log.update_high_watermark(log.log_end_offset)
    change = _closed(log, before, now_ms, ())
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
        after=extent(log.storage, log.directory),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        remarks=remarks,
    )


Configs = Mapping[Resource, Mapping[str, str]]

OF_ALL_BROKERS: Final[Mapping[str, str]] = {
    "index.interval.bytes": "log.index.interval.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
}
"""The settings that recovery writes by, and the names of their defaults for all brokers."""


def settings_not_given(log_dir: Path, topics: Sequence[str], config: LogConfig) -> Iterator[str]:
    """Yield a warning for each setting of a topic that the metadata log in `log_dir` has and `config` has not."""
    shown = log_dir / METADATA_DIRECTORY
    if not shown.is_dir():
        return
    try:
        configs = _configs(log_dir)
    except BrokersideError as error:
        yield f"whether topics have settings of their own is not known: {error}"
        return
    used = {"index.interval.bytes": config.index_interval_bytes, "segment.index.bytes": config.index_size_bytes}
    for topic in topics:
        for name, value in used.items():
            stored = _stored(configs, topic, name)
            if stored is not None and stored != value:
                yield (
                    f"topic {topic} has {name}={stored} in {shown}, and is recovered with {value}; its indexes will"
                    f" differ from a broker's: give --config {name}={stored}"
                )


def _configs(log_dir: Path) -> Configs:
    replay = Replay(metadata_files(log_dir))
    for _ in replay.steps():
        pass
    return replay.image().configs


def _stored(configs: Configs, topic: str, name: str) -> int | None:
    """Return the value of a topic's setting in the metadata log, None where it has none that a broker would take."""
    own = configs.get(Resource(RESOURCE_TOPIC, topic), {}).get(name)
    default = configs.get(Resource(RESOURCE_BROKER, CLUSTER_DEFAULT), {}).get(OF_ALL_BROKERS[name])
    text = default if own is None else own
    if text is None:
        return None
    try:
        value = parse(lookup(name, Scope.TOPIC), text)
    except UsageError:
        return None
    assert isinstance(value, int), (name, value)
    return value
