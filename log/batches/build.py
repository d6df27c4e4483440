"""Encode records as one batch of magic 2, or as messages of magic 0 or 1.

Source: org.apache.kafka.common.record.{MemoryRecordsBuilder,DefaultRecord,DefaultRecordBatch}, 4.0.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import compress as selected
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.errors import UsageError
from broker.ids import INT32_MAX, INT64_MAX, LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from broker.values import value
from log.batches.batch import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, RecordBatch
from log.batches.batch_v2 import (
    CHECKED_POSITION,
    DELETE_HORIZON_BIT,
    HEADER_FIELDS,
    LENGTH_BYTES,
    BatchHeader,
    BatchV2,
)
from log.batches.legacy import ENTRY, FIXED_V0, FIXED_V1, SIZE
from log.codecs.compression import CODEC_MASK, Codec, compress
from log.codecs.crc import BytesLike, crc32, crc32c
from log.codecs.varint import write_varint
from log.record import (
    CONTROL_BIT,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    EndTransactionMarker,
    Record,
    TimestampType,
    int64,
)

FIRST_OFFSET: Final = Offset(0)
_NO_TIMESTAMP_TYPE: Final = TimestampType.NO_TIMESTAMP_TYPE  # Named once, as in `log.batches.in_buffer`.
_HALVES: Final = (
    *((name, 2**63) for name in ("base_offset", "log_append_time", "producer_id", "delete_horizon_ms", "last_offset")),
    *((name, 2**31) for name in ("base_sequence", "partition_leader_epoch")),
    ("producer_epoch", 2**15),
)
"""The numbers of a header, and half the count of values that each one's field can hold."""
_LEVELS: Final = {Codec.GZIP: (-1, 9), Codec.ZSTD: (-131_072, 22)}
"""The lowest and highest compression level, on the codec's own scale."""


@value
class BatchSpec:
    """Hold the header fields of a batch to be built; -1 stands for an absent number."""

    base_offset: Offset = FIRST_OFFSET
    magic: int = 2
    codec: Codec = Codec.NONE
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    log_append_time: TimeMs = NO_TIMESTAMP
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    is_control: bool = False
    partition_leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
    delete_horizon_ms: TimeMs | None = None
    last_offset: Offset | None = None
    """Where the batch ends, if beyond its last record."""
    compression_level: int | None = None
    """Of gzip or zstd, on their own scale; None is Kafka's default."""


def spec_of(batch: RecordBatch) -> BatchSpec:
    """Return the BatchSpec that builds a batch like `batch`; may raise CorruptDataError for a damaged wrapper."""
    is_append_time = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    return BatchSpec(
        base_offset=batch.base_offset,
        magic=batch.magic,
        codec=batch.codec,
        timestamp_type=batch.timestamp_type,
        log_append_time=batch.max_timestamp if is_append_time else NO_TIMESTAMP,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        partition_leader_epoch=batch.partition_leader_epoch,
        delete_horizon_ms=batch.delete_horizon_ms,
        last_offset=batch.last_offset,
    )


def check_spec(spec: BatchSpec) -> None:
    """Raise UsageError for header fields that exclude each other."""
    if spec.magic not in (0, 1, 2):
        raise UsageError(f"magic is {spec.magic}; 0, 1 and 2 are known")
    for name, half in _HALVES:
        number = getattr(spec, name)
        if number is not None and not -half <= number < half:
            raise UsageError(f"{name} is {number}; allowed are {-half} to {half - 1}")
    low, high = _LEVELS.get(spec.codec, (-INT32_MAX - 1, INT32_MAX))
    if spec.compression_level is not None and not low <= spec.compression_level <= high:
        raise UsageError(f"compression_level is {spec.compression_level}; {spec.codec.label} has {low} to {high}")
    if spec.magic > 0 and spec.timestamp_type is _NO_TIMESTAMP_TYPE:
        raise UsageError(f"magic {spec.magic} needs a timestamp type")
    if spec.magic < 2:
        _check_legacy(spec)
    if spec.is_transactional and spec.producer_id == NO_PRODUCER_ID:
        raise UsageError("Cannot write transactional messages without a valid producer ID")
    if spec.producer_id != NO_PRODUCER_ID:
        if spec.producer_epoch == NO_PRODUCER_EPOCH:
            raise UsageError("Invalid negative producer epoch")
        if spec.base_sequence < 0 and not spec.is_control:
            raise UsageError("Invalid negative sequence number used")


