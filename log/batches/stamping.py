"""Write the leader's offset, epoch and append time into the header of a batch.

What it decides: which bytes of a batch a leader changes without touching its records.

Constraints: base offset and leader epoch lie outside the checksum and change nothing else. The largest time and its
type lie inside: the checksum is computed anew, but only if one of them differs, so that a producer's own checksum
reaches the disk. Of messages before magic 2 the offset is the last one's (the only one, or a wrapper's); magic 0 has no
time.

Example: three records sent with base offset 0 and appended at 40 become 40 to 42 by twelve changed bytes.

Source: org.apache.kafka.common.record.{DefaultRecordBatch,AbstractLegacyRecordBatch}.{setLastOffset,setMaxTimestamp,
setPartitionLeaderEpoch}, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

import struct
from typing import Final

from broker.ids import LeaderEpoch, Offset
from broker.units import TimeMs
from broker.values import value
from log.batches.batch import RecordBatch
from log.codecs.crc import crc32, crc32c
from log.record import TIMESTAMP_TYPE_BIT, TimestampType

_OFFSET: Final = struct.Struct(">q")
_EPOCH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_OFFSET_AT: Final = 0

_LOG_APPEND_TIME: Final = TimestampType.LOG_APPEND_TIME

_V2_EPOCH_AT: Final = 12
_V2_CRC_AT: Final = 17
_V2_ATTRIBUTES_AT: Final = 21  # Two bytes; the bits of interest are in the second.
_V2_MAX_TIMESTAMP_AT: Final = 35

_V1_CRC_AT: Final = 12
_V1_MAGIC_AT: Final = 16
_V1_ATTRIBUTES_AT: Final = 17
_V1_TIMESTAMP_AT: Final = 18


@value
class Stamp:
    """Hold the fields that a leader writes into the header of a batch."""

    last_offset: Offset
    leader_epoch: LeaderEpoch
    timestamp_type: TimestampType
    max_timestamp: TimeMs


def stamped(batch: RecordBatch, stamp: Stamp) -> bytearray:
    """Return the bytes of `batch` with the fields of `stamp` in its header."""
    data = bytearray(batch.data)
    same_time = stamp.timestamp_type is batch.timestamp_type and stamp.max_timestamp == batch.max_timestamp
    if batch.magic >= 2:
        _OFFSET.pack_into(data, _OFFSET_AT, stamp.last_offset - batch.last_offset_delta)
        _EPOCH.pack_into(data, _V2_EPOCH_AT, stamp.leader_epoch)
        if not same_time:
            _set_type(data, _V2_ATTRIBUTES_AT + 1, stamp.timestamp_type)
            _OFFSET.pack_into(data, _V2_MAX_TIMESTAMP_AT, stamp.max_timestamp)
            _CRC.pack_into(data, _V2_CRC_AT, crc32c(memoryview(data)[_V2_ATTRIBUTES_AT:]))
        return data
    _OFFSET.pack_into(data, _OFFSET_AT, stamp.last_offset)
    if batch.magic == 1 and not same_time:
        _set_type(data, _V1_ATTRIBUTES_AT, stamp.timestamp_type)
        _OFFSET.pack_into(data, _V1_TIMESTAMP_AT, stamp.max_timestamp)
        _CRC.pack_into(data, _V1_CRC_AT, crc32(memoryview(data)[_V1_MAGIC_AT:]))
    return data


def _set_type(data: bytearray, position: int, timestamp_type: TimestampType) -> None:
    if timestamp_type is _LOG_APPEND_TIME:
        data[position] |= TIMESTAMP_TYPE_BIT
    else:
        data[position] &= ~TIMESTAMP_TYPE_BIT & 0xFF
