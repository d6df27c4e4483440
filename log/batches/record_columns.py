"""Hold batches and records as columns, which a scan yields instead of objects."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, ClassVar, Final, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.errors import CorruptDataError, UsageError, shorten
from broker.ids import Offset
from broker.java.utf8 import decode_java_utf8
from broker.units import TimeMs
from log.batches.arrow_columns import RECORD_COLUMNS, record_columns
from log.codecs.varint import read_varint
from log.errors import ReadingLimitError
from log.record import NO_SEQUENCE, Header, Record, TimestampOffset, increment_sequence


@attrs.frozen(eq=False)
class BatchRun:
    """Hold B consecutive batches in `data`, with end positions, last offsets and largest timestamps as int64[B]."""

    data: memoryview
    ends: Int64Array
    last_offsets: Int64Array
    max_timestamps: Int64Array

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def largest_timestamp(self) -> TimestampOffset:
        """Return the largest timestamp, with the last offset of the first batch that has it."""
        row = int(self.max_timestamps.argmax())
        return TimestampOffset(int(self.max_timestamps[row]), int(self.last_offsets[row]))

    def rows(self, start: int, end: int) -> BatchRun:
        """Return the batches from `start` to before `end`, as views."""
        if end - start == len(self):
            return self
        first = int(self.ends[start - 1]) if start else 0
        ends = self.ends[start:end] - first
        last = first + int(ends[-1]) if len(ends) else first
        return BatchRun(self.data[first:last], ends, self.last_offsets[start:end], self.max_timestamps[start:end])


ByteArray: TypeAlias = NDArray[np.uint8]


@attrs.frozen
class Damage:
    """Describe an unreadable place in a file: a reader skips `size_bytes` from `position` on, or stops there."""

    error: CorruptDataError
    """What raising it would say."""
    position: int
    size_bytes: int
    base_offset: int | None = None
    """The offset that the damaged batch claims, None where not even that can be read."""
    is_torn_tail: bool = False
    """Whether it is an incomplete batch at the end of the file, which Kafka's readers pass over in silence."""

    @property
    def is_limit(self) -> bool:
        """Return whether the batch stands for more than is read, with a right checksum: it need not be damaged."""
        return isinstance(self.error, ReadingLimitError)

    @property
    def what(self) -> str:
        """Return a description of the damage."""
        return self.error.what

    @property
    def kafka_class(self) -> str:
        """Return the Java class that Kafka throws; a torn tail, which Kafka ignores, counts as a bad batch."""
        return str(getattr(self.error, "kafka_class", ""))


@attrs.frozen(eq=False)
class HeaderColumns:
    """Hold the headers of B consecutive batches, one row per batch; -1 stands for an absent number.

    Of a message of magic 0 or 1, `base_offset` is the offset field, so a wrapper's last offset; `record_count` is 1.
    """

    position: Int64Array
    size_bytes: Int64Array
    base_offset: Int64Array
    last_offset: Int64Array
    magic: Int64Array
    attributes: NDArray[np.int16]
    crc: Int64Array
    partition_leader_epoch: Int64Array
    base_timestamp: Int64Array
    max_timestamp: Int64Array
    producer_id: Int64Array
    producer_epoch: Int64Array
    base_sequence: Int64Array
    record_count: Int32Array
    end_position: int
    """Where the scan ended: after the last whole batch, or at the first damage."""
    damage: Damage | None
    """What stopped it before the end of the data, if anything (a torn tail too)."""

    COLUMN_NAMES: ClassVar[tuple[str, ...]] = (
        "position",
        "size_bytes",
        "base_offset",
        "last_offset",
        "magic",
        "attributes",
        "crc",
        "partition_leader_epoch",
        "base_timestamp",
        "max_timestamp",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "record_count",
    )

    def __len__(self) -> int:
        return len(self.position)

    def rows(self, start: int, end: int) -> HeaderColumns:
        """Return the rows from `start` to before `end`, as views."""
        if end - start == len(self):
            return self
        columns = {name: getattr(self, name)[start:end] for name in self.COLUMN_NAMES}
        return HeaderColumns(**columns, end_position=self.end_position, damage=None)


_NO_ROWS: Final = ("data", "batches", "damages")
"""The fields of `RecordColumns` that have no row for each record."""


