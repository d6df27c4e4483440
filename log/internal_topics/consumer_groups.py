"""Define the records of classic and consumer groups in `__consumer_offsets`.

What it decides: the fields of each record's key and value, by the record's type, the first 16 bits of its key.

Constraints: names and order are those of Kafka's schemas, as its tools print them.

Example: CONSUMER_GROUP_RECORDS[1].key.name == "OffsetCommitKey"

Source: group-coordinator/src/main/resources/common/message/*.json, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from log.internal_topics.messages import Message, RecordSchema
from log.metadata.fields import Field, Kind

CONSUMER_GROUP_RECORDS: Final[Mapping[int, RecordSchema]] = {
    0: RecordSchema(
        Message(
            "LegacyOffsetCommitKey",
            0,
            None,
            (
                Field("group", Kind.STRING),
                Field("topic", Kind.STRING),
                Field("partition", Kind.INT32),
            ),
        ),
        Message(
            "LegacyOffsetCommitValue",
            0,
            None,
            (
                Field("offset", Kind.INT64),
                Field("metadata", Kind.STRING),
                Field("commitTimestamp", Kind.INT64),
            ),
        ),
    ),
    1: RecordSchema(
        Message(
            "OffsetCommitKey",
            0,
            None,
            (
                Field("group", Kind.STRING),
                Field("topic", Kind.STRING),
                Field("partition", Kind.INT32),
            ),
        ),
        Message(
            "OffsetCommitValue",
            4,
            4,
            (
                Field("offset", Kind.INT64),
                Field("leaderEpoch", Kind.INT32, since=3, default=-1),
                Field("metadata", Kind.STRING),
                Field("commitTimestamp", Kind.INT64),
                Field("expireTimestamp", Kind.INT64, since=1, until=1, default=-1),
                Field("topicId", Kind.UUID, since=4, tag=0),
            ),
        ),
    ),
    2: RecordSchema(
        Message("GroupMetadataKey", 0, None, (Field("group", Kind.STRING),)),
        Message(
            "GroupMetadataValue",
            4,
            4,
            (
                Field("protocolType", Kind.STRING),
                Field("generation", Kind.INT32),
                Field("protocol", Kind.STRING, is_nullable=True),
                Field("leader", Kind.STRING, is_nullable=True),
                Field("currentStateTimestamp", Kind.INT64, since=2, default=-1),
                Field(
                    "members",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("memberId", Kind.STRING),
                        Field("groupInstanceId", Kind.STRING, since=3, is_nullable=True, default=None),
                        Field("clientId", Kind.STRING),
                        Field("clientHost", Kind.STRING),
                        Field("rebalanceTimeout", Kind.INT32, since=1, default=-1),
                        Field("sessionTimeout", Kind.INT32),
                        Field("subscription", Kind.BYTES),
                        Field("assignment", Kind.BYTES),
                    ),
                ),
            ),
        ),
    ),
    3: RecordSchema(
        Message("ConsumerGroupMetadataKey", 0, None, (Field("groupId", Kind.STRING),)),
        Message(
            "ConsumerGroupMetadataValue",
            0,
            0,
            (
                Field("epoch", Kind.INT32),
                Field("metadataHash", Kind.INT64, tag=0),
            ),
        ),
    ),
    4: RecordSchema(
        Message("ConsumerGroupPartitionMetadataKey", 0, None, (Field("groupId", Kind.STRING),)),
        Message(
            "ConsumerGroupPartitionMetadataValue",
            0,
            0,
            (
                Field(
                    "topics",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("topicId", Kind.UUID),
                        Field("topicName", Kind.STRING),
                        Field("numPartitions", Kind.INT32),
                        Field(
                            "partitionMetadata",
                            Kind.STRUCT,
                            is_array=True,
                            fields=(
                                Field("partition", Kind.INT32),
                                Field("racks", Kind.STRING, is_array=True),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ),
    5: RecordSchema(
        Message(
            "ConsumerGroupMemberMetadataKey",
            0,
            None,
            (
                Field("groupId", Kind.STRING),
                Field("memberId", Kind.STRING),
            ),
        ),
        Message(
            "ConsumerGroupMemberMetadataValue",
            0,
            0,
            (
                Field("instanceId", Kind.STRING, is_nullable=True),
                Field("rackId", Kind.STRING, is_nullable=True),
                Field("clientId", Kind.STRING),
                Field("clientHost", Kind.STRING),
                Field("subscribedTopicNames", Kind.STRING, is_array=True),
                Field("subscribedTopicRegex", Kind.STRING, is_nullable=True),
                Field("rebalanceTimeoutMs", Kind.INT32, default=-1),
                Field("serverAssignor", Kind.STRING, is_nullable=True),
                Field(
                    "classicMemberMetadata",
                    Kind.STRUCT,
                    is_nullable=True,
                    tag=0,
                    fields=(
                        Field("sessionTimeoutMs", Kind.INT32),
                        Field(
                            "supportedProtocols",
                            Kind.STRUCT,
                            is_array=True,
                            fields=(
                                Field("name", Kind.STRING),
                                Field("metadata", Kind.BYTES),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ),
    6: RecordSchema(
        Message("ConsumerGroupTargetAssignmentMetadataKey", 0, None, (Field("groupId", Kind.STRING),)),
        Message(
            "ConsumerGroupTargetAssignmentMetadataValue",
            0,
            0,
            (
                Field("assignmentEpoch", Kind.INT32),
                Field("assignmentTimestamp", Kind.INT64, tag=0),
            ),
        ),
    ),
    7: RecordSchema(
        Message(
            "ConsumerGroupTargetAssignmentMemberKey",
            0,
            None,
            (
                Field("groupId", Kind.STRING),
                Field("memberId", Kind.STRING),
            ),
        ),
        Message(
            "ConsumerGroupTargetAssignmentMemberValue",
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
    8: RecordSchema(
        Message(
            "ConsumerGroupCurrentMemberAssignmentKey",
            0,
            None,
            (
                Field("groupId", Kind.STRING),
                Field("memberId", Kind.STRING),
            ),
        ),
        Message(
            "ConsumerGroupCurrentMemberAssignmentValue",
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
                        Field("assignmentEpochs", Kind.INT32, is_array=True, is_nullable=True, tag=0),
                    ),
                ),
                Field(
                    "partitionsPendingRevocation",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("topicId", Kind.UUID),
                        Field("partitions", Kind.INT32, is_array=True),
                        Field("assignmentEpochs", Kind.INT32, is_array=True, is_nullable=True, tag=0),
                    ),
                ),
            ),
        ),
    ),
    16: RecordSchema(
        Message(
            "ConsumerGroupRegularExpressionKey",
            0,
            None,
            (
                Field("groupId", Kind.STRING),
                Field("regularExpression", Kind.STRING),
            ),
        ),
        Message(
            "ConsumerGroupRegularExpressionValue",
            0,
            0,
            (
                Field("topics", Kind.STRING, is_array=True),
                Field("version", Kind.INT64),
                Field("timestamp", Kind.INT64),
            ),
        ),
    ),
}
"""Records of classic and consumer groups by type."""
