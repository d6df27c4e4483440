"""Magic 2, Kafka's record batches since 0.11: a header of 61 bytes, then records, compressed together or not.

What it decides: what the bytes of a batch say. Kafka's readers are lenient in places and strict in others, and
so is this one: only the lower half of the attributes counts, a batch of no records may be followed by anything, any
negative key size is null, and offsets of records are not held against the header's.

Constraints: the checksum covers attributes to the end. What a broker rewrites in place stands before it: base
offset, length, leader epoch, magic. So a flipped base offset passes, which is Kafka's rule too.
Numbers are Java's: sums of 64 bits wrap. Nothing is read past the batch.

How: the header is unpacked once into a named tuple. Records are numbers as in `log.varint`: length, attributes (one
byte, unused), timestamp delta, offset delta, key size and key, value size and value, header count and headers.

Example: the 61 bytes of an empty batch have length 49, magic 2 and record count 0.

Left out: columns, in `log.fill`; this reader is the slow and readable twin of that kernel.

Source: org.apache.kafka.common.record.{DefaultRecordBatch,DefaultRecord}, 4.0.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batch import RecordBatch
from log.columns import RecordColumns
from log.compression import DECOMPRESSED_BYTES_MAX, Codec, decompress
from log.crc import BytesLike, crc32c
from log.errors import CorruptBatchError, InvalidRecordError
from log.fill import columns_of_payload
from log.record import NO_SEQUENCE, Header, Record, TimestampType, increment_sequence, int64
from log.varint import read_varint, read_varlong

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
TIMESTAMP_TYPE_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40
NO_HEADERS: Final[tuple[Header, ...]] = ()


class BatchHeader(NamedTuple):
    """The header's fields as stored; `HEADER_FIELDS` has the same names in the same order."""

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
    """A batch of magic 2 (or of a larger one, which only the file reader takes, and takes for a 2)."""

    __slots__ = ("header",)

    def __init__(self, data: memoryview, position: int = 0, source: str = "") -> None:
        super().__init__(data, position, source)
        # A batch shorter than its header is refused by `ensure_valid`; until then absent bytes are zeros.
        whole = data if len(data) >= HEADER.size else bytes(data).ljust(HEADER.size, b"\0")
        self.header = BatchHeader._make(HEADER.unpack_from(whole))

    @property
    def magic(self) -> int:
        """2, or what the file reader takes for it."""
        return self.header.magic

    @property
    def attributes(self) -> int:
        """The field as stored, 16 bits, signed."""
        return self.header.attributes

    @property
    def crc(self) -> int:
        """The checksum as stored, unsigned."""
        return self.header.crc

    @property
    def base_offset(self) -> Offset:
        """The first offset that the batch covers."""
        return Offset(self.header.base_offset)

    @property
    def last_offset(self) -> Offset:
        """The last offset that the batch covers."""
        return Offset(int64(self.header.base_offset + self.header.last_offset_delta))

    @property
    def timestamp_type(self) -> TimestampType:
        """Who set the timestamps."""
        return TimestampType.LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_BIT else TimestampType.CREATE_TIME

    @property
    def base_timestamp(self) -> TimeMs:
        """What the records' times are relative to: the first's, or the delete horizon."""
        return TimeMs(self.header.base_timestamp)

    @property
    def max_timestamp(self) -> TimeMs:
        """The largest time of the records when it was written, or the time of the append."""
        return TimeMs(self.header.max_timestamp)

    @property
    def last_offset_delta(self) -> int:
        """`last_offset` less `base_offset`."""
        return self.header.last_offset_delta

    @property
    def producer_id(self) -> ProducerId:
        """Who wrote it, -1 for a producer without id."""
        return ProducerId(self.header.producer_id)

    @property
    def producer_epoch(self) -> ProducerEpoch:
        """The producer's epoch, -1 for none."""
        return ProducerEpoch(self.header.producer_epoch)

    @property
    def base_sequence(self) -> int:
        """The producer's number of the first record, -1 for none."""
        return self.header.base_sequence

    @property
    def last_sequence(self) -> int:
        """The producer's number of the last record."""
        if self.header.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.header.base_sequence, self.header.last_offset_delta)

    @property
    def partition_leader_epoch(self) -> LeaderEpoch:
        """The epoch of the leader that appended it."""
        return LeaderEpoch(self.header.partition_leader_epoch)

    @property
    def record_count(self) -> int:
        """How many records the header announces."""
        return self.header.record_count

    @property
    def is_transactional(self) -> bool:
        """Whether it is part of a transaction."""
        return bool(self.header.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """Whether its records are the cluster's own."""
        return bool(self.header.attributes & CONTROL_BIT)

    @property
    def delete_horizon_ms(self) -> TimeMs | None:
        """When its tombstones and markers may go."""
        return TimeMs(self.header.base_timestamp) if self.header.attributes & DELETE_HORIZON_BIT else None

    def is_valid(self) -> bool:
        """Whether the size can hold a batch and the checksum is right."""
        return len(self.data) >= HEADER.size and crc32c(self.data[CHECKED_POSITION:]) == self.header.crc

    def ensure_valid(self) -> None:
        """Raise CorruptBatchError unless `is_valid`."""
        if len(self.data) < HEADER.size:
            raise self.corrupt(
                f"Record batch is corrupt (the size {len(self.data)} is smaller than the minimum allowed "
                f"overhead {HEADER.size})"
            )
        computed = crc32c(self.data[CHECKED_POSITION:])
        if computed != self.header.crc:
            raise self.corrupt(f"Record is corrupt (stored crc = {self.header.crc}, computed crc = {computed})")

    def payload(self, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> BytesLike:
        """Return the records section, decompressed; raise CorruptDataError of some kind."""
        with self.located():
            if len(self.data) < HEADER.size:
                raise CorruptBatchError(f"the size {len(self.data)} cannot hold the header of a batch")
            if self.codec is Codec.NONE:
                return self.data[HEADER.size :]
            return decompress(self.codec, self.data[HEADER.size :], magic=self.magic, bytes_max=bytes_max)

    def records(self) -> tuple[Record, ...]:
        """Return the records, decompressed; the checksum is not asked."""
        header = self.header
        if self._is_empty():
            return ()
        payload = bytes(self.payload())
        with self.located():
            if header.record_count < 0:
                raise InvalidRecordError(f"Found invalid record count {header.record_count} in magic v2 batch")
            return _read_records(payload, header)

    def columns(self) -> RecordColumns:
        """Return the records as columns; the checksum is not asked. Positions are in the decompressed payload."""
        columns = columns_of_payload(self.data, b"" if self._is_empty() else self.payload())
        if columns is None:
            self.records()  # Says what is wrong.
        assert columns is not None, "the kernel refused what its twin accepts"
        return columns

    def _is_empty(self) -> bool:
        """Whether it has no records: then nobody looks at what follows the header."""
        return self.header.record_count == 0 and len(self.data) >= HEADER.size


def _read_records(payload: bytes, header: BatchHeader) -> tuple[Record, ...]:
    records: list[Record] = []
    position = 0
    try:
        for _ in range(header.record_count):  # Each turn reads at least seven bytes, or raises.
            record, position = _read_record(payload, position, header)
            records.append(record)
    except InvalidRecordError as error:
        raise InvalidRecordError(f"record {len(records)} of {header.record_count}: {error.what}") from None
    if position != len(payload):
        raise InvalidRecordError("Incorrect declared batch size, records still remaining in file")
    return tuple(records)


def _read_record(payload: bytes, position: int, header: BatchHeader) -> tuple[Record, int]:
    size, position = read_varint(payload, position)
    end = position + size
    if size < 0 or end > len(payload):
        raise InvalidRecordError(
            f"Invalid record size: expected {size} bytes in record payload, but {len(payload) - position} remain"
        )
    timestamp_delta, position = read_varlong(payload, position + 1)  # After the attributes, which mean nothing.
    offset_delta, position = read_varint(payload, position)
    key, position = _read_bytes(payload, position)
    value, position = _read_bytes(payload, position)
    count, position = read_varint(payload, position)
    if not 0 <= count <= len(payload) - position:
        raise InvalidRecordError(f"Found invalid number of record headers {count}")
    headers = NO_HEADERS
    if count:
        headers, position = _read_headers(payload, position, count)
    if position != end:
        raise InvalidRecordError(
            f"Invalid record size: expected to read {size} bytes in record payload, but instead read "
            f"{position - end + size}"
        )
    is_append_time = header.attributes & TIMESTAMP_TYPE_BIT
    timestamp = header.max_timestamp if is_append_time else int64(header.base_timestamp + timestamp_delta)
    sequence = NO_SEQUENCE if header.base_sequence < 0 else increment_sequence(header.base_sequence, offset_delta)
    offset = int64(header.base_offset + offset_delta)
    return Record(Offset(offset), TimeMs(timestamp), key, value, headers, sequence), position


def _read_bytes(payload: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = read_varint(payload, position)
    if size < 0:
        return None, position
    if size > len(payload) - position:
        raise InvalidRecordError(f"Found invalid record structure: a field of {size} bytes runs past the records")
    return payload[position : position + size], position + size


def _read_headers(payload: bytes, position: int, count: int) -> tuple[tuple[Header, ...], int]:
    headers: list[Header] = []
    for _ in range(count):  # Each turn reads at least two bytes, or raises.
        name, position = _read_bytes(payload, position)
        if name is None:
            raise InvalidRecordError("Invalid negative header key size")
        value, position = _read_bytes(payload, position)
        headers.append(Header(name.decode("utf-8", "replace"), value))
    return tuple(headers), position
