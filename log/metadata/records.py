"""Decode and encode one metadata record: its frame, type, version and fields.

Source: org.apache.kafka.server.common.serialization.AbstractApiMessageSerde and metadata/MetadataRecordSerde, 4.3.1.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

import attrs

from broker.errors import CorruptDataError, UsageError
from broker.units import MIB
from broker.wire.fields import Fields, Message
from broker.wire.reading import Reader, read_message
from broker.wire.writing import unsigned_varint, write_message
from log.metadata.schemas import SCHEMAS, RecordType, messages
from log.record import CONTROL_VERSION, ControlType, Record, control_type

_KEY: Final = struct.Struct(">hh")
CONTROL_SCHEMAS: Final[Mapping[ControlType, Message]] = {
    ControlType(number): message for number, message in messages("control").items()
}
"""The control records that have fields, under the names that kafka-dump-log gives them."""


@attrs.frozen
class ControlRecord:
    """Hold one control record; `data` is empty for a type without a schema here."""

    type: ControlType
    data: Fields

    def key(self) -> bytes:
        """Return the bytes of the record's key in the log."""
        return _KEY.pack(CONTROL_VERSION, self.type)

    def value(self) -> bytes:
        """Return the bytes of the record's value in the log; raise UsageError for unknown fields."""
        schema = CONTROL_SCHEMAS[self.type]
        return write_message(schema, self.data, version=version_read(schema, self.data.get("version", 0)))


def decode_control(record: Record) -> ControlRecord:
    """Return the fields of a control record; raise CorruptDataError at damage."""
    kind = control_type(record.key)
    schema = CONTROL_SCHEMAS.get(kind)
    if schema is None:
        return ControlRecord(kind, {})
    value = b"" if record.value is None else record.value
    version = int.from_bytes(Reader(value).take(2), "big", signed=True)
    return ControlRecord(kind, read_message(schema, value, version=version_read(schema, version)))


def version_read(schema: Message, version: int) -> int:
    """Return the schema version used to read a record that declares `version`."""
    return max(0, min(version, schema.version_max))


FRAME_VERSION: Final = 1
RECORD_BYTES_MAX: Final = 8 * MIB
"""The quorum appends batches of at most 8 MiB (KafkaRaftClient.MAX_BATCH_SIZE_BYTES)."""
_INT16_MAX: Final = 2**15 - 1
_TYPES: Final = {int(kind): kind for kind in RecordType}


@attrs.frozen
class MetadataRecord:
    """Hold one record; `data` maps the field names of its version to values (see `broker.wire.fields`)."""

    type: RecordType
    version: int
    data: Fields

    @property
    def is_of_later_release(self) -> bool:
        """Return whether the version is later than the newest known one, so that fields may have been skipped."""
        return self.version > SCHEMAS[self.type].version_max

    def to_bytes(self) -> bytes:
        """Return the bytes of the record's value in the log; raise UsageError for unknown fields or versions."""
        schema = SCHEMAS.get(self.type)
        if schema is None or not isinstance(self.version, int):
            raise UsageError(f"a record has a type of RecordType and a version, not {self.type!r} and {self.version!r}")
        if not 0 <= self.version <= schema.version_max:
            raise UsageError(f"{self.type.name} has versions 0 to {schema.version_max}, not {self.version}")
        frame = b"".join(map(unsigned_varint, (FRAME_VERSION, self.type, self.version)))
        return frame + write_message(schema, self.data, version=self.version)


def decode_record(data: bytes) -> MetadataRecord:
    """Return the record encoded in `data`; raise CorruptDataError with the position in `data`."""
    reader = Reader(data)
    if reader.left > RECORD_BYTES_MAX:
        raise reader.corrupt(f"a record of {reader.left:,} bytes; at most {RECORD_BYTES_MAX:,} are decoded")
    number, version = read_frame(reader)
    kind = _TYPES.get(number)
    if kind is None:
        raise reader.corrupt(
            f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {number}"
        )
    schema = SCHEMAS[kind]
    try:
        fields = read_message(schema, reader, version=version)
    except CorruptDataError as error:
        raise RecordFieldsError(kind, error) from None
    if reader.left:
        raise GarbageError(kind, f"Found {reader.left} byte(s) of garbage after {number}", position=reader.position)
    return MetadataRecord(kind, version, fields)


def read_frame(reader: Reader) -> tuple[int, int]:
    """Return the type and the version before a record's fields; raise CorruptDataError in Kafka's words."""
    frame_version = _int16(reader, "frame version")
    if frame_version == 0:
        raise reader.corrupt(
            "Could not deserialize metadata record with frame version 0. "
            "Note that upgrades from the preview release of KRaft in 2.8 to newer versions are not supported."
        )
    if frame_version != FRAME_VERSION:
        raise reader.corrupt(
            f"Could not deserialize metadata record due to unknown frame version {frame_version}"
            f"(only frame version {FRAME_VERSION} is supported)"
        )
    return _int16(reader, "type"), _int16(reader, "version")


class GarbageError(CorruptDataError):
    """Bytes follow the last field of a record of a known type."""

    def __init__(self, kind: RecordType, what: str, *, position: int) -> None:
        self.kind = kind
        super().__init__(what, position=position)


class RecordFieldsError(CorruptDataError):
    """The fields of a record of a known type cannot be read; `kafka_message` is Kafka's error message."""

    def __init__(self, kind: RecordType, error: CorruptDataError) -> None:
        self.kind = kind
        self.kafka_message = f"Failed to deserialize record with type {int(kind)}"
        super().__init__(f"{kind.name}: {error.what}", position=error.position)


def _int16(reader: Reader, entity: str) -> int:
    try:
        number = reader.unsigned_varint()
    except CorruptDataError:
        raise reader.corrupt(f"Error while reading {entity}") from None
    if number > _INT16_MAX:
        raise reader.corrupt(f"Value for {entity} was too large.")
    return number
