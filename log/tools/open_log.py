"""Open one partition's files for all commands: what is damaged, what a cleaning pass would keep, how much there is.

`verify` prints what is wrong, `stats` and `compact` estimate a pass, `recover` plans by the same findings: a log that
one command calls damaged is damaged for every other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final

import attrs

from broker.errors import CorruptDataError
from broker.ids import Offset
from broker.units import DurationMs, TimeMs
from log.batches.scan import header_chunks
from log.compaction import CleanerOptions, CompactionEstimate, SourceLog, estimate_compaction
from log.compaction.cleaner import NO_KEPT_END, NO_PRODUCERS, kept_end
from log.compaction.fates import LastOfProducer, last_of_producers_in
from log.log_config import LogConfig
from log.log_dir import LastShutdowns
from log.partition.recovery import LastShutdown
from log.record import NO_TIMESTAMP
from log.segments.file_names import LOG, SWAP, TXN_INDEX
from log.segments.txn_index import AbortedTransaction, aborted_transactions
from log.storage import FileStorage, Storage
from log.tools.findings import Finding
from log.tools.sources import SourceFile, SourceFolder
from log.tools.stats import SegmentStats
from log.tools.transactions import LogTransactions, Transaction, partition_of, read_transactions
from log.tools.verify import folder_parts, in_sequence, verify_part
from log.tools.verify_segment import verify_segment

LOG_START: Final = Offset(0)
DEFAULT_CONFIG: Final = LogConfig()
DEFAULTS: Final = CleanerOptions()


class NotCompactableError(CorruptDataError):
    """A log has a batch that cannot be read, so that nothing of it is compacted.

    With `is_limit` the batch is sound, and stands for more than is read.
    """

    def __init__(self, damage: str, *, is_limit: bool = False) -> None:
        self.is_limit = is_limit
        advice = "" if is_limit else ", `brokerside log recover` cuts the log there"
        super().__init__(f"{damage}; nothing is compacted{advice}")

    @classmethod
    def of(cls, found: Finding) -> NotCompactableError:
        """Return the refusal for what was found in a segment."""
        return cls(found.line(), is_limit=found.is_limit)


@attrs.frozen
class Extent:
    """Count the segments, bytes and records in a partition's directory, from batch headers."""

    segment_count: int
    size_bytes: int
    record_count: int

    @classmethod
    def of(cls, storage: Storage, directory: str) -> Extent:
        """Return the counts of a directory."""
        paths = [f"{directory}/{name}" for name in storage.list(directory) if name.endswith(LOG)]
        records = 0
        for path in paths:
            file = storage.open(path)
            records += sum(int(chunk.record_count.sum(dtype="int64")) for chunk in header_chunks(file.view()))
            file.close()
        return cls(len(paths), sum(map(storage.size_bytes, paths)), records)


@attrs.frozen
class OpenLog:
    """Answer for the files of one partition's directory."""

    folder: SourceFolder

    @property
    def segments(self) -> tuple[SourceFile, ...]:
        """Return the segments in order of their offsets."""
        return self.folder.of_kind(LOG)

    def findings(self) -> list[Finding]:
        """Return everything that is wrong with the files, up to the first damage of each."""
        parts = folder_parts(self.folder)
        reports = in_sequence(parts, (verify_part(part, lambda _: None, keep_going=False) for part in parts))
        return [finding for report in reports for finding in report.findings]

    def transactions(self) -> LogTransactions:
        """Return the transactions of the log; raise CorruptDataError for a marker that cannot be read."""
        return read_transactions(self.folder)

    def check_compactable(self, log_start_offset: Offset = LOG_START, *, is_verified: bool = False) -> LogTransactions:
        """Return the log's transactions; raise NotCompactableError for a log that opening would cut.

        That is damage in any segment, the active one included; what is wrong in an index is built anew, as the cleaner
        asks none. With `is_verified` the caller has found no damage in them.
        """
        if not is_verified:
            self._check_segments()
        try:
            found = self.transactions()
        except CorruptDataError as damage:
            raise NotCompactableError(str(damage)) from None
        if log_start_offset > found.end_offset:
            raise NotCompactableError(
                f"{self.folder.shown}: the log ends at {found.end_offset}, below its start in"
                f" log-start-offset-checkpoint, {log_start_offset}: a broker deletes all of it"
            )
        return found

    def _check_segments(self) -> None:
        last_offset = -1
        unfinished = [file for file in self.folder.unfinished if file.kind == LOG and file.stage == SWAP]
        for file in (*unfinished, *self.segments):
            report = verify_segment(file, keep_going=False)
            damage = report.damage_of(file)
            if damage is None and not file.stage and file.base_offset <= last_offset:
                damage = Finding(file.shown, f"begins below the last offset of the segment before, {last_offset}")
            for found in (*(() if damage is None else (damage,)), *report.limits):
                raise NotCompactableError.of(found)
            last_offset = last_offset if file.stage else max(last_offset, report.last_offset)

    def cleanable(
        self,
        last_stable_offset: Offset,
        *,
        include_active: bool,
        now_ms: TimeMs,
        lag_ms: DurationMs = DEFAULT_CONFIG.min_compaction_lag_ms,
    ) -> Sequence[SourceFile]:
        """Return the segments that a pass cleans: those below the last stable offset, and below the first young one.

        Young is a segment with a timestamp of the last `lag_ms`, min.compaction.lag.ms.
        """
        bases = [*(file.base_offset for file in self.segments[1:]), None]
        below = [
            file
            for file, end in zip(self.segments, bases, strict=True)
            if (end is not None and end <= last_stable_offset)
            or (end is None and include_active and not self._is_above(file, last_stable_offset))
        ]
        return list(takewhile(lambda file: lag_ms <= 0 or _largest_timestamp_ms(file) <= now_ms - lag_ms, below))

    def _is_above(self, file: SourceFile, offset: Offset) -> bool:
        """Return whether a segment has a batch that ends at `offset` or above."""
        return any(len(headers) and int(headers.last_offset.max()) >= offset for headers in header_chunks(file.view()))

    def estimate(
        self,
        *,
        include_active: bool,
        now_ms: TimeMs,
        config: LogConfig = DEFAULT_CONFIG,
        cleaner: CleanerOptions = DEFAULTS,
        log_start_offset: Offset = LOG_START,
        is_verified: bool = False,
    ) -> Cleanable:
        """Return what a pass would clean and keep; raise NotCompactableError for a log that opening would cut."""
        transactions = self.check_compactable(log_start_offset, is_verified=is_verified)
        files = self.cleanable(
            transactions.last_stable_offset,
            include_active=include_active,
            now_ms=now_ms,
            lag_ms=config.min_compaction_lag_ms,
        )
        after = self.segments[len(files) :]
        kept = kept_end(
            config.release,
            high_watermark=transactions.end_offset,
            end_offset=Offset(after[0].base_offset) if after else transactions.end_offset,
        )
        headers = (chunk for file in self.segments for chunk in header_chunks(file.view()))
        producers = last_of_producers_in(headers, now_ms) if files else NO_PRODUCERS
        try:
            found = estimate_of_files(
                files,
                now_ms=now_ms,
                config=config,
                cleaner=cleaner,
                log_start_offset=log_start_offset,
                producers=producers,
                kept_end_offset=kept,
            )
        except CorruptDataError as damage:
            raise NotCompactableError(str(damage)) from None
        return Cleanable(len(files), found, transactions.open[0] if transactions.open else None)


