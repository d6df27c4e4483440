"""Plan a compaction or recovery, print the plan, and carry it out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

import attrs

from broker.errors import InputError, UsageError
from broker.units import format_size
from broker.wording import counted
from broker.workers import Advance
from log.log_dir import DirectoryLock
from log.partition.recovery import LastShutdown
from log.segments.file_names import DELETED, LOG
from log.storage import FileStorage, Storage, SyncPolicy
from log.storage.directory_names import DirectoryRole, parse_directory_name
from log.tools.open_log import Extent, OpenLog, held_text, last_shutdowns
from log.tools.rework import (
    Rework,
    ReworkResult,
    compact_partition,
    copy_folder,
    left_behind_lines,
    recover_partition,
)
from log.tools.sources import SourceFolder, stage_of

FINDINGS_MAX: Final = 20


@attrs.frozen
class Plan:
    """Plan the work on one partition: its files, its log directory, and its directory's name there."""

    folder: SourceFolder
    log_dir: Path
    name: str
    last_shutdown: LastShutdown = attrs.field(factory=LastShutdown)
    """From the files of the log directory; `with_last_shutdowns` reads them."""

    @property
    def topic(self) -> str:
        """Return the topic that the partition belongs to."""
        return parse_directory_name(self.name).partition.topic

    @classmethod
    def of(cls, folder: SourceFolder, rework: Rework) -> Iterator[Plan]:
        """Yield the plan for a folder if the options select it; raise UsageError unless it is a partition's directory.

        The logs to compact of a whole log directory must be named, as nothing there says which topics are compacted.
        """
        path = Path(folder.shown).resolve()
        if not folder.is_whole:
            raise UsageError(f"{folder.files[0].shown} is not a partition's directory")
        if not folder.of_kind(LOG):
            return
        held = parse_directory_name(path.name)
        is_of_log_dir = folder.directory != ""
        if is_of_log_dir and rework.kind == "compact" and not rework.topics:
            raise UsageError("of a log directory, name the topics to compact by --topic")
        if held.role is not DirectoryRole.CURRENT and not is_of_log_dir:
            raise UsageError(f"{folder.shown} is not in use; rename it to {held.partition}, and it is taken as that")
        if held.role is not DirectoryRole.CURRENT or (rework.topics and held.partition.topic not in rework.topics):
            return
        yield cls(folder, path.parent, path.name)


def plan_lines(plan: Plan, rework: Rework) -> Iterator[str]:
    """Yield the lines that describe the planned work and its expected result.

    Raises NotCompactableError for a log to compact that cannot be read to its end.
    """
    where = "changes these files" if rework.out is None else f"works on a copy, {rework.out / plan.name}"
    storage = FileStorage(plan.log_dir, read_only=True)
    yield f"{plan.folder.shown}: {_extent_text(Extent.of(storage, plan.name))}; {where}"
    taken = [name for name in storage.list(plan.name) if rework.out is None or stage_of(name) != DELETED]
    yield from (f"  {line}" for line in left_behind_lines(taken, is_done=False))
    if rework.kind == "compact":
        yield f"  {_expected(plan, rework)}"
    else:
        findings = OpenLog(plan.folder).findings()
        yield from (f"  {finding.line()}" for finding in islice(findings, FINDINGS_MAX))
        if len(findings) > FINDINGS_MAX:
            yield f"  and {len(findings) - FINDINGS_MAX} more"
        if not findings:
            yield "  no damage was found"


def check_copies(plans: Sequence[Plan], out: Path) -> None:
    """Raise InputError if a copy's directory below `out` exists already or is used twice."""
    names: set[str] = set()
    for name in (plan.name for plan in plans):
        if name in names:
            raise InputError("two directories have this name, and their copies would be one", source=name)
        names.add(name)
        if (out / name).exists():
            raise InputError("is there already; a copy goes to a new directory", source=str(out / name))


