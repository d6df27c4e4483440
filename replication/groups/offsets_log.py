"""Write and read the log of a partition of `__consumer_offsets`.

Constraints: the entries of one append are one batch. A partition is read to its end, beyond the high watermark, as its
leader will commit those records too, or lose them.

Source: Kafka CoordinatorLoaderImpl and CoordinatorPartitionWriter, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from broker.ids import Offset
from broker.units import MIB, TimeMs
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.batches.in_buffer import batches_in
from log.partition.partition_log import PartitionLog
from log.record import Record
from replication.groups.common.journal import Journal, OffsetsRecord, StoredGroup

_READ_BYTES: Final = MIB


def batch_of(records: Iterable[OffsetsRecord], now_ms: TimeMs) -> bytes:
    """Return the records as one batch; empty for no records."""
    rows = [Record(Offset(place), now_ms, record.key, record.value) for place, record in enumerate(records)]
    return build_batch(BatchSpec(), rows) if rows else b""


def records_of(log: PartitionLog) -> Iterator[tuple[Offset, OffsetsRecord]]:
    """Yield every record up to the end of a log, with its offset."""
    position = log.log_start_offset
    while position < log.log_end_offset:
        for batch in batches_in(log.read(position, _READ_BYTES).records):
            for record in batch.records():
                if record.offset >= position:
                    assert record.key is not None, "a record of __consumer_offsets has a key"
                    yield record.offset, OffsetsRecord(record.key, record.value)
            position = Offset(batch.last_offset + 1)


def read_groups(journal: Journal, log: PartitionLog) -> dict[str, StoredGroup]:
    """Return the groups stored in a log, by group id; `journal` reads the records."""
    return journal.read(records_of(log), log.high_watermark)
