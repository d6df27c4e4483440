"""Build the bytes of the batches that a cleaning pass keeps: copied, emptied, or with fewer records.

Source: org.apache.kafka.common.record.MemoryRecords.buildRetainedRecordsInto and
MemoryRecordsBuilder.info, DefaultRecordBatch.writeEmptyHeader, 4.3.1.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int64Array
from broker.units import TimeMs
from log.batches.batch_v2 import CHECKED_POSITION, CRC_POSITION, HEADER, LENGTH_BYTES
from log.batches.build import emptied, rebuild
from log.batches.record_columns import RecordColumns
from log.codecs.compression import CODEC_MASK, Codec, compress
from log.codecs.crc import crc32c
from log.compaction.rewrite_kernels import (
    GROWTH_BYTES_MAX,
    MAX_OFFSET,
    MAX_TIMESTAMP,
    OUT_END,
    RESULT_WIDTH,
    KeptRecords,
    WrittenBatches,
    write_batches,
)
from log.compaction.source import SourceLog
from log.errors import IllegalStateError
from log.storage.protocol import Buffer

MAGIC_V2: Final = 2
LENGTH: Final = struct.Struct(">i")
LENGTH_POSITION: Final = 8
CRC: Final = struct.Struct(">I")
NO_HORIZON: Final = -1


class Building:
    """Collect the batches built from one chunk, one row per batch; a discarded batch has no bytes.

    `pieces` are the bytes of the batches, `max_timestamp` their largest timestamps, and `timestamp_offset` the offsets
    that the time index stores for these. `max_offset` is the last offset of a batch copied or emptied, but that of the
    last retained record in a batch built anew.
    """

    def __init__(self, chunk: RecordColumns, first: Int64Array, kept: NDArray[np.bool_], source: SourceLog) -> None:
        self._chunk = chunk
        self._first = first
        self._kept = kept
        self._source = source
        headers = chunk.batches
        # Right for copied and emptied batches, whose headers keep these values; `build` overwrites the rest. The time
        # index gets a batch's last offset even if that record is gone: in magic 2 the header keeps it, as in Kafka.
        self.pieces: list[Buffer] = [b""] * len(headers)
        self.max_timestamp = headers.max_timestamp.copy()
        self.max_offset = headers.last_offset.copy()
        self.timestamp_offset = headers.last_offset.copy()

    def copy(self, rows: Int64Array) -> None:
        """Copy the batches of `rows` byte for byte."""
        starts = self._chunk.batches.position[rows]
        ends = starts + self._chunk.batches.size_bytes[rows]
        for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True):
            self.pieces[row] = self._source.data[start:end]

    def empty(self, rows: Int64Array) -> None:
        """Write an empty batch for each of `rows`; raise IllegalStateError for magic 0 and 1, which have none."""
        for row in rows.tolist():
            batch = self._source.batch_at(int(self._chunk.batches.position[row]))
            if batch.magic < MAGIC_V2:
                raise IllegalStateError("Empty batches are only supported for magic v2 and above")
            self.pieces[row] = emptied(batch)

    def build(self, rows: Int64Array, horizon_ms: Int64Array) -> None:
        """Build the batches of `rows`, of magic 2, from their retained records; `horizon_ms` -1 sets no horizon."""
        # The kernel stops before a batch that Kafka's builder would refuse. `_rebuild` then takes that batch, to raise
        # Kafka's error or to write what the kernel does not know, and the kernel goes on behind it.
        while len(rows):
            written = self._write(rows, horizon_ms)
            rows, horizon_ms = rows[written:], horizon_ms[written:]
            if len(rows):
                self._rebuild(int(rows[0]), TimeMs(int(horizon_ms[0])))
                rows, horizon_ms = rows[1:], horizon_ms[1:]

    def build_wrappers(self, rows: Int64Array) -> None:
        """Build the compressed messages of `rows`, of magic 0 or 1, from their retained records, as before Kafka 4.0.

        A message without compression holds one record, so it is copied or discarded and never comes here.
        """
        for row in rows.tolist():
            self._rebuild(row, TimeMs(NO_HORIZON))
            # A wrapper's offset is that of its last inner message, so it moves down with the retained records.
            self.timestamp_offset[row] = self.max_offset[row]

    def upgrade(self, rows: Int64Array, horizon_ms: Int64Array) -> None:
        """Build batches of magic 2 from the retained records of messages of magic 0 or 1, one batch a message."""
        for row, horizon in zip(rows.tolist(), horizon_ms.tolist(), strict=True):
            self._rebuild(row, TimeMs(horizon), upgrades=True)
            self.timestamp_offset[row] = self.max_offset[row]

    def _rebuild(self, row: int, horizon_ms: TimeMs, *, upgrades: bool = False) -> None:
        """Build one batch with `log.batches.build`; raises the error that Kafka's builder would raise."""
        batch = self._source.batch_at(int(self._chunk.batches.position[row]))
        start, end = int(self._first[row]), int(self._first[row + 1])
        kept = self._kept[start:end]
        horizon = None if horizon_ms == NO_HORIZON else horizon_ms
        piece = rebuild(batch, kept, delete_horizon_ms=horizon, upgrades=upgrades)
        built = SourceLog(memoryview(piece), self._source.name).batch_at(0)
        self.pieces[row] = piece
        self.max_timestamp[row] = built.max_timestamp
        self.max_offset[row] = self._chunk.offset[start:end][kept].max()

    def _write(self, rows: Int64Array, horizon_ms: Int64Array) -> int:
        """Build the batches of `rows` up to the first that the kernel refuses; return their count."""
        chunk, headers = self._chunk, self._chunk.batches
        starts, ends = self._first[rows], self._first[rows + 1]
        batches = WrittenBatches(
            self._source.array, headers.position[rows], starts, ends, headers.base_offset[rows],
            headers.attributes[rows], headers.max_timestamp[rows], horizon_ms,
        )  # fmt: skip
        records = KeptRecords(
            chunk.data, chunk.record_position, chunk.record_size, chunk.offset, chunk.timestamp, self._kept
        )
        # The output is sized before the kernel runs, which cannot allocate: the records' bytes without compression, a
        # header each, and the bytes by which a record's varints can grow. `filter_chunk` sends only batches that retain
        # a record, so `ends - 1` is a record of the batch.
        payload_sizes = chunk.record_position[ends - 1] + chunk.record_size[ends - 1] - chunk.record_position[starts]
        size_max = (payload_sizes + HEADER.size + GROWTH_BYTES_MAX * (ends - starts)).sum()
        out = np.empty(int(size_max), np.uint8)
        results = np.zeros((len(rows), RESULT_WIDTH), np.int64)
        count = write_batches(batches, records, out, results)
        assert results[max(count - 1, 0), OUT_END] <= size_max, (count, size_max)
        self.max_timestamp[rows[:count]] = results[:count, MAX_TIMESTAMP]
        self.max_offset[rows[:count]] = results[:count, MAX_OFFSET]
        written = out.data
        bounds = [0, *results[:count, OUT_END].tolist()]
        codecs = (headers.attributes[rows[:count]] & CODEC_MASK).tolist()
        for row, codec, (start, end) in zip(rows[:count].tolist(), codecs, pairwise(bounds), strict=True):
            piece = written[start:end]
            # Compress before the checksum: it covers the compressed bytes. The size field is outside it.
            if codec:
                piece = _compressed(piece, codec)
            CRC.pack_into(piece, CRC_POSITION, crc32c(piece[CHECKED_POSITION:]))
            self.pieces[row] = piece
        return count


def _compressed(batch: memoryview, codec: int) -> memoryview:
    """Return a batch with its records compressed and its size set; the caller sets the checksum."""
    made = memoryview(bytearray(batch[: HEADER.size]) + compress(Codec(codec), bytes(batch[HEADER.size :])))
    LENGTH.pack_into(made, LENGTH_POSITION, len(made) - LENGTH_BYTES)
    return made
