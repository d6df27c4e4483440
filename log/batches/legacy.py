"""Read messages of magic 0 and 1, plain or compressed in a wrapper message.

Source: org.apache.kafka.common.record.{AbstractLegacyRecordBatch,LegacyRecord}, 4.0; KIP-31 and KIP-32.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

import attrs
import numpy as np

from broker.errors import CorruptDataError
from broker.ids import INT32_MAX, LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.allowance import ReadingAllowance
from log.batches.batch import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    SLICE_ROWS,
    RecordBatch,
    RecordSlice,
    in_chunks,
)
from log.batches.fill import ROWS_MAX, named
from log.batches.header_table import as_array, walk
from log.batches.record_columns import ByteArray, HeaderColumns, RecordColumns
from log.codecs.compression import CODEC_MASK, DECOMPRESSED_BYTES_MAX, Codec, decompress
from log.codecs.crc import BytesLike, crc32
from log.errors import CorruptBatchError, DecompressionError, InvalidRecordError
from log.record import NO_SEQUENCE, NO_TIMESTAMP, TIMESTAMP_TYPE_BIT, Record, TimestampType, int64


@attrs.frozen
class Message:
    """Hold the positions of the parts of one plain message in a buffer; sizes are -1 for null."""

    offset: Offset
    timestamp: TimeMs
    position: int
    size_bytes: int
    key_position: int
    key_size: int
    value_position: int
    value_size: int


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
        return next(self.record_slices()).records[0].offset if self.is_wrapper else self.last_offset

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
        return sum(len(found.records) for found in self.record_slices()) if self.is_wrapper else 1

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
        return next(self.columns_in_pieces(batches, self.payload(), rows_max=len(self.data)))

    def columns_in_pieces(
        self, batches: HeaderColumns, payload: BytesLike, rows_max: int = ROWS_MAX, *, records_max: int = INT32_MAX
    ) -> Iterator[RecordColumns]:
        """Yield the messages of `payload()` as columns under the header in `batches`; raise a CorruptDataError.

        A wrapper of more than `records_max` messages is refused.
        """
        data = as_array(payload)
        try:
            if not self.is_wrapper:
                return plain_columns(data, 0, len(data), batches)
            base = self._inner_base(_at_most(_inner_messages(data.data), records_max), data)
        except CorruptDataError as error:
            raise self.placed(error) from None
        messages = (self._moved(message, base, data) for message in _inner_messages(data.data))
        return _columns(data, batches, messages, rows_max, is_one_batch=True)

    def payload(self, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> BytesLike:
        """Return the bytes that hold the messages: the entry itself, or a wrapper's decompressed value."""
        if not self.is_wrapper:
            return self.data
        try:
            outer = _message(self.data, 0, self.last_offset)
            if self.magic < 0:
                raise InvalidRecordError(f"Invalid wrapper magic found in legacy deep record iterator {self.magic}")
            if self.codec is Codec.ZSTD:
                raise InvalidRecordError(f"zstd in a message of magic {self.magic}, which has none")
            if outer.value_size < 0:
                raise InvalidRecordError(f"Found invalid compressed record set with null value (magic = {self.magic})")
            value = self.data[outer.value_position : outer.value_position + outer.value_size]
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
            for found in in_chunks(self._messages(payload), SLICE_ROWS):
                if self.is_wrapper and not limits.take_records(len(found)):
                    raise limits.refusal(f"the messages from offset {found[0].offset} on are")
                yield RecordSlice(tuple(_record(payload, message) for message in found))
        except CorruptDataError as error:
            raise self.placed(error) from None

    def _messages(self, payload: bytes) -> Iterator[Message]:
        """Yield the messages in `payload()`, a wrapper's with the offsets and timestamps that it gives them."""
        if not self.is_wrapper:
            yield _message(memoryview(payload), 0, self.last_offset)
            return
        base = self._inner_base(_inner_messages(memoryview(payload)), payload)
        for message in _inner_messages(memoryview(payload)):
            yield self._moved(message, base, payload)

    def each_message(self) -> Iterator[LegacyBatch]:
        """Yield the messages as they stand, each with its own checksum; a plain one is the batch itself."""
        if not self.is_wrapper:
            yield self
            return
        payload = memoryview(self.payload())
        for message in _inner_messages(payload):
            yield LegacyBatch(payload[message.position : message.position + message.size_bytes])

    def stored_sizes(self) -> tuple[int, int]:
        """Return the sizes of key and value as stored, unchecked but for where they stand; raise InvalidRecordError."""
        start = ENTRY.size + (FIXED_V1.size if self.magic else FIXED_V0.size)
        try:
            (key_size,) = SIZE.unpack_from(self.data, start)
            (value_size,) = SIZE.unpack_from(self.data, start + SIZE.size + max(key_size, 0))
        except struct.error:
            raise InvalidRecordError("Found invalid record structure: a field runs past the message") from None
        return int(key_size), int(value_size)

    def _inner_base(self, inner: Iterable[Message], buffer: BytesLike | ByteArray) -> int:
        """Return what is added to the offsets of a wrapper's messages; raise for a set that Kafka refuses."""
        last = None
        is_nested = False
        for last in inner:
            is_nested |= buffer[last.position + CHECKED_POSITION + 1] & CODEC_MASK != 0
        if last is None:
            raise InvalidRecordError("Found invalid compressed record set with no inner records")
        base = 0
        if self.magic != 0 and self.last_offset != 0:
            base = self.last_offset - last.offset
            if base < 0:
                raise InvalidRecordError(
                    "Found invalid wrapper offset in compressed v1 message set, wrapper offset "
                    f"'{self.last_offset}' is less than the last inner message offset '{last.offset}' "
                    "and it is not zero."
                )
        if is_nested:
            raise InvalidRecordError("Inner messages must not be compressed")
        return base

    def _moved(self, message: Message, base: int, buffer: BytesLike | ByteArray) -> Message:
        """Return an inner message with the offset and timestamp that its wrapper gives it."""
        is_append_time = self.timestamp_type is TimestampType.LOG_APPEND_TIME
        return attrs.evolve(
            message,
            offset=Offset(int64(base + message.offset)),
            timestamp=self.max_timestamp if is_append_time and _is_v1(buffer, message) else message.timestamp,
        )

    def _is_large_enough(self) -> bool:
        return len(self.data) >= ENTRY.size + MESSAGE_BYTES_MIN[min(abs(self.magic), 1)]


