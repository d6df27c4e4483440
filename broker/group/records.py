"""Read and write the records of `__consumer_offsets`, committed offsets and classic groups, in Kafka's binary form.

What it decides: how a coordinator remembers, and so how another goes on: each key is a group, or a group's partition;
the newest value of a key holds, and a null value, a tombstone, says that there is nothing any more.

Constraints: keys and values begin with a version of 16 bits. Keys 0 and 1 are offsets, 2 is a classic group; higher
ones belong to the next-generation groups. Written are the versions that Kafka 4.0 writes; read are all there have been.

Example: read_key(OffsetKey("g", "t", 3).to_bytes()) == OffsetKey("g", "t", 3).

Left out: the records of consumer, share and streams groups, which are named by their version and not read.

Source: OffsetCommitKey, OffsetCommitValue, GroupMetadataKey and GroupMetadataValue (JSON definitions of
group-coordinator) and GroupCoordinatorRecordHelpers, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from typing import Final, TypeAlias

import attrs

from broker.group.members import (
    GroupRecord,
    InstanceId,
    MemberId,
    StoredMember,
)
from broker.group.wire import ByteReader, ByteWriter
from broker.ids import LeaderEpoch, Offset, PartitionId
from broker.units import DurationMs, TimeMs

OFFSET_KEY_VERSIONS: Final = (0, 1)
GROUP_KEY_VERSION: Final = 2
_OFFSET_KEY_VERSION: Final = 1
_OFFSET_VALUE_VERSION: Final = 3
_OFFSET_VALUE_VERSION_WITH_EXPIRY: Final = 1
_GROUP_VALUE_VERSION: Final = 3
_VALUE_VERSION_MAX: Final = 4
_MEMBER_SIZE_BYTES_MIN: Final = 14  # Six lengths of a byte each and two numbers, in version 4: no member has fewer.
NO_TIME: Final = -1


@attrs.frozen
class OffsetKey:
    """Identify a committed offset by group and partition."""

    group_id: str
    topic: str
    partition: PartitionId

    def to_bytes(self) -> bytes:
        """Return the key as Kafka writes it."""
        return (
            ByteWriter()
            .int16(_OFFSET_KEY_VERSION)
            .string(self.group_id)
            .string(self.topic)
            .int32(self.partition)
            .done()
        )


@attrs.frozen
class GroupKey:
    """Identify a classic group's record."""

    group_id: str

    def to_bytes(self) -> bytes:
        """Return the key as Kafka writes it."""
        return ByteWriter().int16(GROUP_KEY_VERSION).string(self.group_id).done()


@attrs.frozen
class OtherKey:
    """Stand for a key of a kind that this module does not read."""

    version: int


Key: TypeAlias = OffsetKey | GroupKey | OtherKey


@attrs.frozen(kw_only=True)
class CommittedOffset:
    """Hold a committed offset: the next offset to read, with the consumer's metadata.

    `expires_ms` is the time given by clients of before KIP-211, None since.
    """

    offset: Offset
    leader_epoch: LeaderEpoch | None = None
    metadata: str = ""
    committed_ms: TimeMs
    expires_ms: TimeMs | None = None

    def to_bytes(self) -> bytes:
        """Return the value as Kafka writes it: version 3, or version 1 if it has an expiry time."""
        if self.expires_ms is not None:
            version = _OFFSET_VALUE_VERSION_WITH_EXPIRY
            writer = ByteWriter().int16(version).int64(self.offset).string(self.metadata)
            return writer.int64(self.committed_ms).int64(self.expires_ms).done()
        epoch = -1 if self.leader_epoch is None else self.leader_epoch
        writer = ByteWriter().int16(_OFFSET_VALUE_VERSION).int64(self.offset).int32(epoch)
        return writer.string(self.metadata).int64(self.committed_ms).done()


