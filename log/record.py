"""Define Record, the record that readers return, and decode control records.

Source: org.apache.kafka.common.record.{DefaultRecord,ControlRecordType,EndTransactionMarker,TimestampType}, 4.0.
"""

from __future__ import annotations

import enum
import struct
from typing import Final

import attrs

from broker.ids import INT32_MAX, Offset
from broker.units import TimeMs
from broker.values import value
from log.errors import InvalidRecordError

NO_TIMESTAMP: Final = TimeMs(-1)
NO_SEQUENCE: Final = -1
TIMESTAMP_TYPE_BIT: Final = 0x08
"""The bit of a batch's attributes that says LogAppendTime, in every format that has timestamps."""
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
"""Bits of the attributes of magic 2: part of a transaction, and control records."""
CONTROL_VERSION: Final = 0
INT64_SPAN: Final = 2**64
INT64_HALF: Final = 2**63
_CONTROL_KEY: Final = struct.Struct(">hh")
_MARKER_VALUE: Final = struct.Struct(">hi")


class TimestampType(enum.Enum):
    """List the sources of a timestamp, producer or broker; the value is Kafka's name."""

    NO_TIMESTAMP_TYPE = "NoTimestampType"
    """Magic 0, which has none."""
    CREATE_TIME = "CreateTime"
    """The producer."""
    LOG_APPEND_TIME = "LogAppendTime"
    """The leader, at the append: one time for a whole batch."""


@value
class TimestampOffset:
    """Hold a timestamp in milliseconds, -1 for none, and an offset."""

    timestamp: int
    offset: int


class ControlType(enum.IntEnum):
    """List the types of control records; the value is Kafka's number."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1
    """A type of a newer version, left alone."""


@attrs.frozen
class Header:
    """Hold the name and value of a record header; names that are not UTF-8 contain U+FFFD, as in Kafka."""

    name: str
    value: bytes | None


@value
class Record:
    """Hold a record as readers return it; `sequence` is -1 without a producer id."""

    offset: Offset
    timestamp: TimeMs
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    sequence: int = NO_SEQUENCE


@attrs.frozen
class EndTransactionMarker:
    """Hold the outcome of a transaction, and the epoch of the coordinator that wrote the marker."""

    control_type: ControlType
    coordinator_epoch: int

    def key(self) -> bytes:
        """Return the bytes of the control record's key."""
        return _CONTROL_KEY.pack(CONTROL_VERSION, self.control_type)

    def value(self) -> bytes:
        """Return the bytes of the control record's value."""
        return _MARKER_VALUE.pack(CONTROL_VERSION, self.coordinator_epoch)


def increment_sequence(sequence: int, increment: int) -> int:
    """Return the sequence number `increment` records later; 0 follows 2147483647.

    Computed in Java's 32 bits: a negative increment, which only a damaged batch has, takes the overflow's branch too.

    >>> increment_sequence(2147483647, 1), increment_sequence(10, -5)
    (0, -2147483643)
    """
    if increment >= 0 and 0 <= sequence <= INT32_MAX - increment:  # Nearly always.
        return sequence + increment
    increment = _int32(increment)
    if sequence > _int32(INT32_MAX - increment):
        return _int32(increment - (INT32_MAX - sequence) - 1)
    return _int32(sequence + increment)


def _int32(value: int) -> int:
    """Return `value` as Java's int holds it, wrapped around."""
    return (value + INT32_MAX + 1) % (1 << 32) - INT32_MAX - 1


def int64(value: int) -> int:
    """Return `value` as Java's long holds it, wrapped around."""
    if -INT64_HALF <= value < INT64_HALF:  # Nearly always; worth asking, as dividing takes Python's long integers.
        return value
    return (value + INT64_HALF) % INT64_SPAN - INT64_HALF


def control_type(key: bytes | None) -> ControlType:
    """Return the type in the key of a control record; raise InvalidRecordError."""
    size = 0 if key is None else len(key)
    if key is None or size < _CONTROL_KEY.size:
        raise InvalidRecordError(
            f"Invalid value size found for end control record key. Must have at least 4 bytes, but found only {size}"
        )
    version, type_id = _CONTROL_KEY.unpack_from(key)
    if version < CONTROL_VERSION:
        raise InvalidRecordError(f"Invalid version found for control record: {version}. May indicate data corruption")
    return ControlType(type_id) if type_id in _KNOWN_TYPES else ControlType.UNKNOWN


def marker_of(record: Record) -> EndTransactionMarker | None:
    """Return the transaction marker in a control record, None for other types; raise InvalidRecordError."""
    kind = control_type(record.key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    size = 0 if record.value is None else len(record.value)
    if record.value is None or size < _MARKER_VALUE.size:
        raise InvalidRecordError(
            f"Invalid value size found for end transaction marker. Must have at least 6 bytes, but found only {size}"
        )
    version, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value)
    if version < CONTROL_VERSION:
        raise InvalidRecordError(
            f"Invalid version found for end transaction marker: {version}. May indicate data corruption"
        )
    return EndTransactionMarker(kind, coordinator_epoch)


_KNOWN_TYPES: Final = frozenset(int(kind) for kind in ControlType if kind is not ControlType.UNKNOWN)