def _largest_timestamp_ms(file: SourceFile) -> int:
    """Return the largest timestamp of a segment's batches, else its modification time, as the cleaner asks for it."""
    chunks = [int(headers.max_timestamp.max()) for headers in header_chunks(file.view()) if len(headers)]
    largest = max(chunks, default=NO_TIMESTAMP)
    return largest if largest >= 0 else file.storage.modified_ms(file.path)


def last_shutdowns(folders: Sequence[SourceFolder], warn: Callable[[str], None]) -> list[LastShutdown]:
    """Return the last shutdown of each folder's log; warn of each checkpoint that cannot be read.

    A checkpoint has a line for every partition of a log directory: read for each of 10,000, it would take minutes.
    """
    log_dirs = [Path(folder.shown).resolve().parent for folder in folders]
    found = {log_dir: LastShutdowns(FileStorage(log_dir, read_only=True)) for log_dir in sorted(set(log_dirs))}
    for log_dir, shutdowns in found.items():
        for damage in shutdowns.unreadable.values():
            warn(f"warning: {log_dir}: {damage}; every offset in it is taken as 0, as a broker does")
    partitions = [partition_of(folder) for folder in folders]
    return [
        LastShutdown() if partition is None else found[log_dir].of(partition)
        for log_dir, partition in zip(log_dirs, partitions, strict=True)
    ]


@attrs.frozen
class Cleanable:
    """Hold what a pass over a log would do: its segments, its estimate, and the transaction that keeps it from more."""

    segment_count: int
    estimate: CompactionEstimate
    held_by: Transaction | None


def held_text(transaction: Transaction, now_ms: TimeMs) -> str:
    """Return the transaction that keeps compaction from more, as text."""
    return f"nothing from offset {transaction.first_offset} on, held by a transaction, {transaction.text(now_ms)}"


def estimate_of_files(
    files: Sequence[SourceFile],
    *,
    now_ms: TimeMs,
    config: LogConfig = DEFAULT_CONFIG,
    cleaner: CleanerOptions = DEFAULTS,
    log_start_offset: Offset = LOG_START,
    producers: Mapping[int, LastOfProducer] = NO_PRODUCERS,
    kept_end_offset: Offset = NO_KEPT_END,
) -> CompactionEstimate:
    """Return the estimate for the segments of one partition, in order of their offsets.

    Raises CorruptDataError at damage, and InputError for a file that cannot be read.
    """
    aborted: list[AbortedTransaction] = []
    for file in files:
        index = file.sibling(TXN_INDEX)
        if index.exists():
            aborted.extend(aborted_transactions(index.view(), source=index.shown))
    sources = [SourceLog(file.view(), file.shown) for file in files]
    return estimate_compaction(
        sources,
        now_ms=now_ms,
        aborted=aborted,
        delete_retention_ms=config.delete_retention_ms,
        map_slot_count=cleaner.map_slot_count,
        log_start_offset=log_start_offset,
        producers=producers,
        kept_end_offset=kept_end_offset,
    )


def measure_segment(
    file: SourceFile, advance: Callable[[int], None], *, log_start_offset: int = LOG_START
) -> SegmentStats:
    """Return the figures of one segment, its damage as `verify` finds it; call `advance` with counts of bytes read."""
    stats = SegmentStats(size_bytes=file.size_bytes, log_start_offset=log_start_offset)
    report = verify_segment(file, keep_going=True, advance=advance, take=stats.take)
    found = [finding for finding in report.findings if finding.file == file.shown]
    stats.damage = next(iter((*found, *report.limits)), None)
    stats.damage_count = sum(1 + finding.more_count for finding in found)
    return stats
