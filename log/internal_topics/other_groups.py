"""Define the records of share and streams groups in `__consumer_offsets`.

What it decides: the fields of each record's key and value, by the record's type, the first 16 bits of its key.

Constraints: names and order are those of Kafka's schemas, as its tools print them.

Example: OTHER_GROUP_RECORDS[17].key.name == "StreamsGroupMetadataKey"

Source: group-coordinator/src/main/resources/common/message/*.json, 4.3.1.
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
from broker.wire.fields import Field, Kind, RecordSchema, array_of, record, strings

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