def _check_legacy(spec: BatchSpec) -> None:
    absent = {
        "Transactional records are": spec.is_transactional,
        "Control records are": spec.is_control,
        "ZStandard compression is": spec.codec is Codec.ZSTD,
        "Delete horizon timestamp is": spec.delete_horizon_ms is not None,
        "Idempotent messages are": spec.producer_id != NO_PRODUCER_ID,
    }
    for name, is_asked in absent.items():
        if is_asked:
            raise UsageError(f"{name} not supported for magic {spec.magic}")


def check_records(spec: BatchSpec, records: Sequence[Record]) -> None:
    """Raise UsageError for records that no batch can hold."""
    if not records:
        raise UsageError("a batch needs a record; an empty one is what the cleaner leaves of another (`emptied`)")
    previous = spec.base_offset - 1
    for record in records:
        if record.offset <= previous:
            raise UsageError(
                f"Illegal offset {record.offset} following previous offset {previous} "
                "(Offsets must increase monotonically)."
            )
        previous = record.offset
        if not NO_TIMESTAMP <= record.timestamp <= INT64_MAX:
            is_negative = record.timestamp < NO_TIMESTAMP
            raise UsageError(f"Invalid {'negative ' if is_negative else ''}timestamp {record.timestamp}")
        if record.headers and spec.magic < 2:
            raise UsageError(f"Magic v{spec.magic} does not support record headers")
    last = previous if spec.last_offset is None else spec.last_offset
    if not previous <= last <= spec.base_offset + INT32_MAX:
        raise UsageError(
            f"Maximum offset delta exceeded, base offset: {spec.base_offset}, last record: {previous}, "
            f"last offset: {last}"
        )


def build_messages(spec: BatchSpec, records: Sequence[Record]) -> bytes:
    """Return checked `records` as messages, inside one wrapper if the spec names a codec."""
    assert spec.magic < 2, spec.magic
    is_append_time = spec.timestamp_type is TimestampType.LOG_APPEND_TIME
    offset_base = spec.base_offset if spec.magic and spec.codec is not Codec.NONE else 0
    entries = []
    for record in records:
        timestamp = spec.log_append_time if is_append_time else record.timestamp
        message = _message(spec, Codec.NONE, timestamp, (record.key, record.value))
        entries.append(ENTRY.pack(record.offset - offset_base, len(message)) + message)
    plain = b"".join(entries)
    if spec.codec is Codec.NONE:
        return plain
    value = compress(spec.codec, plain, magic=spec.magic, level=spec.compression_level)
    timestamp = spec.log_append_time if is_append_time else max(record.timestamp for record in records)
    wrapper = _message(spec, spec.codec, timestamp, (None, value))
    return ENTRY.pack(records[-1].offset, len(wrapper)) + wrapper


def _message(
    spec: BatchSpec, codec: Codec, timestamp: TimeMs, key_and_value: tuple[bytes | None, bytes | None]
) -> bytes:
    is_append_time = spec.magic and spec.timestamp_type is TimestampType.LOG_APPEND_TIME
    attributes = codec | (TIMESTAMP_TYPE_BIT if is_append_time else 0)
    fixed = (
        FIXED_V1.pack(0, spec.magic, attributes, timestamp) if spec.magic else FIXED_V0.pack(0, spec.magic, attributes)
    )
    checked = [fixed[4:]]  # The checksum covers all but itself.
    for part in key_and_value:
        checked += (SIZE.pack(-1),) if part is None else (SIZE.pack(len(part)), part)
    body = b"".join(checked)
    return crc32(body).to_bytes(4, "big") + body


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


# Named once, as in `log.batches.in_buffer`.
_LOG_APPEND_TIME: Final = TimestampType.LOG_APPEND_TIME
_NO_CODEC: Final = Codec.NONE
_UNCHECKED: Final = struct.Struct(">" + "".join(code for _, code in HEADER_FIELDS[:5]))
_CHECKED: Final = struct.Struct(">" + "".join(code for _, code in HEADER_FIELDS[5:]))
assert _UNCHECKED.size == CHECKED_POSITION, _UNCHECKED.size


