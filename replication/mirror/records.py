"""Encode and decode MirrorMaker's own records: offset syncs, checkpoints and heartbeats.

What it decides: the bytes of keys and values in the topics `mm2-offset-syncs.…internal`, `….checkpoints.internal` and
`heartbeats`. They are Kafka's: MirrorMaker reads a key or value written here, and the other way round.

Constraints: numbers are big-endian, strings are UTF-8 with an int16 length; values of checkpoints and heartbeats start
with the int16 version 0, offset syncs have none. Anything else raises CorruptDataError.

Example:

>>> from replication.mirror.records import OffsetSync
>>> sync = OffsetSync(TopicPartition("t", PartitionId(3)), Offset(7), Offset(9))
>>> sync.key.hex(" "), len(sync.value)
('00 01 74 00 00 00 03', 16)

Left out: versions other than 0, which do not exist.

Source: Kafka connect-mirror OffsetSync, connect-mirror-client Checkpoint and Heartbeat, commit 1eb7644 (2024-10),
compared with 3.9.1 and 4.1.0.
"""

from __future__ import annotations

import struct
from typing import Final

import attrs

from broker.errors import CorruptDataError, UsageError
from broker.ids import Offset, PartitionId, TopicPartition
from broker.units import TimeMs

VERSION: Final = 0
STRING_BYTES_MAX: Final = 2**15 - 1
"""The greatest length that an int16 holds."""


@attrs.frozen
class OffsetSync:
    """State that the record at `upstream` of a source partition is the one at `downstream` of its copy."""

    source_partition: TopicPartition
    upstream: Offset
    downstream: Offset

    @property
    def key(self) -> bytes:
        """Return the record's key."""
        return _string(self.source_partition.topic) + struct.pack(">i", self.source_partition.partition)

    @property
    def value(self) -> bytes:
        """Return the record's value."""
        return struct.pack(">qq", self.upstream, self.downstream)


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
        partition = self.target_partition
        return _string(self.group) + _string(partition.topic) + struct.pack(">i", partition.partition)

    @property
    def value(self) -> bytes:
        """Return the record's value."""
        return struct.pack(">hqq", VERSION, self.upstream, self.downstream) + _string(self.metadata)


@attrs.frozen
class MirrorHeartbeat:
    """State that the flow from `source` to `target` was alive at `timestamp`."""

    source: str
    target: str
    timestamp: TimeMs

    @property
    def key(self) -> bytes:
        """Return the record's key."""
        return _string(self.source) + _string(self.target)

    @property
    def value(self) -> bytes:
        """Return the record's value."""
        return struct.pack(">hq", VERSION, self.timestamp)


def read_offset_sync(key: bytes, value: bytes) -> OffsetSync:
    """Return the offset sync of a record; raise CorruptDataError for other bytes."""
    keys, values = _FieldReader(key, "key of an offset sync"), _FieldReader(value, "value of an offset sync")
    partition = TopicPartition(keys.string(), PartitionId(keys.number("i")))
    return OffsetSync(partition, Offset(values.number("q")), Offset(values.number("q")))


def read_checkpoint(key: bytes, value: bytes) -> Checkpoint:
    """Return the checkpoint of a record; raise CorruptDataError for other bytes."""
    keys, values = _FieldReader(key, "key of a checkpoint"), _FieldReader(value, "value of a checkpoint")
    values.version()
    group = keys.string()
    partition = TopicPartition(keys.string(), PartitionId(keys.number("i")))
    return Checkpoint(group, partition, Offset(values.number("q")), Offset(values.number("q")), values.string())


def read_heartbeat(key: bytes, value: bytes) -> MirrorHeartbeat:
    """Return the heartbeat of a record; raise CorruptDataError for other bytes."""
    keys, values = _FieldReader(key, "key of a heartbeat"), _FieldReader(value, "value of a heartbeat")
    values.version()
    return MirrorHeartbeat(keys.string(), keys.string(), TimeMs(values.number("q")))


def _string(text: str) -> bytes:
    encoded = text.encode("utf-8")
    if len(encoded) > STRING_BYTES_MAX:
        raise UsageError(f"a string of {len(encoded)} bytes is too long; allowed are {STRING_BYTES_MAX}")
    return struct.pack(">h", len(encoded)) + encoded


class _FieldReader:
    """Read fields one after the other."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._what = what
        self._position = 0

    def number(self, code: str) -> int:
        size = struct.calcsize(">" + code)
        return int(struct.unpack(">" + code, self._take(size))[0])

    def string(self) -> str:
        size = self.number("h")
        if size < 0:
            raise CorruptDataError(f"the {self._what} has a string of length {size}", position=self._position)
        place = self._position
        try:
            return self._take(size).decode("utf-8")
        except UnicodeDecodeError:
            raise CorruptDataError(f"the {self._what} has a string that is not UTF-8", position=place) from None

    def version(self) -> None:
        version = self.number("h")
        if version != VERSION:
            raise CorruptDataError(f"the {self._what} has version {version}; known is {VERSION}", position=0)

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            what = f"the {self._what} ends at byte {len(self._data)}, in the middle of a field"
            raise CorruptDataError(what, position=self._position)
        taken = self._data[self._position : end]
        self._position = end
        return taken
