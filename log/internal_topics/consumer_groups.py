"""Define the records of classic and consumer groups in `__consumer_offsets`.

What it decides: the fields of each record's key and value, by the record's type, the first 16 bits of its key.

Constraints: names and order are those of Kafka's schemas, as its tools print them.

Example: CONSUMER_GROUP_RECORDS[1].key.name == "OffsetCommitKey"

Source: group-coordinator/src/main/resources/common/message/*.json, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from log.internal_topics.builders import (
    ASSIGNMENT_EPOCHS,
    GROUP,
    MEMBER,
    MEMBER_STATE,
    PARTITIONS,
    TARGET_ASSIGNMENT,
    TOPIC_ID,
    each,
    record,
    texts,
)
from log.internal_topics.messages import RecordSchema
from log.metadata.fields import Field, Kind

_OFFSET_OF: Final = (*texts("group", "topic"), Field("partition", Kind.INT32))
_HELD: Final = (TOPIC_ID, PARTITIONS, ASSIGNMENT_EPOCHS)

CONSUMER_GROUP_RECORDS: Final[Mapping[int, RecordSchema]] = {
    0: record(
        "LegacyOffsetCommit",
        _OFFSET_OF,
        Field("offset", Kind.INT64),
        *texts("metadata"),
        Field("commitTimestamp", Kind.INT64),
        flexible_since=None,
    ),
    1: record(
        "OffsetCommit",
        _OFFSET_OF,
        Field("offset", Kind.INT64),
        Field("leaderEpoch", Kind.INT32, since=3, default=-1),
        *texts("metadata"),
        Field("commitTimestamp", Kind.INT64),
        Field("expireTimestamp", Kind.INT64, since=1, until=1, default=-1),
        Field("topicId", Kind.UUID, since=4, tag=0),
        version_max=4,
        flexible_since=4,
    ),
    2: record(
        "GroupMetadata",
        texts("group"),
        *texts("protocolType"),
        Field("generation", Kind.INT32),
        Field("protocol", Kind.STRING, is_nullable=True),
        Field("leader", Kind.STRING, is_nullable=True),
        Field("currentStateTimestamp", Kind.INT64, since=2, default=-1),
        each(
            "members",
            *texts("memberId"),
            Field("groupInstanceId", Kind.STRING, since=3, is_nullable=True, default=None),
            *texts("clientId", "clientHost"),
            Field("rebalanceTimeout", Kind.INT32, since=1, default=-1),
            Field("sessionTimeout", Kind.INT32),
            Field("subscription", Kind.BYTES),
            Field("assignment", Kind.BYTES),
        ),
        version_max=4,
        flexible_since=4,
    ),
    3: record("ConsumerGroupMetadata", GROUP, Field("epoch", Kind.INT32), Field("metadataHash", Kind.INT64, tag=0)),
    4: record(
        "ConsumerGroupPartitionMetadata",
        GROUP,
        each(
            "topics",
            TOPIC_ID,
            *texts("topicName"),
            Field("numPartitions", Kind.INT32),
            each("partitionMetadata", Field("partition", Kind.INT32), Field("racks", Kind.STRING, is_array=True)),
        ),
    ),
    5: record(
        "ConsumerGroupMemberMetadata",
        MEMBER,
        Field("instanceId", Kind.STRING, is_nullable=True),
        Field("rackId", Kind.STRING, is_nullable=True),
        *texts("clientId", "clientHost"),
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
                each("supportedProtocols", *texts("name"), Field("metadata", Kind.BYTES)),
            ),
        ),
    ),
    6: record("ConsumerGroupTargetAssignmentMetadata", GROUP, *TARGET_ASSIGNMENT),
    7: record("ConsumerGroupTargetAssignmentMember", MEMBER, each("topicPartitions", TOPIC_ID, PARTITIONS)),
    8: record(
        "ConsumerGroupCurrentMemberAssignment",
        MEMBER,
        *MEMBER_STATE,
        each("assignedPartitions", *_HELD),
        each("partitionsPendingRevocation", *_HELD),
    ),
    16: record(
        "ConsumerGroupRegularExpression",
        texts("groupId", "regularExpression"),
        Field("topics", Kind.STRING, is_array=True),
        Field("version", Kind.INT64),
        Field("timestamp", Kind.INT64),
    ),
}
"""Records of classic and consumer groups by type."""
