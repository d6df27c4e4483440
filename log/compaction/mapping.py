"""Fill the offset map from a log file.

What it decides: which records offer their keys. Those of aborted transactions do not, or a later write that never
happened would drop an earlier one that did; nor do markers, whose keys are not keys.

Source: kafka.log.Cleaner.buildOffsetMapForSegment, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from typing import Final

from broker.ids import Offset
from log.compaction.fates import mapped_fates
from log.compaction.filter import first_records, key_columns
from log.compaction.key_kernels import SKIP, BatchColumns
from log.compaction.offset_map import OffsetMap
from log.compaction.source import SourceLog
from log.compaction.transactions import CleanedTransactions

LOG_START: Final = Offset(0)


def map_source(
    offset_map: OffsetMap,
    source: SourceLog,
    transactions: CleanedTransactions,
    *,
    start_offset: Offset = LOG_START,
    start_position: int = 0,
) -> bool:
    """Put the keys from `start_offset` on into the map; return False if the map was full before the end of the file.

    `transactions` know the aborted ones that reach into the file. Raises CorruptDataError at damage.
    """
    for headers in source.headers(start_position):
        fates, counts = mapped_fates(headers, transactions, source)
        for chunk in source.records(headers, fates != SKIP):
            rows = slice(chunk.start_row, chunk.end_row)
            batches = BatchColumns(
                first_records(chunk.columns),
                headers.base_offset[rows],
                headers.last_offset[rows],
                counts[rows],
                fates[rows],
            )
            if not offset_map.put(key_columns(chunk.columns), batches, start_offset):
                return False
    return True
