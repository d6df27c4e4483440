"""Encode records as messages of magic 0 or 1, plain or in one compressed wrapper.

What it decides: the bytes that brokers before 0.11 kept, to be byte-identical where nothing is compressed.

How: see `log.batches.legacy`. With LogAppendTime each message, inner ones too, gets the append time and says so.

Example: a plain message of magic 0 with neither key nor value.

    >>> len(build_messages(BatchSpec(magic=0), [Record(0, -1, None, None)]))
    26

Source: org.apache.kafka.common.record.{MemoryRecordsBuilder,LegacyRecord}, 4.0.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.units import TimeMs
from log.batches.build_spec import BatchSpec
from log.batches.legacy import ENTRY, FIXED_V0, FIXED_V1, SIZE
from log.codecs.compression import Codec, compress
from log.codecs.crc import crc32
from log.record import TIMESTAMP_TYPE_BIT, Record, TimestampType


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
