"""Read messages of magic 0 and 1, plain or compressed in a wrapper message.

Source: org.apache.kafka.common.record.{AbstractLegacyRecordBatch,LegacyRecord}, 4.0; KIP-31 and KIP-32.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import ClassVar, Final

import attrs
import numpy as np

from broker.cluster import Int64Array
from broker.errors import CorruptDataError
from broker.ids import INT32_MAX, LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches import records_kernel as kernel
from log.batches.allowance import ReadingAllowance
from log.batches.batch import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    SLICE_ROWS,
    RecordBatch,
    RecordSlice,
)
from log.batches.fill import ROWS_MAX, named
from log.batches.header_table import as_array, walk
from log.batches.messages_kernel import ATTRIBUTES, MAGIC, message_tables
from log.batches.record_columns import ByteArray, HeaderColumns, RecordColumns
from log.batches.records_v2 import slice_of
from log.codecs.compression import CODEC_MASK, DECOMPRESSED_BYTES_MAX, Codec, decompress
from log.codecs.crc import BytesLike, crc32
from log.errors import InvalidRecordError
from log.record import NO_SEQUENCE, NO_TIMESTAMP, TIMESTAMP_TYPE_BIT, TimestampType, int64


@attrs.frozen
class InnerSet:
    """Hold the first offset and the count of a wrapper's messages; `base` is added to each stored offset."""

    first_offset: Offset
    base: int
    count: int


MESSAGE_COST: Final = 2
"""How many records cost as much as a message as an object: it has a checksum of its own."""
ENTRY: Final = struct.Struct(">qi")
FIXED_V0: Final = struct.Struct(">Ibb")
FIXED_V1: Final = struct.Struct(">Ibbq")
SIZE: Final = struct.Struct(">i")
CRC_POSITION: Final = ENTRY.size
CHECKED_POSITION: Final = ENTRY.size + 4
"""Where the bytes begin that the checksum covers: magic to the end."""
MESSAGE_BYTES_MIN: Final = {0: FIXED_V0.size + 2 * SIZE.size, 1: FIXED_V1.size + 2 * SIZE.size}
assert MESSAGE_BYTES_MIN == {0: 14, 1: 22}


