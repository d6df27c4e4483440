"""Compaction: of each key only the latest record stays."""

from __future__ import annotations

from log.compaction.cleaner import Cleaned, CleanerOptions, clean
from log.compaction.estimate import CompactionEstimate, estimate_compaction
from log.compaction.manager import CleanedLog, CleanerManager
from log.compaction.selection import LogToClean, filthiest, log_to_clean
from log.compaction.source import SourceLog
from log.compaction.tally import Tally

__all__ = (
    "Cleaned",
    "CleanedLog",
    "CleanerManager",
    "CleanerOptions",
    "CompactionEstimate",
    "LogToClean",
    "SourceLog",
    "Tally",
    "clean",
    "estimate_compaction",
    "filthiest",
    "log_to_clean",
)
