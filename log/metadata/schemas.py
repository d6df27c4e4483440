"""Define the schemas of the metadata records: one table per record type, with its versions.

`Field.since` is the first version with a field: ClearElrRecord came with release 4.0, cordoned directories with 4.3.

Source: metadata/src/main/resources/common/metadata/*.json of the releases 4.0.1, 4.1.2 and 4.3.1;
4.3 added the two versions with cordoned directories and nothing else.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from broker.wire.fields import Field, Kind, Message


class RecordType(enum.IntEnum):
    """List the types of metadata records; the value is the type's `apiKey` on the wire."""

    REGISTER_BROKER_RECORD = 0
    UNREGISTER_BROKER_RECORD = 1
    TOPIC_RECORD = 2
    PARTITION_RECORD = 3
    CONFIG_RECORD = 4
    PARTITION_CHANGE_RECORD = 5
    FENCE_BROKER_RECORD = 7
    UNFENCE_BROKER_RECORD = 8
    REMOVE_TOPIC_RECORD = 9
    DELEGATION_TOKEN_RECORD = 10
    USER_SCRAM_CREDENTIAL_RECORD = 11
    FEATURE_LEVEL_RECORD = 12
    CLIENT_QUOTA_RECORD = 14
    PRODUCER_IDS_RECORD = 15
    BROKER_REGISTRATION_CHANGE_RECORD = 17
    ACCESS_CONTROL_ENTRY_RECORD = 18
    REMOVE_ACCESS_CONTROL_ENTRY_RECORD = 19
    NO_OP_RECORD = 20
    ZK_MIGRATION_STATE_RECORD = 21
    REMOVE_USER_SCRAM_CREDENTIAL_RECORD = 22
    BEGIN_TRANSACTION_RECORD = 23
    END_TRANSACTION_RECORD = 24
    ABORT_TRANSACTION_RECORD = 25
    REMOVE_DELEGATION_TOKEN_RECORD = 26
    REGISTER_CONTROLLER_RECORD = 27
    CLEAR_ELR_RECORD = 28