@attrs.frozen(eq=False)
class RecordColumns:
    """Hold N records as columns, in the order of the log; sizes are -1 for null.

    Positions point into `data`: the scanned bytes themselves where the batch is not compressed, else a buffer
    that holds the decompressed records of this chunk. All rows of one chunk point into the same `data`.
    """

    data: ByteArray
    batches: HeaderColumns
    batch_index: Int32Array
    """Row of `batches` that a record belongs to, ascending."""
    offset: Int64Array
    timestamp: Int64Array
    """As readers see it: with LogAppendTime the batch's."""
    key_position: Int64Array
    key_size: Int32Array
    value_position: Int64Array
    value_size: Int32Array
    header_count: Int32Array
    record_position: Int64Array
    """Where the record's bytes begin (in magic 2 its length varint)."""
    record_size: Int32Array
    damages: tuple[Damage, ...]
    """What was skipped in or right after this chunk, when asked to keep going; the torn tail in the last chunk."""

    def __len__(self) -> int:
        return len(self.offset)

    def from_offset(self, offset: int) -> RecordColumns:
        """Return the records at `offset` or above, with all batches; as views."""
        first = int(np.searchsorted(self.offset, offset)) if len(self) and self.offset[0] < offset else 0
        return self.rows(first, len(self))

    def rows(self, start: int, end: int) -> RecordColumns:
        """Return the records of the rows from `start` to before `end`, with all batches; as views."""
        if end - start == len(self):
            return self
        names = [name for name, each in attrs.asdict(self, recurse=False).items() if name not in _NO_ROWS]
        return attrs.evolve(self, **{name: getattr(self, name)[start:end] for name in names})

    def pieces(self, size_bytes: int) -> Iterator[RecordColumns]:
        """Yield views of consecutive records of at most `size_bytes` together, or of one larger record."""
        ends = np.cumsum(self.record_size, dtype=np.int64)
        start = 0
        while start < len(self):  # Each turn takes a record at least.
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + size_bytes, side="right")))
            yield self.rows(start, stop)
            start = stop

    def to_arrow(self, columns: Collection[str] = RECORD_COLUMNS) -> Any:
        """Return the records as a pyarrow.RecordBatch with these of `RECORD_COLUMNS`, in the given order.

        Keys and values are binary, headers lists of key and value, timestamps ms since 1970, -1 for none. Raises
        UsageError for a name that is none of the columns.
        """
        for name in columns:
            if name not in RECORD_COLUMNS:
                raise UsageError(f"columns of records are {', '.join(RECORD_COLUMNS)}; not {shorten(name)!r}")
        import pyarrow as pa

        made = record_columns(self, frozenset(columns))
        return pa.RecordBatch.from_arrays([made[name] for name in columns], names=list(columns))

    def key(self, row: int) -> bytes | None:
        """Return the key of one record."""
        return self._slice(int(self.key_position[row]), int(self.key_size[row]))

    def value(self, row: int) -> bytes | None:
        """Return the value of one record."""
        return self._slice(int(self.value_position[row]), int(self.value_size[row]))

    def headers(self, row: int) -> tuple[Header, ...]:
        """Return the headers of one record, read from the bytes after its value."""
        count = int(self.header_count[row])
        if count == 0:
            return ()
        view = self.data.data
        position = int(self.value_position[row]) + max(int(self.value_size[row]), 0)
        _, position = read_varint(view, position)
        headers = []
        for _ in range(count):
            size, position = read_varint(view, position)
            name = bytes(view[position : position + size])
            size, position = read_varint(view, position + size)
            value = None if size < 0 else bytes(view[position : position + size])
            position += max(size, 0)
            headers.append(Header(decode_java_utf8(name), value))
        return tuple(headers)

    def record(self, row: int) -> Record:
        """Return one record; its sequence is the batch's `base_sequence` plus the record's place in the batch."""
        batch = int(self.batch_index[row])
        base_sequence = int(self.batches.base_sequence[batch])
        offset = int(self.offset[row])
        sequence = NO_SEQUENCE
        if base_sequence >= 0:
            sequence = increment_sequence(base_sequence, offset - int(self.batches.base_offset[batch]))
        return Record(
            Offset(offset),
            TimeMs(int(self.timestamp[row])),
            self.key(row),
            self.value(row),
            self.headers(row),
            sequence,
        )

    def _slice(self, position: int, size: int) -> bytes | None:
        return None if size < 0 else self.data[position : position + size].tobytes()
