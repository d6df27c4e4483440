"""Define the records of share and streams groups in `__consumer_offsets`.

What it decides: the fields of each record's key and value, by the record's type, the first 16 bits of its key.

Constraints: names and order are those of Kafka's schemas, as its tools print them.

Example: OTHER_GROUP_RECORDS[17].key.name == "StreamsGroupMetadataKey"

Source: group-coordinator/src/main/resources/common/message/*.json, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from log.internal_topics.messages import Message, RecordSchema
from log.metadata.fields import Field, Kind

OTHER_GROUP_RECORDS: Final[Mapping[int, RecordSchema]] = {
    10: RecordSchema(
        Message(
            "ShareGroupMemberMetadataKey",
            0,
            None,
            (
                Field("groupId", Kind.STRING),
                Field("memberId", Kind.STRING),
            ),
        ),
        Message(
            "ShareGroupMemberMetadataValue",
            0,
            0,
            (
                Field("rackId", Kind.STRING, is_nullable=True),
                Field("clientId", Kind.STRING),
                Field("clientHost", Kind.STRING),
                Field("subscribedTopicNames", Kind.STRING, is_array=True),
            ),
        ),
    ),
    11: RecordSchema(
        Message("ShareGroupMetadataKey", 0, None, (Field("groupId", Kind.STRING),)),
        Message(
            "ShareGroupMetadataValue",
            0,
            0,
            (
                Field("epoch", Kind.INT32),
                Field("metadataHash", Kind.INT64),
            ),
        ),
    ),
    12: RecordSchema(
        Message("ShareGroupTargetAssignmentMetadataKey", 0, None, (Field("groupId", Kind.STRING),)),
        Message(
            "ShareGroupTargetAssignmentMetadataValue",
            0,
            0,
            (
                Field("assignmentEpoch", Kind.INT32),
                Field("assignmentTimestamp", Kind.INT64, tag=0),
            ),
        ),
    ),
    13: RecordSchema(
        Message(
            "ShareGroupTargetAssignmentMemberKey",
            0,
            None,
            (
                Field("groupId", Kind.STRING),
                Field("memberId", Kind.STRING),
            ),
        ),
        Message(
            "ShareGroupTargetAssignmentMemberValue",
            0,
            0,
            (
                Field(
                    "topicPartitions",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("topicId", Kind.UUID),
                        Field("partitions", Kind.INT32, is_array=True),
                    ),
                ),
            ),
        ),
    ),
    14: RecordSchema(
        Message(
            "ShareGroupCurrentMemberAssignmentKey",
            0,
            None,
            (
                Field("groupId", Kind.STRING),
                Field("memberId", Kind.STRING),
            ),
        ),
        Message(
            "ShareGroupCurrentMemberAssignmentValue",
            0,
            0,
            (
                Field("memberEpoch", Kind.INT32),
                Field("previousMemberEpoch", Kind.INT32),
                Field("state", Kind.INT8),
                Field(
                    "assignedPartitions",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("topicId", Kind.UUID),
                        Field("partitions", Kind.INT32, is_array=True),
                    ),
                ),
            ),
        ),
    ),
    15: RecordSchema(
        Message("ShareGroupStatePartitionMetadataKey", 0, None, (Field("groupId", Kind.STRING),)),
        Message(
            "ShareGroupStatePartitionMetadataValue",
            0,
            0,
            (
                Field(
                    "initializingTopics",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("topicId", Kind.UUID),
                        Field("topicName", Kind.STRING),
                        Field("partitions", Kind.INT32, is_array=True),
                    ),
                ),
                Field(
                    "initializedTopics",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("topicId", Kind.UUID),
                        Field("topicName", Kind.STRING),
                        Field("partitions", Kind.INT32, is_array=True),
                    ),
                ),
                Field(
                    "deletingTopics",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("topicId", Kind.UUID),
                        Field("topicName", Kind.STRING),
                    ),
                ),
            ),
        ),
    ),
    17: RecordSchema(
        Message("StreamsGroupMetadataKey", 0, None, (Field("groupId", Kind.STRING),)),
        Message(
            "StreamsGroupMetadataValue",
            0,
            0,
            (
                Field("epoch", Kind.INT32),
                Field("metadataHash", Kind.INT64),
                Field("validatedTopologyEpoch", Kind.INT32, tag=0, default=-1),
                Field(
                    "lastAssignmentConfigs",
                    Kind.STRUCT,
                    is_array=True,
                    is_nullable=True,
                    tag=1,
                    fields=(
                        Field("key", Kind.STRING),
                        Field("value", Kind.STRING),
                    ),
                ),
            ),
        ),
    ),
    19: RecordSchema(
        Message(
            "StreamsGroupMemberMetadataKey",
            0,
            None,
            (
                Field("groupId", Kind.STRING),
                Field("memberId", Kind.STRING),
            ),
        ),
        Message(
            "StreamsGroupMemberMetadataValue",
            0,
            0,
            (
                Field("instanceId", Kind.STRING, is_nullable=True),
                Field("rackId", Kind.STRING, is_nullable=True),
                Field("clientId", Kind.STRING),
                Field("clientHost", Kind.STRING),
                Field("rebalanceTimeoutMs", Kind.INT32, default=-1),
                Field("topologyEpoch", Kind.INT32),
                Field("processId", Kind.STRING),
                Field(
                    "userEndpoint",
                    Kind.STRUCT,
                    is_nullable=True,
                    fields=(
                        Field("host", Kind.STRING),
                        Field("port", Kind.UINT16),
                    ),
                    default=None,
                ),
                Field(
                    "clientTags",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("key", Kind.STRING),
                        Field("value", Kind.STRING),
                    ),
                ),
            ),
        ),
    ),
    20: RecordSchema(
        Message("StreamsGroupTargetAssignmentMetadataKey", 0, None, (Field("groupId", Kind.STRING),)),
        Message(
            "StreamsGroupTargetAssignmentMetadataValue",
            0,
            0,
            (
                Field("assignmentEpoch", Kind.INT32),
                Field("assignmentTimestamp", Kind.INT64, tag=0),
            ),
        ),
    ),
    21: RecordSchema(
        Message(
            "StreamsGroupTargetAssignmentMemberKey",
            0,
            None,
            (
                Field("groupId", Kind.STRING),
                Field("memberId", Kind.STRING),
            ),
        ),
        Message(
            "StreamsGroupTargetAssignmentMemberValue",
            0,
            0,
            (
                Field(
                    "activeTasks",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("subtopologyId", Kind.STRING),
                        Field("partitions", Kind.INT32, is_array=True),
                    ),
                ),
                Field(
                    "standbyTasks",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("subtopologyId", Kind.STRING),
                        Field("partitions", Kind.INT32, is_array=True),
                    ),
                ),
                Field(
                    "warmupTasks",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("subtopologyId", Kind.STRING),
                        Field("partitions", Kind.INT32, is_array=True),
                    ),
                ),
            ),
        ),
    ),
    22: RecordSchema(
        Message(
            "StreamsGroupCurrentMemberAssignmentKey",
            0,
            None,
            (
                Field("groupId", Kind.STRING),
                Field("memberId", Kind.STRING),
            ),
        ),
        Message(
            "StreamsGroupCurrentMemberAssignmentValue",
            0,
            0,
            (
                Field("memberEpoch", Kind.INT32),
                Field("previousMemberEpoch", Kind.INT32),
                Field("state", Kind.INT8),
                Field(
                    "activeTasks",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("subtopologyId", Kind.STRING),
                        Field("partitions", Kind.INT32, is_array=True),
                        Field("assignmentEpochs", Kind.INT32, is_array=True, is_nullable=True, tag=0),
                    ),
                ),
                Field(
                    "standbyTasks",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("subtopologyId", Kind.STRING),
                        Field("partitions", Kind.INT32, is_array=True),
                        Field("assignmentEpochs", Kind.INT32, is_array=True, is_nullable=True, tag=0),
                    ),
                ),
                Field(
                    "warmupTasks",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("subtopologyId", Kind.STRING),
                        Field("partitions", Kind.INT32, is_array=True),
                        Field("assignmentEpochs", Kind.INT32, is_array=True, is_nullable=True, tag=0),
                    ),
                ),
                Field(
                    "activeTasksPendingRevocation",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("subtopologyId", Kind.STRING),
                        Field("partitions", Kind.INT32, is_array=True),
                        Field("assignmentEpochs", Kind.INT32, is_array=True, is_nullable=True, tag=0),
                    ),
                ),
                Field(
                    "standbyTasksPendingRevocation",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("subtopologyId", Kind.STRING),
                        Field("partitions", Kind.INT32, is_array=True),
                        Field("assignmentEpochs", Kind.INT32, is_array=True, is_nullable=True, tag=0),
                    ),
                ),
                Field(
                    "warmupTasksPendingRevocation",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("subtopologyId", Kind.STRING),
                        Field("partitions", Kind.INT32, is_array=True),
                        Field("assignmentEpochs", Kind.INT32, is_array=True, is_nullable=True, tag=0),
                    ),
                ),
            ),
        ),
    ),
    23: RecordSchema(
        Message("StreamsGroupTopologyKey", 0, None, (Field("groupId", Kind.STRING),)),
        Message(
            "StreamsGroupTopologyValue",
            0,
            0,
            (
                Field("epoch", Kind.INT32),
                Field(
                    "subtopologies",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("subtopologyId", Kind.STRING),
                        Field("sourceTopics", Kind.STRING, is_array=True),
                        Field("sourceTopicRegex", Kind.STRING, is_array=True),
                        Field(
                            "stateChangelogTopics",
                            Kind.STRUCT,
                            is_array=True,
                            fields=(
                                Field("name", Kind.STRING),
                                Field("partitions", Kind.INT32),
                                Field("replicationFactor", Kind.INT16),
                                Field(
                                    "topicConfigs",
                                    Kind.STRUCT,
                                    is_array=True,
                                    fields=(
                                        Field("key", Kind.STRING),
                                        Field("value", Kind.STRING),
                                    ),
                                ),
                            ),
                        ),
                        Field("repartitionSinkTopics", Kind.STRING, is_array=True),
                        Field(
                            "repartitionSourceTopics",
                            Kind.STRUCT,
                            is_array=True,
                            fields=(
                                Field("name", Kind.STRING),
                                Field("partitions", Kind.INT32),
                                Field("replicationFactor", Kind.INT16),
                                Field(
                                    "topicConfigs",
                                    Kind.STRUCT,
                                    is_array=True,
                                    fields=(
                                        Field("key", Kind.STRING),
                                        Field("value", Kind.STRING),
                                    ),
                                ),
                            ),
                        ),
                        Field(
                            "copartitionGroups",
                            Kind.STRUCT,
                            is_array=True,
                            fields=(
                                Field("sourceTopics", Kind.INT16, is_array=True),
                                Field("sourceTopicRegex", Kind.INT16, is_array=True),
                                Field("repartitionSourceTopics", Kind.INT16, is_array=True),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ),
}
"""Records of share and streams groups by type."""