_FEATURES: Final = Field(
    "features",
    Kind.STRUCT,
    is_array=True,
    fields=(
        Field("name", Kind.STRING),
        Field("minSupportedVersion", Kind.INT16),
        Field("maxSupportedVersion", Kind.INT16),
    ),
)
_END_POINTS: Final = Field(
    "endPoints",
    Kind.STRUCT,
    is_array=True,
    fields=(
        Field("name", Kind.STRING),
        Field("host", Kind.STRING),
        Field("port", Kind.UINT16),
        Field("securityProtocol", Kind.INT16),
    ),
)
_REGISTER_BROKER: Final = (
    Field("brokerId", Kind.INT32),
    Field("isMigratingZkBroker", Kind.BOOL, since=2),
    Field("incarnationId", Kind.UUID),
    Field("brokerEpoch", Kind.INT64),
    _END_POINTS,
    _FEATURES,
    Field("rack", Kind.STRING, is_nullable=True),
    Field("fenced", Kind.BOOL, default=True),
    Field("inControlledShutdown", Kind.BOOL, since=1),
    Field("logDirs", Kind.UUID, is_array=True, since=3, tag=0),
    Field("cordonedLogDirs", Kind.UUID, is_array=True, since=4, tag=1, is_nullable=True, default=None),
)
_PARTITION: Final = (
    Field("partitionId", Kind.INT32, default=-1),
    Field("topicId", Kind.UUID),
    Field("replicas", Kind.INT32, is_array=True),
    Field("isr", Kind.INT32, is_array=True),
    Field("removingReplicas", Kind.INT32, is_array=True),
    Field("addingReplicas", Kind.INT32, is_array=True),
    Field("leader", Kind.INT32, default=-1),
    Field("leaderRecoveryState", Kind.INT8, tag=0),
    Field("leaderEpoch", Kind.INT32, default=-1),
    Field("partitionEpoch", Kind.INT32, default=-1),
    Field("directories", Kind.UUID, is_array=True, since=1),
    Field("eligibleLeaderReplicas", Kind.INT32, is_array=True, since=2, tag=1, is_nullable=True, default=None),
    Field("lastKnownElr", Kind.INT32, is_array=True, since=2, tag=2, is_nullable=True, default=None),
)
_PARTITION_CHANGE: Final = (
    Field("partitionId", Kind.INT32, default=-1),
    Field("topicId", Kind.UUID),
    Field("isr", Kind.INT32, is_array=True, tag=0, is_nullable=True, default=None),
    Field("leader", Kind.INT32, tag=1, default=-2),
    Field("replicas", Kind.INT32, is_array=True, tag=2, is_nullable=True, default=None),
    Field("removingReplicas", Kind.INT32, is_array=True, tag=3, is_nullable=True, default=None),
    Field("addingReplicas", Kind.INT32, is_array=True, tag=4, is_nullable=True, default=None),
    Field("leaderRecoveryState", Kind.INT8, tag=5, default=-1),
    Field("directories", Kind.UUID, is_array=True, since=1, tag=8, is_nullable=True, default=None),
    Field("eligibleLeaderReplicas", Kind.INT32, is_array=True, since=2, tag=6, is_nullable=True, default=None),
    Field("lastKnownElr", Kind.INT32, is_array=True, since=2, tag=7, is_nullable=True, default=None),
)
_BROKER_OF_EPOCH: Final = (Field("id", Kind.INT32), Field("epoch", Kind.INT64))
_CONFIG: Final = (
    Field("resourceType", Kind.INT8),
    Field("resourceName", Kind.STRING),
    Field("name", Kind.STRING),
    Field("value", Kind.STRING, is_nullable=True),
)
_DELEGATION_TOKEN: Final = (
    Field("owner", Kind.STRING),
    Field("requester", Kind.STRING),
    Field("renewers", Kind.STRING, is_array=True),
    Field("issueTimestamp", Kind.INT64),
    Field("maxTimestamp", Kind.INT64),
    Field("expirationTimestamp", Kind.INT64),
    Field("tokenId", Kind.STRING),
)
_USER_SCRAM_CREDENTIAL: Final = (
    Field("name", Kind.STRING),
    Field("mechanism", Kind.INT8),
    Field("salt", Kind.BYTES),
    Field("storedKey", Kind.BYTES),
    Field("serverKey", Kind.BYTES),
    Field("iterations", Kind.INT32),
)
_CLIENT_QUOTA: Final = (
    Field(
        "entity",
        Kind.STRUCT,
        is_array=True,
        fields=(Field("entityType", Kind.STRING), Field("entityName", Kind.STRING, is_nullable=True)),
    ),
    Field("key", Kind.STRING),
    Field("value", Kind.FLOAT64),
    Field("remove", Kind.BOOL),
)
_BROKER_REGISTRATION_CHANGE: Final = (
    Field("brokerId", Kind.INT32),
    Field("brokerEpoch", Kind.INT64),
    Field("fenced", Kind.INT8, tag=0),
    Field("inControlledShutdown", Kind.INT8, since=1, tag=1),
    Field("logDirs", Kind.UUID, is_array=True, since=2, tag=2),
    Field("cordonedLogDirs", Kind.UUID, is_array=True, since=3, tag=3, is_nullable=True, default=None),
)
_ACCESS_CONTROL_ENTRY: Final = (
    Field("id", Kind.UUID),
    Field("resourceType", Kind.INT8),
    Field("resourceName", Kind.STRING),
    Field("patternType", Kind.INT8),
    Field("principal", Kind.STRING),
    Field("host", Kind.STRING),
    Field("operation", Kind.INT8),
    Field("permissionType", Kind.INT8),
)
_REGISTER_CONTROLLER: Final = (
    Field("controllerId", Kind.INT32),
    Field("incarnationId", Kind.UUID),
    Field("zkMigrationReady", Kind.BOOL),
    _END_POINTS,
    _FEATURES,
)
_PRODUCER_IDS: Final = (
    Field("brokerId", Kind.INT32),
    Field("brokerEpoch", Kind.INT64, default=-1),
    Field("nextProducerId", Kind.INT64),
)


