"""Compact a log: keep only the latest record of each key."""

from __future__ import annotations

from log.compaction.cleaner import Cleaned, CleanerOptions, clean
from log.compaction.cleaner_stats import CleanerStats
from log.compaction.estimate import CompactionEstimate, estimate_compaction
from log.compaction.manager import CleanedLog, CleanerManager
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
