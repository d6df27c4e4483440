"""Decide whether the files of a partition can be compacted, and what that would save.

Source: org.apache.kafka.storage.internals.log.{Cleaner, LogCleanerManager}, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.errors import CorruptDataError
from broker.units import TimeMs
from log.compaction import CompactionEstimate, SourceLog, estimate_compaction
from log.segments.file_names import LOG, SWAP, TXN_INDEX
from log.segments.txn_index import AbortedTransaction, aborted_transactions
from log.tools.sources import SourceFile, SourceFolder
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
