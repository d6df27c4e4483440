"""Read record batches of magic 2 (since Kafka 0.11): a header of 61 bytes, then records, compressed or not.

Source: org.apache.kafka.common.record.{DefaultRecordBatch,DefaultRecord}, 4.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from broker.errors import CorruptDataError
from broker.ids import INT32_MAX, LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.allowance import ReadingAllowance
from log.batches.batch import RecordBatch, RecordSlice
from log.batches.fill import columns_of_payload
from log.batches.record_columns import RecordColumns
from log.batches.records_v2 import MANY, check_records, each_record, slices_of
from log.codecs.compression import DECOMPRESSED_BYTES_MAX, Codec, codec_of, decompress
from log.codecs.crc import BytesLike, crc32c
from log.errors import CorruptBatchError, InvalidRecordError
from log.record import (
    CONTROL_BIT,
    NO_SEQUENCE,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    Record,
    TimestampType,
    increment_sequence,
    int64,
)

HEADER_FIELDS: Final = (
    ("base_offset", "q"),
    ("length", "i"),
    ("partition_leader_epoch", "i"),
    ("magic", "b"),
    ("crc", "I"),
    ("attributes", "h"),
    ("last_offset_delta", "i"),
    ("base_timestamp", "q"),
    ("max_timestamp", "q"),
    ("producer_id", "q"),
    ("producer_epoch", "h"),
    ("base_sequence", "i"),
    ("record_count", "i"),
)
HEADER: Final = struct.Struct(">" + "".join(code for _, code in HEADER_FIELDS))
assert HEADER.size == 61, HEADER.size  # The protocol's record batch overhead.

CRC_POSITION: Final = 17
CHECKED_POSITION: Final = 21
"""Where the bytes begin that the checksum covers; what stands before may be rewritten without it."""
LENGTH_BYTES: Final = 12
"""What the length field leaves out: base offset and the length itself."""
DELETE_HORIZON_BIT: Final = 0x40
# Named once, as in `log.batches.in_buffer`.
_CREATE_TIME: Final = TimestampType.CREATE_TIME
_LOG_APPEND_TIME: Final = TimestampType.LOG_APPEND_TIME
_NO_CODEC: Final = Codec.NONE


class BatchHeader(NamedTuple):
    """Hold a header's fields as stored; names and order are those of `HEADER_FIELDS`."""

    base_offset: int
    length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int


assert BatchHeader._fields == tuple(name for name, _ in HEADER_FIELDS)


