"""Estimate what one cleaning pass would save in the segment files of one partition.

What it decides: which files an estimate reads: the segments, and the transaction indexes that stand beside them.

Constraints: no file is written.

Example: estimate_of_files(folder.files, now_ms=now_ms).bytes_saved

Source: log/compaction/estimate.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.units import TimeMs
from log.compaction import CompactionEstimate, SourceLog, estimate_compaction
from log.indexes.txn_index import AbortedTransaction, aborted_transactions
from log.segments.file_names import TXN_INDEX
from log.tools.sources import SourceFile


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
