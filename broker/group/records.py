"""Read and write the records of `__consumer_offsets`, committed offsets and classic groups, in Kafka's binary form.

Example: read_key(OffsetKey("g", "t", 3).to_bytes()) == OffsetKey("g", "t", 3).

Source: OffsetCommitKey, OffsetCommitValue, GroupMetadataKey and GroupMetadataValue (JSON definitions of
group-coordinator) and GroupCoordinatorRecordHelpers, 4.3.1.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import attrs

from broker.group.members import (
    GroupRecord,
    InstanceId,
    MemberId,
    StoredMember,
)
from broker.group.schemas import CONSUMER_GROUP_RECORDS
from broker.ids import LeaderEpoch, Offset, PartitionId
from broker.units import DurationMs, TimeMs
from broker.wire.fields import Fields, Kind, Message
from broker.wire.reading import Reader, read_message
from broker.wire.writing import write_versioned

OFFSET_KEY_VERSIONS: Final = (0, 1)
GROUP_KEY_VERSION: Final = 2
_OFFSET_KEY_VERSION: Final = 1
_OFFSET_VALUE_VERSION: Final = 3
_OFFSET_VALUE_VERSION_WITH_EXPIRY: Final = 1
_GROUP_VALUE_VERSION: Final = 3
_OFFSET: Final = CONSUMER_GROUP_RECORDS[_OFFSET_KEY_VERSION]
_GROUP: Final = CONSUMER_GROUP_RECORDS[GROUP_KEY_VERSION]
NO_TIME: Final = -1


@attrs.frozen
class OffsetKey:
    """Identify a committed offset by group and partition."""

    group_id: str
    topic: str
    partition: PartitionId

    def to_bytes(self) -> bytes:
        """Return the key as Kafka writes it."""
        fields = {"group": self.group_id, "topic": self.topic, "partition": self.partition}
        return write_versioned(_OFFSET.key, fields, version=0, shown_version=_OFFSET_KEY_VERSION)


@attrs.frozen
class GroupKey:
    """Identify a classic group's record."""

    group_id: str

    def to_bytes(self) -> bytes:
        """Return the key as Kafka writes it."""
        return write_versioned(_GROUP.key, {"group": self.group_id}, version=0, shown_version=GROUP_KEY_VERSION)


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
        fields: dict[str, Any] = {
            "offset": self.offset,
            "metadata": self.metadata,
            "commitTimestamp": self.committed_ms,
        }
        if self.expires_ms is not None:
            fields["expireTimestamp"] = self.expires_ms
            return write_versioned(_OFFSET.value, fields, version=_OFFSET_VALUE_VERSION_WITH_EXPIRY)
        if self.leader_epoch is not None:
            fields["leaderEpoch"] = self.leader_epoch
        return write_versioned(_OFFSET.value, fields, version=_OFFSET_VALUE_VERSION)


def read_key(data: bytes) -> Key:
    """Return the key in `data`; raise CorruptDataError when it is cut short or too long."""
    reader = Reader(data, source="key of __consumer_offsets")
    version = reader.number(Kind.INT16)
    if version in OFFSET_KEY_VERSIONS:
        fields = read_message(_OFFSET.key, reader, version=0)
        key: Key = OffsetKey(fields["group"], fields["topic"], PartitionId(fields["partition"]))
    elif version == GROUP_KEY_VERSION:
        key = GroupKey(read_message(_GROUP.key, reader, version=0)["group"])
    else:
        return OtherKey(version)
    _check_end(reader)
    return key


def read_committed_offset(data: bytes) -> CommittedOffset:
    """Return the value of an OffsetKey, versions 0 to 4; raise CorruptDataError for anything else."""
    fields = _read_value(_OFFSET.value, data, "committed offset")
    epoch, expires_ms = fields.get("leaderEpoch", -1), fields.get("expireTimestamp", NO_TIME)
    return CommittedOffset(
        offset=Offset(fields["offset"]),
        leader_epoch=None if epoch == -1 else LeaderEpoch(epoch),
        metadata=fields["metadata"],
        committed_ms=TimeMs(fields["commitTimestamp"]),
        expires_ms=None if expires_ms == NO_TIME else TimeMs(expires_ms),
    )


def write_group(record: GroupRecord) -> bytes:
    """Return the value of a classic group's record as Kafka writes it, version 3."""
    members = [
        {
            "memberId": member.member_id,
            "groupInstanceId": member.instance_id,
            "clientId": member.client_id,
            "clientHost": member.client_host,
            "rebalanceTimeout": member.rebalance_timeout_ms,
            "sessionTimeout": member.session_timeout_ms,
            "subscription": member.subscription,
            "assignment": member.assignment,
        }
        for member in record.members
    ]
    fields = {
        "protocolType": record.protocol_type,
        "generation": record.generation,
        "protocol": record.protocol_name,
        "leader": record.leader_id,
        "currentStateTimestamp": record.state_time_ms,
        "members": members,
    }
    return write_versioned(_GROUP.value, fields, version=_GROUP_VALUE_VERSION)


def read_group(group_id: str, data: bytes) -> GroupRecord:
    """Return the value of a GroupKey, versions 0 to 4; raise CorruptDataError for anything else."""
    fields = _read_value(_GROUP.value, data, "classic group")
    leader_id = fields["leader"]
    return GroupRecord(
        group_id=group_id,
        protocol_type=fields["protocolType"],
        generation=fields["generation"],
        protocol_name=fields["protocol"],
        leader_id=None if leader_id is None else MemberId(leader_id),
        state_time_ms=fields.get("currentStateTimestamp", NO_TIME),
        members=tuple(map(_member, fields["members"])),
    )


def _member(fields: Fields) -> StoredMember:
    instance_id = fields.get("groupInstanceId")
    session_timeout_ms, rebalance_timeout_ms = fields["sessionTimeout"], fields.get("rebalanceTimeout", -1)
    return StoredMember(
        member_id=MemberId(fields["memberId"]),
        instance_id=None if instance_id is None else InstanceId(instance_id),
        client_id=fields["clientId"],
        client_host=fields["clientHost"],
        # Before version 1 a member's session was all the time it had.
        rebalance_timeout_ms=DurationMs(session_timeout_ms if rebalance_timeout_ms == -1 else rebalance_timeout_ms),
        session_timeout_ms=DurationMs(session_timeout_ms),
        subscription=fields["subscription"],
        assignment=fields["assignment"],
    )


def _read_value(message: Message, data: bytes, source: str) -> Fields:
    """Return the fields of a record's value, which begins with its version and ends with the bytes."""
    reader = Reader(data, source=source)
    version = reader.number(Kind.INT16)
    if not 0 <= version <= message.version_max:
        raise reader.corrupt(f"version is {version}; known are 0 to {message.version_max}")
    fields = read_message(message, reader, version=version)
    _check_end(reader)
    return fields


def _check_end(reader: Reader) -> None:
    if reader.left:
        raise reader.corrupt(f"{reader.left} bytes follow where the record ends")