class BatchV2(RecordBatch):
    """Read a batch of magic 2; the file reader also reads a batch of a larger magic as magic 2."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "crc",
        "last_offset",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
        "record_count",
    )

    # What every batch has, as plain fields: simulations ask each of them several times an append.
    magic: int
    attributes: int
    crc: int
    base_offset: Offset
    last_offset: Offset
    base_timestamp: TimeMs
    max_timestamp: TimeMs
    last_offset_delta: int
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    base_sequence: int
    partition_leader_epoch: LeaderEpoch
    record_count: int

    def __init__(self, data: memoryview, position: int = 0, source: str = "") -> None:
        self.data = data
        self.position = position
        self.source = source
        (
            self.base_offset,
            _length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = HEADER.unpack_from(data if len(data) >= HEADER.size else _filled_up(data))
        self.last_offset = Offset(int64(self.base_offset + self.last_offset_delta))

    def with_header_of(self, file: memoryview) -> BatchV2:
        """Return this batch with the header that Kafka's file reader sees: it may reach into what follows the batch.

        Raises CorruptBatchError where the file ends before the header does.
        """
        header = file[self.position : self.position + HEADER.size]
        if len(header) < HEADER.size:
            raise self.corrupt("the file ends inside the header of a batch")
        batch = BatchV2(header, self.position, self.source)
        batch.data = self.data
        return batch

    @property
    def header(self) -> BatchHeader:
        """Return the header's fields as stored, the length included."""
        return BatchHeader._make(HEADER.unpack_from(_filled_up(self.data)))

    @property
    def timestamp_type(self) -> TimestampType:
        """Return the timestamp type: CreateTime or LogAppendTime."""
        return _LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_BIT else _CREATE_TIME

    @property
    def last_sequence(self) -> int:
        """Return the sequence number of the last record, -1 without one."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def is_transactional(self) -> bool:
        """Return whether the batch is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """Return whether the batch holds control records."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def delete_horizon_ms(self) -> TimeMs | None:
        """Return when the cleaner may remove tombstones and markers, in milliseconds; None until the cleaner set it."""
        return TimeMs(self.base_timestamp) if self.attributes & DELETE_HORIZON_BIT else None

    def is_valid(self) -> bool:
        """Return whether the size can hold a batch and the checksum is right."""
        return len(self.data) >= HEADER.size and crc32c(self.data[CHECKED_POSITION:]) == self.crc

    def ensure_valid(self) -> None:
        """Raise CorruptBatchError unless `is_valid`."""
        if len(self.data) < HEADER.size:
            raise self.corrupt(
                f"Record batch is corrupt (the size {len(self.data)} is smaller than the minimum allowed "
                f"overhead {HEADER.size})"
            )
        computed = crc32c(self.data[CHECKED_POSITION:])
        if computed != self.crc:
            raise self.corrupt(f"Record is corrupt (stored crc = {self.crc}, computed crc = {computed})")

    def _ensure_header(self) -> None:
        if len(self.data) < HEADER.size:
            raise CorruptBatchError(f"the size {len(self.data)} cannot hold the header of a batch")

    def payload(self, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> BytesLike:
        """Return the decompressed records section; raise a CorruptDataError for damage."""
        try:
            self._ensure_header()
            codec = codec_of(self.attributes)
            payload = self.data[HEADER.size :]
            return payload if codec is _NO_CODEC else decompress(codec, payload, magic=self.magic, bytes_max=bytes_max)
        except CorruptDataError as error:
            raise self.placed(error) from None

    def records(self) -> tuple[Record, ...]:
        """Return the decompressed records without verifying the checksum."""
        return self.records_one_by_one() if self.record_count < MANY else super().records()

    def record_slices(
        self, *, headers_max: int = INT32_MAX, allowance: ReadingAllowance | None = None
    ) -> Iterator[RecordSlice]:
        """Yield the records some at a time; of a compressed batch, which Kafka reads whole, none before damage."""
        if self._is_empty():
            return
        try:
            self._ensure_header()
        except CorruptDataError as error:
            raise self.placed(error) from None
        limits = None if self.codec is _NO_CODEC else allowance
        payload = bytes(self.payload() if limits is None else limits.take_from(self.payload))
        done = 0
        try:
            if self.codec is not _NO_CODEC:
                check_records(payload, self)
            for found in slices_of(payload, self, headers_max=headers_max):
                header_count = sum(len(record.headers) for record in found.records)
                if limits is not None and not limits.take_records(len(found.records), header_count):
                    raise limits.refusal(f"{self.record_count - done:,} of its {self.record_count:,} records are")
                done += len(found.records)
                yield found
        except CorruptDataError as error:
            raise self.placed(error) from None

    def columns(self) -> RecordColumns:
        """Return the records as columns without verifying the checksum; positions are in the decompressed payload."""
        columns = columns_of_payload(self.data, b"" if self._is_empty() else self.payload())
        if columns is None:
            self.records_one_by_one()  # Says what is wrong.
        assert columns is not None, "the kernel refused what the reader of objects accepts"
        return columns

    def records_one_by_one(self) -> tuple[Record, ...]:
        """Return the records as `records` does, without the kernel: slower, but an error names the damaged field."""
        if self._is_empty():
            return ()
        payload = bytes(self.payload())
        try:
            return tuple(each_record(payload, self))
        except InvalidRecordError as error:
            raise self.placed(error) from None

    def _is_empty(self) -> bool:
        """Return whether the batch has no records; then the bytes after the header are not read."""
        return self.record_count == 0 and len(self.data) >= HEADER.size


def _filled_up(data: memoryview) -> bytes:
    """Return the header's bytes; of a batch shorter than that, which `ensure_valid` refuses, absent ones are zeros."""
    return bytes(data[: HEADER.size]).ljust(HEADER.size, b"\0")