def build_batch(spec: BatchSpec, records: Sequence[Record]) -> bytes:
    """Encode `records` as one batch of magic 2, or as messages of magic 0 or 1 (one wrapper if compressed).

    Offsets are the records' own, ascending from at least `spec.base_offset`; their `sequence` is not looked at (it
    follows from `spec.base_sequence`). Uncompressed bytes equal Kafka's. Raises UsageError for what Kafka refuses.
    """
    check_spec(spec)
    check_records(spec, records)
    if spec.magic < 2:
        return build_messages(spec, records)
    horizon = spec.delete_horizon_ms
    base_timestamp = records[0].timestamp if horizon is None else horizon
    payload = bytearray()
    for record in records:
        # Java's long wraps: between -1 and the largest time there is one millisecond too many for it.
        append_record(payload, record, record.offset - spec.base_offset, int64(record.timestamp - base_timestamp))
    is_append_time = spec.timestamp_type is _LOG_APPEND_TIME
    last_offset = records[-1].offset if spec.last_offset is None else spec.last_offset
    header = BatchHeader(
        base_offset=spec.base_offset,
        length=0,
        partition_leader_epoch=spec.partition_leader_epoch,
        magic=spec.magic,
        crc=0,
        attributes=attributes_of(spec),
        last_offset_delta=last_offset - spec.base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=spec.log_append_time if is_append_time else max([record.timestamp for record in records]),
        producer_id=spec.producer_id,
        producer_epoch=spec.producer_epoch,
        base_sequence=spec.base_sequence,
        record_count=len(records),
    )
    if spec.codec is _NO_CODEC:
        return sealed(header, payload)
    return sealed(header, compress(spec.codec, bytes(payload), level=spec.compression_level))


def build_marker(spec: BatchSpec, marker: EndTransactionMarker, timestamp: TimeMs) -> bytes:
    """Return the 78-byte control batch that ends a transaction, uncompressed and without sequence numbers.

    Raises UsageError without a producer id and epoch in `spec`.
    """
    control = attrs.evolve(
        spec, codec=Codec.NONE, base_sequence=NO_SEQUENCE, is_transactional=True, is_control=True, last_offset=None
    )
    return build_batch(control, (Record(spec.base_offset, timestamp, marker.key(), marker.value()),))


def sealed(header: BatchHeader, payload: BytesLike) -> bytes:
    """Return the batch of this header and these (already compressed) records, with length and checksum computed."""
    checked = b"".join((_CHECKED.pack(*header[5:]), payload))
    length = CHECKED_POSITION - LENGTH_BYTES + len(checked)
    unchecked = _UNCHECKED.pack(
        header.base_offset, length, header.partition_leader_epoch, header.magic, crc32c(checked)
    )
    return unchecked + checked


def attributes_of(spec: BatchSpec) -> int:
    """Return the attributes field of a batch of magic 2."""
    return (
        spec.codec
        | (TIMESTAMP_TYPE_BIT if spec.timestamp_type is _LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL_BIT if spec.is_transactional else 0)
        | (CONTROL_BIT if spec.is_control else 0)
        | (DELETE_HORIZON_BIT if spec.delete_horizon_ms is not None else 0)
    )


def append_record(out: bytearray, record: Record, offset_delta: int, timestamp_delta: int) -> None:
    """Append one record's bytes to `out`."""
    body = bytearray(1)  # The attributes, which mean nothing.
    write_varint(body, timestamp_delta)
    write_varint(body, offset_delta)
    _write_bytes(body, record.key)
    _write_bytes(body, record.value)
    write_varint(body, len(record.headers))
    for header in record.headers:
        _write_bytes(body, header.name.encode(errors="replace"))  # As Java: "?" for half a character.
        _write_bytes(body, header.value)
    write_varint(out, len(body))
    out += body


def _write_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        write_varint(out, -1)
    else:
        write_varint(out, len(value))
        out += value