def _inner_messages(buffer: memoryview, position: int = 0, end: int | None = None) -> Iterator[Message]:
    """Yield the messages of a set; half a message at the end ends it, as in Kafka."""
    buffer = buffer[:end]
    while position + ENTRY.size <= len(buffer):  # Each turn reads at least 26 bytes.
        offset, size = ENTRY.unpack_from(buffer, position)
        if size < MESSAGE_BYTES_MIN[0]:
            raise CorruptBatchError(
                f"Record size {size} is less than the minimum record overhead ({MESSAGE_BYTES_MIN[0]})"
            )
        if position + ENTRY.size + size > len(buffer):
            return
        yield _message(buffer[: position + ENTRY.size + size], position, offset)
        position += ENTRY.size + size


def _at_most(messages: Iterator[Message], count_max: int) -> Iterator[Message]:
    for number, message in enumerate(messages):
        if number >= count_max:
            raise DecompressionError(f"more than the {count_max:,} messages that so small a file may hold")
        yield message


def _message(buffer: memoryview, position: int, offset: int) -> Message:
    """Return where the parts of the message at `position` stand; it reaches to the end of `buffer`."""
    start = position + ENTRY.size
    magic = FIXED_V0.unpack_from(buffer, start)[1]
    try:
        timestamp = FIXED_V1.unpack_from(buffer, start)[3] if magic else NO_TIMESTAMP
        key_position = start + (FIXED_V1.size if magic else FIXED_V0.size) + SIZE.size
        (key_size,) = SIZE.unpack_from(buffer, key_position - SIZE.size)
        value_position = key_position + max(key_size, 0) + SIZE.size
        (value_size,) = SIZE.unpack_from(buffer, value_position - SIZE.size)
    except struct.error:
        raise InvalidRecordError("Found invalid record structure: a field runs past the message") from None
    if value_position + max(value_size, 0) > len(buffer):
        raise InvalidRecordError("Found invalid record structure: the value runs past the message")
    return Message(
        Offset(offset),
        TimeMs(timestamp),
        position,
        len(buffer) - position,
        key_position,
        max(key_size, -1),
        value_position,
        max(value_size, -1),
    )


def plain_columns(
    data: ByteArray, start_position: int, end_position: int, batches: HeaderColumns
) -> Iterator[RecordColumns]:
    """Yield messages that follow one another, each a batch of its own, as columns; raise InvalidRecordError."""
    messages = tuple(_inner_messages(data.data, start_position, end_position))
    return _columns(data, batches, iter(messages), ROWS_MAX, is_one_batch=False)


def _columns(
    data: ByteArray, batches: HeaderColumns, messages: Iterator[Message], rows_max: int, *, is_one_batch: bool
) -> Iterator[RecordColumns]:
    first = 0
    for found in in_chunks(messages, rows_max):
        wide = [(each.offset, each.timestamp, each.key_position, each.value_position, each.position) for each in found]
        narrow = [
            (each.key_size, each.value_size, 0, each.size_bytes, 0 if is_one_batch else row)
            for row, each in enumerate(found, first)
        ]
        yield named(data, batches, np.array(wide, np.int64).T.copy(), np.array(narrow, np.int32).T.copy())
        first += len(found)


def _is_v1(buffer: BytesLike | ByteArray, message: Message) -> bool:
    return buffer[message.position + CHECKED_POSITION] != 0


def _record(payload: bytes, message: Message) -> Record:
    key = payload[message.key_position : message.key_position + max(message.key_size, 0)]
    value = payload[message.value_position : message.value_position + max(message.value_size, 0)]
    return Record(
        message.offset,
        message.timestamp,
        None if message.key_size < 0 else key,
        None if message.value_size < 0 else value,
    )
