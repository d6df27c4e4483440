"""Rewrite a batch as the cleaner does: with fewer records, or with none.

What it decides: which fields survive when records are taken out of a batch.

Constraints: offsets, producer fields, epoch, codec and timestamp type stay, so that readers find every survivor where
it was and a producer's last sequence is not forgotten.

How: survivors are written anew: base timestamp is the first survivor's, or the delete horizon. An empty batch has
neither codec nor horizon, and no base timestamp.

Example: of offsets 10..12 only 11 survives; the batch still covers 10..12, and its base timestamp is that of 11.

    >>> import numpy as np
    >>> from log.batches.build import build_batch
    >>> from log.batches.build_spec import BatchSpec
    >>> from log.batches.in_buffer import batches_in
    >>> from log.record import Record
    >>> data = build_batch(BatchSpec(10), [Record(offset, offset * 100, b"key", None) for offset in (10, 11, 12)])
    >>> (batch,) = batches_in(data)
    >>> (rebuilt,) = batches_in(rebuild(batch, np.array([False, True, False])))
    >>> rebuilt.base_offset, rebuilt.last_offset, rebuilt.record_count, rebuilt.base_timestamp
    (10, 12, 1, 1100)

Left out: many batches at once, in `log.compaction`.

Source: org.apache.kafka.common.record.MemoryRecords.filterTo and DefaultRecordBatch.writeEmptyHeader, 4.0.
"""

from __future__ import annotations

from itertools import compress as selected
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.errors import UsageError
from broker.units import TimeMs
from log.batches.batch import RecordBatch
from log.batches.batch_v2 import BatchV2
from log.batches.build import build_batch, sealed
from log.batches.build_spec import spec_of
from log.codecs.compression import CODEC_MASK
from log.record import NO_TIMESTAMP, TimestampType

HORIZON_AND_CODEC: Final = 0x40 | CODEC_MASK


def emptied(batch: RecordBatch) -> bytes:
    """Return the 61-byte empty batch that the cleaner leaves of `batch`; raise UsageError before magic 2."""
    if not isinstance(batch, BatchV2):
        raise UsageError(f"Empty batches are only supported for magic v2 and above, not for {batch.magic}")
    header = batch.header._replace(
        attributes=batch.header.attributes & 0x7F & ~HORIZON_AND_CODEC, base_timestamp=NO_TIMESTAMP, record_count=0
    )
    return sealed(header, b"")


def rebuild(
    batch: RecordBatch, kept: NDArray[np.bool_], *, delete_horizon_ms: TimeMs | None = None, upgrades: bool = False
) -> bytes:
    """Return `batch` with only the records marked in `kept` (bool[record count], at least one true).

    `upgrades` writes messages of magic 0 or 1 as a batch of magic 2; a message without a time gets CreateTime.

    As the cleaner does: same codec, offsets, producer fields, epoch and timestamp type; base timestamp the first
    survivor's, or the delete horizon (`delete_horizon_ms`, else the batch's own); CreateTime maximum computed anew.
    Raises UsageError for marks of another count, and if none is true.
    """
    records = batch.records()
    if kept.shape != (len(records),):
        raise UsageError(f"{kept.size} records are marked to be kept or not; the batch has {len(records)}")
    survivors = tuple(selected(records, kept.tolist()))
    if not survivors:
        raise UsageError("no record of the batch is kept; such a batch is dropped, or emptied (`emptied`)")
    spec = spec_of(batch)
    if not isinstance(batch, BatchV2):
        spec = attrs.evolve(spec, base_offset=survivors[0].offset, last_offset=None)
        if not upgrades:
            return build_batch(spec, survivors)
        is_timeless = spec.timestamp_type is TimestampType.NO_TIMESTAMP_TYPE
        spec = attrs.evolve(
            spec, magic=2, timestamp_type=TimestampType.CREATE_TIME if is_timeless else spec.timestamp_type
        )
    if delete_horizon_ms is not None:
        spec = attrs.evolve(spec, delete_horizon_ms=delete_horizon_ms)
    return build_batch(spec, survivors)