def _text(name: str, *, tag: int | None = None) -> tuple[Field, ...]:
    if tag is None:
        return (Field(name, Kind.STRING),)
    return (Field(name, Kind.STRING, tag=tag, is_nullable=True, default=None),)


_TABLE: Final[Mapping[RecordType, tuple[int, tuple[Field, ...]]]] = {
    RecordType.REGISTER_BROKER_RECORD: (4, _REGISTER_BROKER),
    RecordType.UNREGISTER_BROKER_RECORD: (0, (Field("brokerId", Kind.INT32), Field("brokerEpoch", Kind.INT64))),
    RecordType.TOPIC_RECORD: (0, (Field("name", Kind.STRING), Field("topicId", Kind.UUID))),
    RecordType.PARTITION_RECORD: (2, _PARTITION),
    RecordType.CONFIG_RECORD: (0, _CONFIG),
    RecordType.PARTITION_CHANGE_RECORD: (2, _PARTITION_CHANGE),
    RecordType.FENCE_BROKER_RECORD: (0, _BROKER_OF_EPOCH),
    RecordType.UNFENCE_BROKER_RECORD: (0, _BROKER_OF_EPOCH),
    RecordType.REMOVE_TOPIC_RECORD: (0, (Field("topicId", Kind.UUID),)),
    RecordType.DELEGATION_TOKEN_RECORD: (0, _DELEGATION_TOKEN),
    RecordType.USER_SCRAM_CREDENTIAL_RECORD: (0, _USER_SCRAM_CREDENTIAL),
    RecordType.FEATURE_LEVEL_RECORD: (0, (Field("name", Kind.STRING), Field("featureLevel", Kind.INT16))),
    RecordType.CLIENT_QUOTA_RECORD: (0, _CLIENT_QUOTA),
    RecordType.PRODUCER_IDS_RECORD: (0, _PRODUCER_IDS),
    RecordType.BROKER_REGISTRATION_CHANGE_RECORD: (3, _BROKER_REGISTRATION_CHANGE),
    RecordType.ACCESS_CONTROL_ENTRY_RECORD: (0, _ACCESS_CONTROL_ENTRY),
    RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD: (0, (Field("id", Kind.UUID),)),
    RecordType.NO_OP_RECORD: (0, ()),
    RecordType.ZK_MIGRATION_STATE_RECORD: (0, (Field("zkMigrationState", Kind.INT8),)),
    RecordType.REMOVE_USER_SCRAM_CREDENTIAL_RECORD: (0, (Field("name", Kind.STRING), Field("mechanism", Kind.INT8))),
    RecordType.BEGIN_TRANSACTION_RECORD: (0, _text("name", tag=0)),
    RecordType.END_TRANSACTION_RECORD: (0, ()),
    RecordType.ABORT_TRANSACTION_RECORD: (0, _text("reason", tag=0)),
    RecordType.REMOVE_DELEGATION_TOKEN_RECORD: (0, _text("tokenId")),
    RecordType.REGISTER_CONTROLLER_RECORD: (0, _REGISTER_CONTROLLER),
    RecordType.CLEAR_ELR_RECORD: (0, _text("topicName")),
}

SCHEMAS: Final[Mapping[RecordType, Message]] = {
    kind: Message(kind.name, version_max, 0, fields) for kind, (version_max, fields) in _TABLE.items()
}
"""Every record type with its fields."""

DECIDE_WHO_IS_ALIVE: Final = frozenset(
    {
        RecordType.REGISTER_BROKER_RECORD,
        RecordType.UNREGISTER_BROKER_RECORD,
        RecordType.FENCE_BROKER_RECORD,
        RecordType.UNFENCE_BROKER_RECORD,
        RecordType.BROKER_REGISTRATION_CHANGE_RECORD,
    }
)
"""The types of the records that register, fence and unregister brokers; without one of them a dead broker may look
alive."""
assert len(SCHEMAS) == len(RecordType)
