"""Define the records of internal topics that only tools read: other groups, transactions, share state, remote log.

Source: transaction-coordinator, share-coordinator and storage, their resources of messages, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.group.schemas import (
    ASSIGNMENT_EPOCHS,
    GROUP,
    MEMBER,
    MEMBER_STATE,
    PARTITIONS,
    TARGET_ASSIGNMENT,
    TOPIC_ID,
)
from broker.wire.fields import Field, Kind, Message, RecordSchema, array_of, record, strings

SETTINGS: Final = strings("key", "value")

_TASKS: Final = (*strings("subtopologyId"), PARTITIONS)
_HELD_TASKS: Final = (*_TASKS, ASSIGNMENT_EPOCHS)
_TASK_KINDS: Final = ("activeTasks", "standbyTasks", "warmupTasks")
_NAMED_TOPIC: Final = (TOPIC_ID, *strings("topicName"))
_INTERNAL_TOPIC: Final = (
    *strings("name"),
    Field("partitions", Kind.INT32),
    Field("replicationFactor", Kind.INT16),
    array_of("topicConfigs", *SETTINGS),
)

OTHER_GROUP_RECORDS: Final[Mapping[int, RecordSchema]] = {
    10: record(
        "ShareGroupMemberMetadata",
        MEMBER,
        Field("rackId", Kind.STRING, is_nullable=True),
        *strings("clientId", "clientHost"),
        Field("subscribedTopicNames", Kind.STRING, is_array=True),
    ),
    11: record("ShareGroupMetadata", GROUP, Field("epoch", Kind.INT32), Field("metadataHash", Kind.INT64)),
    12: record("ShareGroupTargetAssignmentMetadata", GROUP, *TARGET_ASSIGNMENT),
    13: record("ShareGroupTargetAssignmentMember", MEMBER, array_of("topicPartitions", TOPIC_ID, PARTITIONS)),
    14: record(
        "ShareGroupCurrentMemberAssignment",
        MEMBER,
        *MEMBER_STATE,
        array_of("assignedPartitions", TOPIC_ID, PARTITIONS),
    ),
    15: record(
        "ShareGroupStatePartitionMetadata",
        GROUP,
        array_of("initializingTopics", *_NAMED_TOPIC, PARTITIONS),
        array_of("initializedTopics", *_NAMED_TOPIC, PARTITIONS),
        array_of("deletingTopics", *_NAMED_TOPIC),
    ),
    17: record(
        "StreamsGroupMetadata",
        GROUP,
        Field("epoch", Kind.INT32),
        Field("metadataHash", Kind.INT64),
        Field("validatedTopologyEpoch", Kind.INT32, tag=0, default=-1),
        array_of("lastAssignmentConfigs", *SETTINGS, is_nullable=True, tag=1),
    ),
    19: record(
        "StreamsGroupMemberMetadata",
        MEMBER,
        Field("instanceId", Kind.STRING, is_nullable=True),
        Field("rackId", Kind.STRING, is_nullable=True),
        *strings("clientId", "clientHost"),
        Field("rebalanceTimeoutMs", Kind.INT32, default=-1),
        Field("topologyEpoch", Kind.INT32),
        *strings("processId"),
        Field(
            "userEndpoint",
            Kind.STRUCT,
            is_nullable=True,
            fields=(*strings("host"), Field("port", Kind.UINT16)),
            default=None,
        ),
        array_of("clientTags", *SETTINGS),
    ),
    20: record("StreamsGroupTargetAssignmentMetadata", GROUP, *TARGET_ASSIGNMENT),
    21: record("StreamsGroupTargetAssignmentMember", MEMBER, *(array_of(kind, *_TASKS) for kind in _TASK_KINDS)),
    22: record(
        "StreamsGroupCurrentMemberAssignment",
        MEMBER,
        *MEMBER_STATE,
        *(array_of(kind, *_HELD_TASKS) for kind in _TASK_KINDS),
        *(array_of(f"{kind}PendingRevocation", *_HELD_TASKS) for kind in _TASK_KINDS),
    ),
    23: record(
        "StreamsGroupTopology",
        GROUP,
        Field("epoch", Kind.INT32),
        array_of(
            "subtopologies",
            *strings("subtopologyId"),
            Field("sourceTopics", Kind.STRING, is_array=True),
            Field("sourceTopicRegex", Kind.STRING, is_array=True),
            array_of("stateChangelogTopics", *_INTERNAL_TOPIC),
            Field("repartitionSinkTopics", Kind.STRING, is_array=True),
            array_of("repartitionSourceTopics", *_INTERNAL_TOPIC),
            array_of(
                "copartitionGroups",
                *(
                    Field(name, Kind.INT16, is_array=True)
                    for name in ("sourceTopics", "sourceTopicRegex", "repartitionSourceTopics")
                ),
            ),
        ),
    ),
}
"""Records of share and streams groups by type."""


TRANSACTION_RECORDS: Final[Mapping[int, RecordSchema]] = {
    0: record(
        "TransactionLog",
        strings("transactionalId"),
        Field("producerId", Kind.INT64),
        Field("previousProducerId", Kind.INT64, since=1, tag=0, default=-1),
        Field("nextProducerId", Kind.INT64, since=1, tag=1, default=-1),
        Field("producerEpoch", Kind.INT16),
        Field("nextProducerEpoch", Kind.INT16, since=1, tag=3, default=-1),
        Field("transactionTimeoutMs", Kind.INT32),
        Field("transactionStatus", Kind.INT8),
        array_of(
            "transactionPartitions",
            *strings("topic"),
            Field("partitionIds", Kind.INT32, is_array=True),
            is_nullable=True,
        ),
        Field("transactionLastUpdateTimestampMs", Kind.INT64),
        Field("transactionStartTimestampMs", Kind.INT64),
        Field("clientTransactionVersion", Kind.INT16, since=1, tag=2),
        version_max=1,
        flexible_since=1,
    ),
}
"""Records of __transaction_state by type."""

_SHARE_PARTITION: Final = (
    *strings("groupId"),
    Field("topicId", Kind.UUID),
    Field("partition", Kind.INT32),
)
_DELIVERY_COMPLETE: Final = Field("deliveryCompleteCount", Kind.INT32, tag=0, default=-1)
_STATE_BATCHES: Final = array_of(
    "stateBatches",
    Field("firstOffset", Kind.INT64),
    Field("lastOffset", Kind.INT64),
    Field("deliveryState", Kind.INT8),
    Field("deliveryCount", Kind.INT16),
)

SHARE_STATE_RECORDS: Final[Mapping[int, RecordSchema]] = {
    0: record(
        "ShareSnapshot",
        _SHARE_PARTITION,
        Field("snapshotEpoch", Kind.INT32),
        Field("stateEpoch", Kind.INT32),
        Field("leaderEpoch", Kind.INT32),
        Field("startOffset", Kind.INT64),
        _DELIVERY_COMPLETE,
        Field("createTimestamp", Kind.INT64),
        Field("writeTimestamp", Kind.INT64),
        _STATE_BATCHES,
    ),
    1: record(
        "ShareUpdate",
        _SHARE_PARTITION,
        Field("snapshotEpoch", Kind.INT32),
        Field("leaderEpoch", Kind.INT32),
        Field("startOffset", Kind.INT64),
        _DELIVERY_COMPLETE,
        _STATE_BATCHES,
    ),
}
"""Records of __share_group_state by type."""

_PARTITION_OF: Final = Field(
    "topicIdPartition",
    Kind.STRUCT,
    fields=(*strings("name"), Field("id", Kind.UUID), Field("partition", Kind.INT32)),
)
_SEGMENT_ID: Final = Field("remoteLogSegmentId", Kind.STRUCT, fields=(_PARTITION_OF, Field("id", Kind.UUID)))
_BROKER_ID: Final = Field("brokerId", Kind.INT32)
_EVENT_TIME: Final = Field("eventTimestampMs", Kind.INT64)
_CUSTOM_AND_STATE: Final = (
    Field("customMetadata", Kind.BYTES, is_nullable=True, default=None),
    Field("remoteLogSegmentState", Kind.INT8),
)
_OF_SEGMENT: Final = (
    Field("startOffset", Kind.INT64),
    Field("endOffset", Kind.INT64),
    _BROKER_ID,
    Field("maxTimestampMs", Kind.INT64),
    _EVENT_TIME,
    array_of("segmentLeaderEpochs", Field("leaderEpoch", Kind.INT32), Field("offset", Kind.INT64)),
    Field("segmentSizeInBytes", Kind.INT32),
    *_CUSTOM_AND_STATE,
    Field("txnIndexEmpty", Kind.BOOL, tag=0),
)


def _remote(name: str, *fields: Field) -> Message:
    """Return the schema of a record without a key."""
    return Message(f"Remote{name}Record", 0, 0, fields)


REMOTE_LOG_RECORDS: Final[Mapping[int, Message]] = {
    0: _remote("LogSegmentMetadata", _SEGMENT_ID, *_OF_SEGMENT),
    1: _remote("LogSegmentMetadataUpdate", _SEGMENT_ID, _BROKER_ID, _EVENT_TIME, *_CUSTOM_AND_STATE),
    2: _remote(
        "PartitionDeleteMetadata",
        _PARTITION_OF,
        _BROKER_ID,
        _EVENT_TIME,
        Field("remotePartitionDeleteState", Kind.INT8),
    ),
    3: _remote("LogSegmentMetadataSnapshot", Field("segmentId", Kind.UUID), *_OF_SEGMENT),
}
"""Records of __remote_log_metadata by type; they have no keys."""
