"""Estimate the bytes and records that one cleaning pass would leave, without changing a file.

Source: kafka.log.Cleaner, 4.3.1; the estimate itself is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from broker.ids import Offset
from broker.units import DAY_MS, DurationMs, TimeMs
from log.compaction.fates import CleanedTransactions, Fates
from log.compaction.filter import CleanerStats, TombstoneRule, filter_source, map_source
from log.compaction.offset_map import SLOT_COUNT, OffsetMap
from log.compaction.source import SourceLog
from log.segments.txn_index import AbortedTransaction

DELETE_RETENTION_MS: Final = DurationMs(DAY_MS)  # Kafka's default.
NO_END_OFFSET: Final = Offset(-1)
"""No batch ends there: none is the last of a pass."""


@attrs.frozen(kw_only=True)
class CompactionEstimate:
    """Estimate the bytes and records that one pass over all segments would read and leave."""

    stats: CleanerStats
    """Bytes and records read and left; `keyless_count` are records that a cleaner drops for having no key."""
    distinct_key_count: int
    """Distinct keys that were counted; as many as the map holds if not `is_complete`."""
    is_complete: bool
    """Whether the map held all keys. If not, what follows the last mapped record counts as kept."""

    @property
    def bytes_saved(self) -> int:
        """Return the bytes that the pass would remove; negative if delete horizons make batches larger."""
        return self.stats.bytes_read - self.stats.bytes_written


def estimate_compaction(
    segments: Sequence[SourceLog],
    *,
    now_ms: TimeMs,
    aborted: Sequence[AbortedTransaction] = (),
    delete_retention_ms: DurationMs = DELETE_RETENTION_MS,
    map_slot_count: int = SLOT_COUNT,
) -> CompactionEstimate:
    """Return the estimate for `segments`, consecutive segments of one partition in order; change no file.

    Reads everything twice. `aborted` are the entries of the segments' transaction indexes. Raises CorruptDataError at
    the first damage, UsageError for a map of no more than one slot (one slot is 24 bytes).
    """
    offset_map = OffsetMap(map_slot_count)
    transactions = CleanedTransactions()
    transactions.add_aborted(aborted)
    is_complete = all(map_source(offset_map, segment, transactions) for segment in segments)
    fates = Fates(NO_END_OFFSET, now_ms)
    fates.transactions.add_aborted(aborted)
    rule = TombstoneRule.of_pass(now_ms, delete_retention_ms)
    stats = CleanerStats()
    for segment in segments:
        for batches in filter_source(segment, fates, offset_map, rule):
            stats = stats.plus(batches)
    return CompactionEstimate(stats=stats, distinct_key_count=len(offset_map), is_complete=is_complete)