def read_key(data: bytes) -> Key:
    """Return the key in `data`; raise CorruptDataError when it is cut short or too long."""
    reader = ByteReader(data, what="key of __consumer_offsets")
    version = reader.int16()
    if version in OFFSET_KEY_VERSIONS:
        key: Key = OffsetKey(reader.string(), reader.string(), PartitionId(reader.int32()))
    elif version == GROUP_KEY_VERSION:
        key = GroupKey(reader.string())
    else:
        return OtherKey(version)
    _check_end(reader)
    return key


def read_committed_offset(data: bytes) -> CommittedOffset:
    """Return the value of an OffsetKey, versions 0 to 4; raise CorruptDataError for anything else."""
    reader, version = _value_reader(data, "committed offset")
    offset = Offset(reader.int64())
    epoch = reader.int32() if version >= 3 else -1
    metadata = reader.string()
    committed_ms = TimeMs(reader.int64())
    expires_ms = reader.int64() if version == 1 else NO_TIME
    reader.end_structure()
    _check_end(reader)
    return CommittedOffset(
        offset=offset,
        leader_epoch=None if epoch == -1 else LeaderEpoch(epoch),
        metadata=metadata,
        committed_ms=committed_ms,
        expires_ms=None if expires_ms == NO_TIME else TimeMs(expires_ms),
    )


def write_group(record: GroupRecord) -> bytes:
    """Return the value of a classic group's record as Kafka writes it, version 3."""
    writer = ByteWriter().int16(_GROUP_VALUE_VERSION).string(record.protocol_type).int32(record.generation)
    writer.string(record.protocol_name).string(record.leader_id).int64(record.state_time_ms).int32(len(record.members))
    for member in record.members:
        writer.string(member.member_id).string(member.instance_id).string(member.client_id).string(member.client_host)
        writer.int32(member.rebalance_timeout_ms).int32(member.session_timeout_ms)
        writer.binary(member.subscription).binary(member.assignment)
    return writer.done()


def read_group(group_id: str, data: bytes) -> GroupRecord:
    """Return the value of a GroupKey, versions 0 to 4; raise CorruptDataError for anything else."""
    reader, version = _value_reader(data, "classic group")
    protocol_type, generation = reader.string(), reader.int32()
    protocol_name, leader_id = reader.nullable_string(), reader.nullable_string()
    state_time_ms = reader.int64() if version >= 2 else NO_TIME
    members = tuple(_read_member(reader, version) for _ in range(reader.array_length(_MEMBER_SIZE_BYTES_MIN)))
    reader.end_structure()
    _check_end(reader)
    return GroupRecord(
        group_id=group_id,
        protocol_type=protocol_type,
        generation=generation,
        protocol_name=protocol_name,
        leader_id=None if leader_id is None else MemberId(leader_id),
        state_time_ms=state_time_ms,
        members=members,
    )


def _read_member(reader: ByteReader, version: int) -> StoredMember:
    member_id = MemberId(reader.string())
    instance_id = reader.nullable_string() if version >= 3 else None
    client_id, client_host = reader.string(), reader.string()
    rebalance_timeout_ms = reader.int32() if version >= 1 else -1
    session_timeout_ms = reader.int32()
    subscription, assignment = reader.binary(), reader.binary()
    reader.end_structure()
    return StoredMember(
        member_id=member_id,
        instance_id=None if instance_id is None else InstanceId(instance_id),
        client_id=client_id,
        client_host=client_host,
        # Before version 1 a member's session was all the time it had.
        rebalance_timeout_ms=DurationMs(session_timeout_ms if rebalance_timeout_ms == -1 else rebalance_timeout_ms),
        session_timeout_ms=DurationMs(session_timeout_ms),
        subscription=subscription,
        assignment=assignment,
    )


def _value_reader(data: bytes, what: str) -> tuple[ByteReader, int]:
    reader = ByteReader(data, what=what)
    version = reader.int16()
    if not 0 <= version <= _VALUE_VERSION_MAX:
        raise reader.corrupt(f"version is {version}; known are 0 to {_VALUE_VERSION_MAX}")
    reader.is_flexible = version >= _VALUE_VERSION_MAX
    return reader, version


def _check_end(reader: ByteReader) -> None:
    if reader.left:
        raise reader.corrupt(f"{reader.left} bytes follow where the record ends")
