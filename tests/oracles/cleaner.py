"""What a cleaner does to a log file, batch by batch and record by record, with a dict for a map.

Slow and obvious: the words of `log.compaction.filter` and `log.compaction.fates` as code over decoded records. The
batches that are left are built by `log.batches.build`, which has vectors of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs
import numpy as np

from broker.units import TimeMs
from log.batches.batch import RecordBatch
from log.batches.build import emptied, rebuild
from log.batches.in_buffer import BatchReader, batches_in
from log.compaction.fates import LastOfProducer
from log.record import ControlType, Record, control_type
from log.segments.txn_index import AbortedTransaction


@attrs.define(kw_only=True)
class SlowCleaner:
    """One pass over one file. `latest` maps keys to offsets, known up to `latest_offset`."""

    latest: Mapping[bytes, int]
    latest_offset: int
    now_ms: int
    delete_retention_ms: int
    end_offset: int
    keeps_legacy_tombstones: bool = True
    producers: Mapping[int, LastOfProducer] = attrs.field(factory=dict)
    aborted: tuple[AbortedTransaction, ...] = ()
    _met: dict[int, int] = attrs.field(factory=dict)
    """Producer to the last offset of a transactional batch met since its last marker."""

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield what stands in the place of each batch, b"" for nothing."""
        for batch in batches_in(data, reader=BatchReader.MEMORY):
            yield self._piece(batch)

    def _piece(self, batch: RecordBatch) -> bytes:
        may_go = self._may_go(batch)
        goes = may_go and (not batch.is_control or self._is_over(batch))
        kept = np.array([not goes and self._stays(batch, record) for record in batch.records()], np.bool_)
        if not kept.any():
            return emptied(batch) if self._keeps_empty(batch) else b""
        tombstones = [
            record for record, stays in zip(batch.records(), kept, strict=True) if stays and record.value is None
        ]
        is_stamped = batch.magic >= 2 and batch.delete_horizon_ms is None
        if is_stamped and (tombstones or (may_go and batch.is_control)):
            return rebuild(batch, kept, delete_horizon_ms=TimeMs(self.now_ms + self.delete_retention_ms))
        return bytes(batch.data) if kept.all() else rebuild(batch, kept)

    def _may_go(self, batch: RecordBatch) -> bool:
        if not batch.is_control:
            if batch.is_transactional:
                self._met[batch.producer_id] = batch.last_offset
            return batch.is_transactional and self._is_aborted(batch)
        kind = control_type(batch.records()[0].key) if batch.records() else None
        if kind is None:
            return True
        if kind not in (ControlType.ABORT, ControlType.COMMIT):
            return False
        met = self._met.pop(batch.producer_id, None)
        return met is None

    def _is_aborted(self, batch: RecordBatch) -> bool:
        return any(
            one.producer_id == batch.producer_id and one.first_offset <= batch.last_offset <= one.last_offset
            for one in self.aborted
        )

    def _is_over(self, batch: RecordBatch) -> bool:
        return batch.delete_horizon_ms is not None and batch.delete_horizon_ms <= self.now_ms

    def _stays(self, batch: RecordBatch, record: Record) -> bool:
        if batch.is_control or record.offset > self.latest_offset:
            return True
        if record.key is None or record.offset < self.latest.get(record.key, -1):
            return False
        if record.value is not None:
            return True
        return not self._is_over(batch) if batch.magic >= 2 else self.keeps_legacy_tombstones

    def _keeps_empty(self, batch: RecordBatch) -> bool:
        return batch.next_offset == self.end_offset or self._is_last_of_producer(batch)

    def _is_last_of_producer(self, batch: RecordBatch) -> bool:
        last = self.producers.get(batch.producer_id)
        if last is None:
            return False
        if last.data_offset is not None:
            return batch.last_offset == last.data_offset
        return batch.is_control and batch.producer_epoch == last.producer_epoch
