"""Open one partition's files for all commands: what is damaged, what a cleaning pass would keep, how much there is.

`verify` prints what is wrong, `stats` and `compact` estimate a pass, `recover` plans by the same findings: a log that
one command calls damaged is damaged for every other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from broker.errors import CorruptDataError
from broker.units import TimeMs
from log.batches.scan import header_chunks
from log.compaction import CompactionEstimate, SourceLog, estimate_compaction
from log.segments.file_names import LOG, SWAP, TXN_INDEX
from log.segments.txn_index import AbortedTransaction, aborted_transactions
from log.storage import Storage
from log.tools.findings import Finding
from log.tools.sources import SourceFile, SourceFolder
from log.tools.stats import SegmentStats
from log.tools.verify import folder_parts, in_sequence, verify_part
from log.tools.verify_segment import verify_segment


class NotCompactableError(CorruptDataError):
    """A log has a batch that cannot be read, so that nothing of it is compacted."""

    def __init__(self, damage: str) -> None:
        super().__init__(f"{damage}; nothing is compacted, `brokerside log recover` cuts the log there")


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

    def check_compactable(self) -> None:
        """Raise NotCompactableError at damage in any segment, the active one included.

        What is wrong in an index is built anew; the cleaner asks none.
        """
        _check_all(self.segments)

    def estimate(self, *, include_active: bool, now_ms: TimeMs) -> CompactionEstimate:
        """Return what a pass would keep; raise NotCompactableError at damage, InputError for an unreadable file."""
        _check_all([file for file in self.folder.unfinished if file.kind == LOG and file.stage == SWAP])
        try:
            return estimate_of_files(self.segments if include_active else self.segments[:-1], now_ms=now_ms)
        except CorruptDataError as damage:
            raise NotCompactableError(str(damage)) from None


def _check_all(segments: Sequence[SourceFile]) -> None:
    for file in segments:
        damage = verify_segment(file, keep_going=False).damage_of(file)
        if damage is not None:
            raise NotCompactableError(damage.line())


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


def measure_segment(file: SourceFile, advance: Callable[[int], None]) -> SegmentStats:
    """Return the figures of one segment, its damage as `verify` finds it; call `advance` with counts of bytes read."""
    stats = SegmentStats(size_bytes=file.size_bytes)
    report = verify_segment(file, keep_going=True, advance=advance, take=stats.take)
    found = [finding for finding in report.findings if finding.file == file.shown]
    stats.damage = found[0] if found else None
    stats.damage_count = sum(1 + finding.more_count for finding in found)
    return stats
