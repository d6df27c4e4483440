"""Compact a log: keep only the latest record of each key.

- cleaner: Clean one log in one pass, as Kafka's Cleaner.clean does; choose the next log, and estimate a pass.
- offset_map: Store the latest offset of each key in bounded memory; this decides which records are superseded.
- filter: Decide which records of a batch stay, by key and tombstone, as Cleaner.shouldRetainRecord does.
- fates: Decide for each batch whether the pass discards it, keeps it, or filters its records by key.
- selection: Decide which range of a log can be cleaned now, and which log is cleaned next.
- source: Read a segment's log file as the cleaner does, headers first.
- building: Build the bytes of the batches that a pass keeps, with compiled loops for those of fewer records.
- io_chunks: Cut the retained batches of a segment into appends of the size that Kafka's cleaner appends.
- key_kernels: Hash keys, store the latest offset of each, and mark the latest records, in compiled loops.
"""

from __future__ import annotations

from log.compaction.cleaner import (
    Cleaned,
    CleanedLog,
    CleanerManager,
    CleanerOptions,
    CompactionEstimate,
    clean,
    estimate_compaction,
)
from log.compaction.filter import CleanerStats
from log.compaction.selection import LogToClean, filthiest, log_to_clean
from log.compaction.source import SourceLog

__all__ = (
    "Cleaned",
    "CleanedLog",
    "CleanerManager",
    "CleanerOptions",
    "CleanerStats",
    "CompactionEstimate",
    "LogToClean",
    "SourceLog",
    "clean",
    "estimate_compaction",
    "filthiest",
    "log_to_clean",
)
