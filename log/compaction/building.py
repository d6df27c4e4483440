"""Build the bytes of the batches that a cleaning pass keeps: copied, emptied, or with fewer records.

Source: org.apache.kafka.common.record.MemoryRecords.buildRetainedRecordsInto and
MemoryRecordsBuilder.info, DefaultRecordBatch.writeEmptyHeader, 4.3.1.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from broker.block_copy import copy_block
from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from broker.units import TimeMs
from log.batches.batch_v2 import CHECKED_POSITION, CRC_POSITION, DELETE_HORIZON_BIT, HEADER, LENGTH_BYTES
from log.batches.build import emptied, rebuild
from log.batches.build_columns import put_varint, varint_size, zigzag
from log.batches.record_columns import ByteArray, RecordColumns
from log.codecs.compression import CODEC_MASK, Codec, compress
from log.codecs.crc import crc32c
from log.compaction.source import SourceLog
from log.errors import IllegalStateError
from log.record import TIMESTAMP_TYPE_BIT
from log.storage.protocol import Buffer

HEADER_SIZE_BYTES: Final = 61
GROWTH_BYTES_MAX: Final = 14
"""Bytes by which one record can grow: nine of the timestamp delta, which gets large when the delete horizon becomes the
base timestamp, and up to five of the length, a varint too."""

# Columns of the result, one row per batch: its end in the output, its largest timestamp, its last retained offset.
OUT_END, MAX_TIMESTAMP, MAX_OFFSET = range(3)
RESULT_WIDTH: Final = 3

# Codec, timestamp type, transactional, control. Kafka's builder computes attributes from these alone, so an old delete
# horizon bit does not survive by itself: it is set again if the batch still has a horizon.
ATTRIBUTES_MASK: Final = 0x3F


class KeptRecords(NamedTuple):
    """Hold one row per record: its bytes in `data`, from the length field on, and whether it is retained."""

    data: ByteArray
    position: Int64Array
    size: Int32Array
    offset: Int64Array
    timestamp: Int64Array
    kept: NDArray[np.bool_]


class WrittenBatches(NamedTuple):
    """Hold one row per batch to write: its old header, its records, and the delete horizon or -1."""

    headers: ByteArray
    position: Int64Array
    start_record: Int64Array
    end_record: Int64Array
    base_offset: Int64Array
    attributes: NDArray[np.int16]
    max_timestamp: Int64Array
    horizon_ms: Int64Array


def put_number(out: ByteArray, position: int, value: int, size: int) -> None:
    """Write the lowest `size` bytes of `value`, big-endian."""
    for index in range(size):
        out[position + index] = np.uint8((value >> (8 * (size - 1 - index))) & 0xFF)


def varint_end(data: ByteArray, position: int) -> int:
    """Return the position after the varint at `position`."""
    while data[position] >= 0x80:
        position += 1
    return position + 1


def put_record(out: ByteArray, position: int, data: ByteArray, start: int, end: int, deltas: tuple[int, int]) -> int:
    """Copy the record at `data[start:end]` with new deltas of time and offset; return the position after it."""
    # The body, key to headers, does not depend on the batch. Skip the fields before it: the length, one byte of
    # attributes, and the two old deltas.
    body = varint_end(data, varint_end(data, varint_end(data, start) + 1))
    size = 1 + varint_size(deltas[0]) + varint_size(deltas[1]) + end - body
    position = put_varint(out, position, size)
    out[position] = 0  # Record attributes: unused, Kafka always writes 0.
    position = put_varint(out, position + 1, deltas[0])
    position = put_varint(out, position, deltas[1])
    copy_block(out, position, data, body, end - body)
    return position + end - body


def put_batch(
    out: ByteArray, start: int, batches: WrittenBatches, row: int, records: KeptRecords, result: Int64Array
) -> bool:
    """Write one batch at `start`; return False if Kafka's builder would refuse a record."""
    horizon_ms, base_offset = batches.horizon_ms[row], batches.base_offset[row]
    position = start + HEADER_SIZE_BYTES
    count, last_offset = 0, -1
    # A batch with a delete horizon stores it in the base timestamp field (KIP-534), and the deltas count from there.
    base_timestamp, max_timestamp = int(horizon_ms), -1
    for record in range(batches.start_record[row], batches.end_record[row]):
        if not records.kept[record]:
            continue
        offset, timestamp = int(records.offset[record]), int(records.timestamp[record])
        if timestamp < -1 or (count > 0 and offset <= last_offset):
            return False
        if count == 0 and horizon_ms < 0:
            base_timestamp = timestamp
        count += 1
        last_offset = offset
        max_timestamp = max(max_timestamp, timestamp)
        end = records.position[record] + records.size[record]
        deltas = (timestamp - base_timestamp, offset - base_offset)
        position = put_record(out, position, records.data, records.position[record], end, deltas)
    # With LogAppendTime every record has the batch's time, whichever records stay.
    if batches.attributes[row] & TIMESTAMP_TYPE_BIT:
        max_timestamp = int(batches.max_timestamp[row])
    # The last offset delta (byte 23) stays as it was: followers and the producer's next sequence rely on the batch's
    # old range of offsets, even if its last record is gone.
    copy_block(out, start, batches.headers, int(batches.position[row]), HEADER_SIZE_BYTES)
    # Byte positions of magic 2: length 8, attributes 21, base timestamp 27, largest timestamp 35, count 57. The length
    # counts from after itself.
    put_number(out, start + 8, position - start - 12, 4)
    put_number(
        out, start + 21, (batches.attributes[row] & ATTRIBUTES_MASK) | (DELETE_HORIZON_BIT if horizon_ms >= 0 else 0), 2
    )
    put_number(out, start + 27, base_timestamp, 8)
    put_number(out, start + 35, max_timestamp, 8)
    put_number(out, start + 57, count, 4)
    result[row, OUT_END], result[row, MAX_TIMESTAMP], result[row, MAX_OFFSET] = position, max_timestamp, last_offset
    return True


@compiled_with(
    copy_block, put_number, zigzag, varint_size, put_varint, varint_end, put_record, put_batch, allocates=False
)
def write_batches(batches: WrittenBatches, records: KeptRecords, out: ByteArray, result: Int64Array) -> int:
    """Write batches one after the other to `out`; return the first row that Kafka would refuse, or their count.

    `result` int64[B, RESULT_WIDTH] receives a row per batch. Each batch must retain at least one record.
    """
    position = 0
    for row in range(batches.position.shape[0]):
        if not put_batch(out, position, batches, row, records, result):
            return row
        position = int(result[row, OUT_END])
    return len(batches.position)


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
