"""Encode records as one batch of magic 2, or as messages of magic 0 or 1.

What it decides: the bytes that Kafka's own builder makes of the same records. Uncompressed they are identical.

Goals, most important first: Kafka's bytes; a batch of one record in a few microseconds, since simulations append
millions. Many records of equal shape at once: `log.batches.build_columns`.

Constraints: what Kafka refuses is refused before any byte is made (`log.batches.build_spec`).

How: base timestamp is the first record's, or the delete horizon, from which times are then counted, backwards
too; the maximum is the records', or the time of the append. Everything but the header's first 21 bytes is checked.

Example:

    >>> from log.record import ControlType
    >>> spec = BatchSpec(7, producer_id=1, producer_epoch=0)
    >>> len(build_marker(spec, EndTransactionMarker(ControlType.COMMIT, 0), 1_000))
    78

Source: org.apache.kafka.common.record.{MemoryRecordsBuilder,DefaultRecord,DefaultRecordBatch}, 4.0.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import attrs

from broker.units import TimeMs
from log.batches.batch_v2 import (
    CHECKED_POSITION,
    DELETE_HORIZON_BIT,
    HEADER_FIELDS,
    LENGTH_BYTES,
    BatchHeader,
)
from log.batches.build_legacy import build_messages
from log.batches.build_spec import BatchSpec, check_records, check_spec
from log.codecs.compression import Codec, compress
from log.codecs.crc import BytesLike, crc32c
from log.codecs.varint import write_varint
from log.record import (
    CONTROL_BIT,
    NO_SEQUENCE,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    EndTransactionMarker,
    Record,
    TimestampType,
    int64,
)

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
