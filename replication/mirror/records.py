"""Encode and decode MirrorMaker's own records: offset syncs and checkpoints; anything else raises CorruptDataError.

>>> sync = OffsetSync(TopicPartition("t", PartitionId(3)), Offset(7), Offset(9))
>>> sync.key.hex(" "), len(sync.value)
('00 01 74 00 00 00 03', 16)

Source: Kafka connect-mirror OffsetSync, connect-mirror-client Checkpoint, 3.9.1 and 4.1.0.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.errors import CorruptDataError
from broker.ids import Offset, PartitionId, TopicPartition
from broker.wire.fields import Field, Fields, Kind, RecordSchema, record, strings
from broker.wire.reading import Reader, read_message
from broker.wire.writing import write_message, write_versioned

VERSION: Final = 0
_PARTITION: Final = (*strings("topic"), Field("partition", Kind.INT32))
_OFFSETS: Final = (Field("upstreamOffset", Kind.INT64), Field("offset", Kind.INT64))
_OFFSET_SYNC: Final = record("OffsetSync", _PARTITION, *_OFFSETS, flexible_since=None)
_CHECKPOINT: Final = record(
    "Checkpoint", (*strings("group"), *_PARTITION), *_OFFSETS, *strings("metadata"), flexible_since=None
)


@attrs.frozen
class OffsetSync:
    """State that the record at `upstream` of a source partition is the one at `downstream` of its copy."""

    source_partition: TopicPartition
    upstream: Offset
    downstream: Offset

    @property
    def key(self) -> bytes:
        """Return the record's key."""
        return write_message(_OFFSET_SYNC.key, _fields(self.source_partition), version=VERSION)

    @property
    def value(self) -> bytes:
        """Return the record's value."""
        fields = {"upstreamOffset": self.upstream, "offset": self.downstream}
        return write_message(_OFFSET_SYNC.value, fields, version=VERSION)


@attrs.frozen
class Checkpoint:
    """State that a group at `upstream` on the source may go on at `downstream` of the target's partition."""

    group: str
    target_partition: TopicPartition
    upstream: Offset
    downstream: Offset
    metadata: str = ""

    @property
    def key(self) -> bytes:
        """Return the record's key."""
        return write_message(_CHECKPOINT.key, {"group": self.group} | _fields(self.target_partition), version=VERSION)

    @property
    def value(self) -> bytes:
        """Return the record's value."""
        fields = {"upstreamOffset": self.upstream, "offset": self.downstream, "metadata": self.metadata}
        return write_versioned(_CHECKPOINT.value, fields, version=VERSION)


def read_offset_sync(key: bytes, value: bytes) -> OffsetSync:
    """Return the offset sync of a record; raise CorruptDataError for other bytes."""
    keys, values = _read(_OFFSET_SYNC, key, value, "an offset sync", is_versioned=False)
    return OffsetSync(_partition(keys), Offset(values["upstreamOffset"]), Offset(values["offset"]))


def read_checkpoint(key: bytes, value: bytes) -> Checkpoint:
    """Return the checkpoint of a record; raise CorruptDataError for other bytes."""
    keys, values = _read(_CHECKPOINT, key, value, "a checkpoint")
    offsets = Offset(values["upstreamOffset"]), Offset(values["offset"])
    return Checkpoint(keys["group"], _partition(keys), *offsets, values["metadata"])


def _read(
    schema: RecordSchema, key: bytes, value: bytes, named: str, *, is_versioned: bool = True
) -> tuple[Fields, Fields]:
    """Return the fields of a key and of a value."""
    reader = Reader(value, source=f"value of {named}")
    if is_versioned and (version := reader.number(Kind.INT16)) != VERSION:
        raise CorruptDataError(f"version is {version}; known is {VERSION}", source=reader.source, position=0)
    keys = read_message(schema.key, Reader(key, source=f"key of {named}"), version=VERSION)
    return keys, read_message(schema.value, reader, version=VERSION)


def _fields(partition: TopicPartition) -> dict[str, str | int]:
    return {"topic": partition.topic, "partition": partition.partition}


def _partition(fields: Fields) -> TopicPartition:
    return TopicPartition(fields["topic"], PartitionId(fields["partition"]))
