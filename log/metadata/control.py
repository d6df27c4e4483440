"""Decode KRaft's control records: leader changes, voters, headers and footers of snapshots.

What it decides: what a control record of the metadata log says. Its key is a version and a type, as every control
record's; its value is a structure that begins with its own version.

Constraints: a version that is not known is read and written as the nearest known one, as Kafka reads it.

Example: decode_control(record).data["leaderId"]

Source: org.apache.kafka.common.record.ControlRecordUtils and
common/message/{LeaderChangeMessage,SnapshotHeaderRecord,
SnapshotFooterRecord,KRaftVersionRecord,VotersRecord}.json, 4.0.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

import attrs

from broker.wire.fields import Field, Fields, Kind, Message
from broker.wire.reading import Reader, read_message
from broker.wire.writing import write_message
from log.record import CONTROL_VERSION, ControlType, Record, control_type

_KEY: Final = struct.Struct(">hh")
_VERSION: Final = Field("version", Kind.INT16)
_VOTER: Final = (Field("voterId", Kind.INT32), Field("voterDirectoryId", Kind.UUID, since=1))
_KRAFT_VOTER: Final = (
    Field("voterId", Kind.INT32),
    Field("voterDirectoryId", Kind.UUID),
    Field(
        "endpoints",
        Kind.STRUCT,
        is_array=True,
        fields=(Field("name", Kind.STRING), Field("host", Kind.STRING), Field("port", Kind.UINT16)),
    ),
    Field(
        "kRaftVersionFeature",
        Kind.STRUCT,
        fields=(Field("minSupportedVersion", Kind.INT16), Field("maxSupportedVersion", Kind.INT16)),
    ),
)

CONTROL_SCHEMAS: Final[Mapping[ControlType, Message]] = {
    ControlType.LEADER_CHANGE: Message(
        "LeaderChange",
        1,
        0,
        (
            _VERSION,
            Field("leaderId", Kind.INT32),
            Field("voters", Kind.STRUCT, is_array=True, fields=_VOTER),
            Field("grantingVoters", Kind.STRUCT, is_array=True, fields=_VOTER),
        ),
    ),
    ControlType.SNAPSHOT_HEADER: Message(
        "SnapshotHeader", 0, 0, (_VERSION, Field("lastContainedLogTimestamp", Kind.INT64))
    ),
    ControlType.SNAPSHOT_FOOTER: Message("SnapshotFooter", 0, 0, (_VERSION,)),
    ControlType.KRAFT_VERSION: Message("KRaftVersion", 0, 0, (_VERSION, Field("kRaftVersion", Kind.INT16))),
    ControlType.KRAFT_VOTERS: Message(
        "KRaftVoters", 0, 0, (_VERSION, Field("voters", Kind.STRUCT, is_array=True, fields=_KRAFT_VOTER))
    ),
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
