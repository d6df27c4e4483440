"""Count the bytes and records that a cleaning pass read and wrote.

Source: kafka.log.CleanerStats, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.units import SizeBytes
from log.compaction.filter import FilteredBatches

NOTHING: Final = SizeBytes(0)


@attrs.frozen(kw_only=True)
class CleanerStats:
    """Count bytes, batches and records of a pass; records of batches discarded unread are not read."""

    bytes_read: SizeBytes = NOTHING
    bytes_written: SizeBytes = NOTHING
    records_read: int = 0
    records_written: int = 0
    keyless_count: int = 0
    """Records dropped for having no key."""

    def plus(self, batches: FilteredBatches) -> CleanerStats:
        """Return these counts plus those of one more chunk."""
        return CleanerStats(
            bytes_read=SizeBytes(self.bytes_read + batches.bytes_read),
            bytes_written=SizeBytes(self.bytes_written + batches.bytes_kept),
            records_read=self.records_read + batches.records_read,
            records_written=self.records_written + batches.records_kept,
            keyless_count=self.keyless_count + batches.keyless_count,
        )
