"""Read a segment's log file as the cleaner does, headers first.

Source: kafka.log.Cleaner.cleanInto and growBuffersOrFail, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.errors import CorruptDataError
from broker.ids import INT32_MAX
from broker.units import MIB
from log.batches.batch import RecordBatch
from log.batches.batch_v2 import HEADER, BatchV2
from log.batches.fill import ColumnFill, plan_of
from log.batches.header_table import as_array, walk
from log.batches.in_buffer import BatchReader, batch_at
from log.batches.record_columns import ByteArray, HeaderColumns, RecordColumns
from log.batches.records_kernel import RECORD_COUNT
from log.codecs.compression import CODEC_MASK, Codec, decompress
from log.codecs.crc import BytesLike
from log.errors import CorruptBatchError
from log.record import Record

UNPACKED_BYTES_MAX: Final = 16 * MIB


@attrs.frozen(eq=False)
class Chunk:
    """Hold the records of consecutive batches: the headers' rows `start_row` to before `end_row`."""

    start_row: int
    end_row: int
    columns: RecordColumns


@attrs.frozen(eq=False)
class SourceLog:
    """Hold the bytes of a log file, and its name for errors."""

    data: memoryview
    name: str = ""

    @property
    def array(self) -> ByteArray:
        """Return the bytes as a NumPy array, without a copy."""
        return as_array(self.data)

    def batch_at(self, position: int) -> RecordBatch:
        """Return the batch that begins at `position`, as found in a header."""
        batch = batch_at(self.data, position, reader=BatchReader.MEMORY, source=self.name)
        assert batch is not None, position
        return batch

    def headers(self, start_position: int = 0) -> Iterator[HeaderColumns]:
        """Yield the batch headers from a position on, piece by piece; raise CorruptBatchError at damage."""
        array, position = self.array, start_position
        while position < len(array):  # Each piece ends behind where it began, or with damage.
            headers = walk(array, position, len(array), is_file_reader=False)
            yield headers
            if headers.damage is not None:
                raise CorruptBatchError(headers.damage.what, source=self.name, position=headers.damage.position)
            assert headers.end_position > position, position
            position = headers.end_position

    def records(self, headers: HeaderColumns, wanted: NDArray[np.bool_]) -> Iterator[Chunk]:
        """Yield the batches chunk by chunk, with the records of those that are `wanted` (bool[B]) only.

        Raises CorruptDataError at damage, after the batches before it.
        """
        kinds = np.where(headers.magic < 2, 2, headers.attributes & CODEC_MASK != 0)
        bounds = [0, *(np.flatnonzero(kinds[1:] != kinds[:-1]) + 1).tolist(), len(headers)]
        for start_row, end_row in pairwise(bounds):
            while start_row < end_row:
                is_whole = end_row - start_row == len(headers)
                run = headers if is_whole else headers.rows(start_row, end_row)
                mask = wanted[start_row:end_row]
                if kinds[start_row] == 2:
                    columns = self._messages(run, mask)
                elif kinds[start_row] == 1:
                    columns = self._unpacked(run, mask)
                else:
                    starts = run.position + HEADER.size
                    columns = self._filled(self.array, run, starts, run.position + run.size_bytes, mask)
                yield Chunk(start_row, start_row + len(columns.batches), columns)
                start_row += len(columns.batches)

    def _filled(
        self, data: ByteArray, run: HeaderColumns, starts: Int64Array, ends: Int64Array, wanted: NDArray[np.bool_]
    ) -> RecordColumns:
        """Return the records of batches of magic 2, whose payloads stand in `data` from `starts` to `ends`."""
        plan = plan_of(run, starts, ends)
        plan[RECORD_COUNT, ~wanted] = 0
        fill = ColumnFill(data, run, plan)
        columns = fill.next_columns(rows_max=INT32_MAX)
        if fill.broken_batch is not None:
            self.batch_at(int(run.position[fill.broken_batch])).records()
            raise AssertionError("the careful reader finds nothing wrong")
        return columns

    def _unpacked(self, run: HeaderColumns, wanted: NDArray[np.bool_]) -> RecordColumns:
        """Return the records of the first compressed batches of `run`, as many as are unpacked at once."""
        pieces: list[BytesLike] = []
        ends: list[int] = []
        size_bytes = 0
        codecs = (run.attributes & CODEC_MASK).tolist()
        spans = zip(run.position.tolist(), run.size_bytes.tolist(), codecs, wanted.tolist(), strict=True)
        for position, batch_size_bytes, codec, is_wanted in spans:
            if is_wanted:
                pieces.append(self._payload(position, batch_size_bytes, codec))
                size_bytes += len(pieces[-1])
            ends.append(size_bytes)
            if size_bytes > UNPACKED_BYTES_MAX:
                break
        count = len(ends)
        bounds = np.array([0, *ends], np.int64)
        return self._filled(as_array(b"".join(pieces)), run.rows(0, count), bounds[:-1], bounds[1:], wanted[:count])

    def _payload(self, position: int, size_bytes: int, codec: int) -> BytesLike:
        """Return the records section of a batch of magic 2, decompressed."""
        try:
            return decompress(Codec(codec), self.data[position + HEADER.size : position + size_bytes])
        except (CorruptDataError, ValueError):  # The batch itself says where it stands, and which codec is unknown.
            batch = self.batch_at(position)
            assert isinstance(batch, BatchV2), position
            return batch.payload()

    def _messages(self, run: HeaderColumns, wanted: NDArray[np.bool_]) -> RecordColumns:
        """Return the records of the first messages of magic 0 or 1 of `run`, as many as are unpacked at once."""
        records: list[Record] = []
        batch_index: list[int] = []
        size_bytes = count = 0
        for row, position in enumerate(run.position.tolist()):
            count += 1
            if wanted[row]:
                found = self.batch_at(position).records()
                records.extend(found)
                batch_index.extend([row] * len(found))
                size_bytes += sum(len(record.key or b"") + len(record.value or b"") for record in found)
            if size_bytes > UNPACKED_BYTES_MAX:
                break
        return _columns_of(records, np.array(batch_index, np.int32), run.rows(0, count))


def _columns_of(records: Sequence[Record], batch_index: Int32Array, batches: HeaderColumns) -> RecordColumns:
    """Return records as columns whose data are their keys; the positions of everything else are left out."""
    key_size = np.array([-1 if record.key is None else len(record.key) for record in records], np.int32)
    value_size = np.array([-1 if record.value is None else len(record.value) for record in records], np.int32)
    ends = np.cumsum(np.maximum(key_size, 0), dtype=np.int64)
    unknown, none = np.zeros(len(records), np.int64), np.zeros(len(records), np.int32)
    return RecordColumns(
        data=as_array(b"".join(record.key for record in records if record.key is not None)),
        batches=batches,
        batch_index=batch_index,
        offset=np.array([record.offset for record in records], np.int64),
        timestamp=np.array([record.timestamp for record in records], np.int64),
        key_position=ends - np.maximum(key_size, 0),
        key_size=key_size,
        value_position=unknown,
        value_size=value_size,
        header_count=none,
        record_position=unknown,
        record_size=none,
        damages=(),
    )
