"""Estimate the bytes and records that one cleaning pass would leave, without changing a file.

What it decides: how many bytes and records of some segments would be left if all of them were compacted now: what the
cleaner would write, to the byte, as it is built by the same code and thrown away.

Constraints: nothing is written; the memory is the map's, and a bounded part of one segment's.

How: the same two walks as a pass, over bytes in place of a log. Every segment counts as dirty and none as active, no
producer as active, so this is what compaction could save at the most; tombstones stay, as they would in a first pass,
unless they have a horizon that is over.

Example: records of keys a, b, a in one segment: three read, two kept.

Source: kafka.log.Cleaner, trunk 1eb7644 (2024-10); the estimate itself is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from broker.ids import Offset
from broker.units import DAY_MS, DurationMs, TimeMs
from log.compaction.cleaner_stats import CleanerStats
from log.compaction.fates import Fates
from log.compaction.filter import TombstoneRule, filter_source
from log.compaction.mapping import map_source
from log.compaction.offset_map import SLOT_COUNT, OffsetMap
from log.compaction.source import SourceLog
from log.compaction.transactions import CleanedTransactions
from log.indexes.txn_index import AbortedTransaction

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