class LegacyBatch(RecordBatch):
    """Read one message of magic 0 or 1, plain or a wrapper; the file reader reads a negative magic as 1.

    What came with magic 2 is absent, and the timestamp of a wrapper is the largest inside.
    """

    __slots__ = ("attributes", "crc", "last_offset", "magic", "max_timestamp")

    magic: int
    attributes: int
    crc: int
    last_offset: Offset
    max_timestamp: TimeMs
    base_timestamp: ClassVar[TimeMs] = NO_TIMESTAMP
    producer_id: ClassVar[ProducerId] = NO_PRODUCER_ID
    producer_epoch: ClassVar[ProducerEpoch] = NO_PRODUCER_EPOCH
    base_sequence: ClassVar[int] = NO_SEQUENCE
    last_sequence: ClassVar[int] = NO_SEQUENCE
    partition_leader_epoch: ClassVar[LeaderEpoch] = NO_LEADER_EPOCH
    is_transactional: ClassVar[bool] = False
    is_control: ClassVar[bool] = False
    delete_horizon_ms: ClassVar[TimeMs | None] = None

    def __init__(self, data: memoryview, position: int = 0, source: str = "") -> None:
        super().__init__(data, position, source)
        assert len(data) >= ENTRY.size + MESSAGE_BYTES_MIN[0], len(data)  # Readers hand out no shorter ones.
        self.last_offset, _ = ENTRY.unpack_from(data)
        self.crc, self.magic, self.attributes = FIXED_V0.unpack_from(data, ENTRY.size)
        self.max_timestamp = NO_TIMESTAMP
        if self.magic != 0 and len(data) >= ENTRY.size + FIXED_V1.size:
            self.max_timestamp = TimeMs(FIXED_V1.unpack_from(data, ENTRY.size)[3])

    @property
    def base_offset(self) -> Offset:
        """Return the first offset; a wrapper is decompressed to find it, which raises as `records` does."""
        return self.inner(self.payload()).first_offset

    @property
    def timestamp_type(self) -> TimestampType:
        """Return the timestamp type: CreateTime or LogAppendTime; magic 0 has none."""
        if self.magic == 0:
            return TimestampType.NO_TIMESTAMP_TYPE
        is_append_time = self.attributes & TIMESTAMP_TYPE_BIT
        return TimestampType.LOG_APPEND_TIME if is_append_time else TimestampType.CREATE_TIME

    @property
    def last_offset_delta(self) -> int:
        """Return `last_offset` minus `base_offset`."""
        return self.last_offset - self.base_offset

    @property
    def record_count(self) -> int:
        """Return the number of messages: 1, or as many as a wrapper holds."""
        return self.inner(self.payload()).count

    @property
    def is_wrapper(self) -> bool:
        """Return whether the message wraps a compressed set of messages."""
        return self.attributes & CODEC_MASK != Codec.NONE

    def is_valid(self) -> bool:
        """Return whether the size can hold a message and the checksum is right."""
        return self._is_large_enough() and crc32(self.data[CHECKED_POSITION:]) == self.crc

    def ensure_valid(self) -> None:
        """Raise CorruptBatchError unless `is_valid`."""
        if not self._is_large_enough():
            raise self.corrupt(
                "Record is corrupt (crc could not be retrieved as the record is too small, "
                f"size = {len(self.data) - ENTRY.size})"
            )
        computed = crc32(self.data[CHECKED_POSITION:])
        if computed != self.crc:
            raise self.corrupt(f"Record is corrupt (stored crc = {self.crc}, computed crc = {computed})")

    def columns(self) -> RecordColumns:
        """Return the messages as columns without verifying the checksum; positions are in `payload()`."""
        batches = walk(as_array(self.data), 0, len(self.data), is_file_reader=True)
        payload = self.payload()
        return next(self.columns_in_pieces(batches, payload, self.inner(payload), rows_max=INT32_MAX))

    def columns_in_pieces(
        self, batches: HeaderColumns, payload: BytesLike, inner: InnerSet, *, rows_max: int = ROWS_MAX
    ) -> Iterator[RecordColumns]:
        """Yield the messages of `payload()` as columns under the header in `batches`; offsets are moved by `inner`."""
        array = as_array(payload)
        try:
            for wide, narrow in message_tables(array, rows_max):
                yield named(array, batches, self._moved(array, wide, inner), narrow)
        except CorruptDataError as error:
            raise self.placed(error) from None

    def inner(self, payload: BytesLike) -> InnerSet:
        """Return first offset and count of the messages in `payload()`; raise a CorruptDataError as Kafka does."""
        try:
            return self._inner(as_array(payload))
        except CorruptDataError as error:
            raise self.placed(error) from None

    def payload(self, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> BytesLike:
        """Return the bytes that hold the messages: the entry itself, or a wrapper's decompressed value."""
        if not self.is_wrapper:
            return self.data
        try:
            wide, narrow = next(message_tables(as_array(self.data), 1))
            if self.magic < 0:
                raise InvalidRecordError(f"Invalid wrapper magic found in legacy deep record iterator {self.magic}")
            if self.codec is Codec.ZSTD:
                raise InvalidRecordError(f"zstd in a message of magic {self.magic}, which has none")
            position, size = int(wide[kernel.VALUE_POSITION, 0]), int(narrow[kernel.VALUE_SIZE, 0])
            if size < 0:
                raise InvalidRecordError(f"Found invalid compressed record set with null value (magic = {self.magic})")
            value = self.data[position : position + size]
            return decompress(self.codec, value, magic=self.magic, bytes_max=bytes_max)
        except CorruptDataError as error:
            raise self.placed(error) from None

    def record_slices(
        self, *, headers_max: int = INT32_MAX, allowance: ReadingAllowance | None = None
    ) -> Iterator[RecordSlice]:
        """Yield the messages as records, some at a time, without verifying the checksum."""
        limits = ReadingAllowance(INT32_MAX) if allowance is None else allowance
        payload = bytes(limits.take_from(self.payload) if self.is_wrapper else self.payload())
        try:
            array, done = as_array(payload), 0
            inner = self._inner(array)
            for wide, narrow in message_tables(array, SLICE_ROWS):
                if self.is_wrapper and not limits.take_records(MESSAGE_COST * wide.shape[1]):
                    raise limits.refusal(f"{inner.count - done:,} of its {inner.count:,} messages are")
                done += wide.shape[1]
                places = zip(wide[kernel.RECORD_POSITION].tolist(), narrow[kernel.RECORD_SIZE].tolist(), strict=True)
                found = slice_of(payload, self, self._moved(array, wide, inner), narrow)
                yield attrs.evolve(found, messages=tuple(payload[start : start + size] for start, size in places))
        except CorruptDataError as error:
            raise self.placed(error) from None

    def stored_sizes(self) -> tuple[int, int]:
        """Return the sizes of key and value as stored, unchecked but for where they stand; raise InvalidRecordError."""
        start = ENTRY.size + (FIXED_V1.size if self.magic else FIXED_V0.size)
        try:
            (key_size,) = SIZE.unpack_from(self.data, start)
            (value_size,) = SIZE.unpack_from(self.data, start + SIZE.size + max(key_size, 0))
        except struct.error:
            raise InvalidRecordError("Found invalid record structure: a field runs past the message") from None
        return int(key_size), int(value_size)

    def _inner(self, payload: ByteArray) -> InnerSet:
        """Return first offset and count of the messages in `payload`; an uncompressed message counts as one."""
        if not self.is_wrapper:
            return InnerSet(first_offset=self.last_offset, base=0, count=1)
        first = last = None
        count, codecs = 0, 0
        for wide, _narrow in message_tables(payload, ROWS_MAX):
            first, last = wide[kernel.OFFSET, 0] if first is None else first, wide[kernel.OFFSET, -1]
            count += wide.shape[1]
            codecs |= int((payload[wide[kernel.RECORD_POSITION] + ATTRIBUTES] & CODEC_MASK).max())
        if first is None or last is None:
            raise InvalidRecordError("Found invalid compressed record set with no inner records")
        base = self.last_offset - int(last) if self.magic != 0 and self.last_offset != 0 else 0
        if base < 0:
            raise InvalidRecordError(
                "Found invalid wrapper offset in compressed v1 message set, wrapper offset "
                f"'{self.last_offset}' is less than the last inner message offset '{last}' "
                "and it is not zero."
            )
        if codecs:
            raise InvalidRecordError("Inner messages must not be compressed")
        return InnerSet(first_offset=Offset(int64(base + int(first))), base=base, count=count)

    def _moved(self, payload: ByteArray, wide: Int64Array, inner: InnerSet) -> Int64Array:
        """Apply the wrapper's base offset and LogAppendTime to columns of its messages, in place."""
        wide[kernel.OFFSET] += np.int64(int64(inner.base))
        if self.is_wrapper and self.timestamp_type is TimestampType.LOG_APPEND_TIME:
            wide[kernel.TIMESTAMP, payload[wide[kernel.RECORD_POSITION] + MAGIC] != 0] = self.max_timestamp
        return wide

    def _is_large_enough(self) -> bool:
        return len(self.data) >= ENTRY.size + MESSAGE_BYTES_MIN[min(abs(self.magic), 1)]


def plain_columns(data: ByteArray, start_position: int, end_position: int, batches: HeaderColumns) -> RecordColumns:
    """Return a run of uncompressed messages as columns, each a batch of its own; raise InvalidRecordError."""
    (wide, narrow), *_ = message_tables(data, len(batches), start_position, end_position)
    narrow[kernel.BATCH_INDEX] = np.arange(len(batches))
    return named(data, batches, wide, narrow)