def with_last_shutdowns(plans: Sequence[Plan], warn: Callable[[str], None]) -> list[Plan]:
    """Return the plans with the last shutdown of each log; warn of each checkpoint that cannot be read."""
    found = last_shutdowns([plan.folder for plan in plans], warn)
    return [attrs.evolve(plan, last_shutdown=last) for plan, last in zip(plans, found, strict=True)]


@contextmanager
def brokers_kept_out(plans: Sequence[Plan], rework: Rework) -> Iterator[None]:
    """Hold the locks of the log directories to change; raise LockedError where a broker runs."""
    with ExitStack() as held:
        if rework.out is None:
            for log_dir in sorted({plan.log_dir for plan in plans}):
                held.callback(DirectoryLock(FileStorage(log_dir)).release)
        yield


def run_plan(plan: Plan, rework: Rework, advance: Advance) -> Iterator[str]:
    """Carry out the plan of one partition, and yield the result; raise CorruptDataError for what cannot be read.

    A copy, and what was recovered in place, is durable once `finish` was called: one sync takes the place of eleven for
    each partition, 60 ms on a slow disk. A cleaner removes segments that it has rewritten, and syncs as Kafka does.
    """
    if rework.out is None:
        policy = SyncPolicy.AT_END if rework.kind == "recover" else SyncPolicy.WHEN_ASKED
        change = _changed(FileStorage(plan.log_dir, sync_policy=policy), plan, rework)
    else:
        storage = FileStorage(rework.out, sync_policy=SyncPolicy.NEVER)
        with _removed_unless_finished(storage, plan.name):
            copy_folder(plan.folder, storage, plan.name, advance)
            change = _changed(storage, plan, rework)
    yield from _change_lines(change)


def finish(plans: Sequence[Plan], rework: Rework) -> None:
    """Make all changes durable."""
    if plans:
        FileStorage(rework.out or plans[0].log_dir).sync_all()


def _changed(storage: Storage, plan: Plan, rework: Rework) -> ReworkResult:
    if rework.kind == "compact":
        transactions = OpenLog(plan.folder).check_compactable(plan.last_shutdown.log_start_offset)
        return compact_partition(storage, plan.name, rework, plan.last_shutdown, transactions)
    last_shutdown = plan.last_shutdown
    if rework.recovery_point is not None:
        last_shutdown = attrs.evolve(last_shutdown, recovery_point=rework.recovery_point)
    return recover_partition(storage, plan.name, rework, last_shutdown)


@contextmanager
def _removed_unless_finished(storage: Storage, directory: str) -> Iterator[None]:
    """Remove a directory that was not there before if what fills it does not come to its end, interrupts included."""
    try:
        yield
    except BaseException:
        if storage.exists(directory):
            storage.remove_directory(directory)
        raise


def _change_lines(change: ReworkResult) -> Iterator[str]:
    yield f"{change.directory}: before {_extent_text(change.before)}; after {_extent_text(change.after)}"
    yield f"  log from offset {change.log_start_offset} to before {change.log_end_offset}"
    yield from (f"  {remark}" for remark in change.remarks)


def _extent_text(found: Extent) -> str:
    segments, records = counted(found.segment_count, "segment"), counted(found.record_count, "record")
    return f"{segments}, {format_size(found.size_bytes)}, {records}"


def _expected(plan: Plan, rework: Rework) -> str:
    log = OpenLog(plan.folder)
    found = log.estimate(
        include_active=rework.include_active,
        now_ms=rework.now_ms,
        config=rework.config,
        cleaner=rework.cleaner,
        log_start_offset=plan.last_shutdown.log_start_offset,
    )
    stats = found.estimate.stats
    keyless = f"; {counted(stats.keyless_count, 'record')} without a key will be dropped"
    held = "" if found.held_by is None else f"; {held_text(found.held_by, rework.now_ms)}"
    return (
        f"{found.segment_count} of {counted(len(log.segments), 'segment')} cleaned: "
        f"about {format_size(stats.bytes_read)} become {format_size(stats.bytes_written)},"
        f" {stats.records_written:,} of {counted(stats.records_read, 'record')} stay"
        f"{keyless if stats.keyless_count else ''}{held}"
    )
