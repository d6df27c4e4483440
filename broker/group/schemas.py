"""Define the records of `__consumer_offsets`, and the messages between members of classic groups.

Constraints: names and order are those of Kafka's schemas, as its tools print them.

Source: group-coordinator/src/main/resources/common/message/*.json and
clients/src/main/resources/common/message/ConsumerProtocol*.json, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.wire.fields import Field, Kind, Message, RecordSchema, array_of, record, strings

GROUP: Final = strings("groupId")
"""The key of what a group has once."""
MEMBER: Final = strings("groupId", "memberId")
"""The key of what each member of a group has."""
TOPIC_ID: Final = Field("topicId", Kind.UUID)
PARTITIONS: Final = Field("partitions", Kind.INT32, is_array=True)
ASSIGNMENT_EPOCHS: Final = Field("assignmentEpochs", Kind.INT32, is_array=True, is_nullable=True, tag=0)
TARGET_ASSIGNMENT: Final = (Field("assignmentEpoch", Kind.INT32), Field("assignmentTimestamp", Kind.INT64, tag=0))
"""The value of any group's target assignment: of which epoch it is, and when it was made (KIP-1263)."""
MEMBER_STATE: Final = (
    Field("memberEpoch", Kind.INT32),
    Field("previousMemberEpoch", Kind.INT32),
    Field("state", Kind.INT8),
)
"""What any member's current assignment begins with."""

_OFFSET_OF: Final = (*strings("group", "topic"), Field("partition", Kind.INT32))
_HELD: Final = (TOPIC_ID, PARTITIONS, ASSIGNMENT_EPOCHS)

CONSUMER_GROUP_RECORDS: Final[Mapping[int, RecordSchema]] = {
    0: record(
        "LegacyOffsetCommit",
        _OFFSET_OF,
        Field("offset", Kind.INT64),
        *strings("metadata"),
        Field("commitTimestamp", Kind.INT64),
        flexible_since=None,
    ),
    1: record(
        "OffsetCommit",
        _OFFSET_OF,
        Field("offset", Kind.INT64),
        Field("leaderEpoch", Kind.INT32, since=3, default=-1),
        *strings("metadata"),
        Field("commitTimestamp", Kind.INT64),
        Field("expireTimestamp", Kind.INT64, since=1, until=1, default=-1),
        Field("topicId", Kind.UUID, since=4, tag=0),
        version_max=4,
        flexible_since=4,
    ),
    2: record(
        "GroupMetadata",
        strings("group"),
        *strings("protocolType"),
        Field("generation", Kind.INT32),
        Field("protocol", Kind.STRING, is_nullable=True),
        Field("leader", Kind.STRING, is_nullable=True),
        Field("currentStateTimestamp", Kind.INT64, since=2, default=-1),
        array_of(
            "members",
            *strings("memberId"),
            Field("groupInstanceId", Kind.STRING, since=3, is_nullable=True, default=None),
            *strings("clientId", "clientHost"),
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
        array_of(
            "topics",
            TOPIC_ID,
            *strings("topicName"),
            Field("numPartitions", Kind.INT32),
            array_of("partitionMetadata", Field("partition", Kind.INT32), Field("racks", Kind.STRING, is_array=True)),
        ),
    ),
    5: record(
        "ConsumerGroupMemberMetadata",
        MEMBER,
        Field("instanceId", Kind.STRING, is_nullable=True),
        Field("rackId", Kind.STRING, is_nullable=True),
        *strings("clientId", "clientHost"),
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
                array_of("supportedProtocols", *strings("name"), Field("metadata", Kind.BYTES)),
            ),
        ),
    ),
    6: record("ConsumerGroupTargetAssignmentMetadata", GROUP, *TARGET_ASSIGNMENT),
    7: record("ConsumerGroupTargetAssignmentMember", MEMBER, array_of("topicPartitions", TOPIC_ID, PARTITIONS)),
    8: record(
        "ConsumerGroupCurrentMemberAssignment",
        MEMBER,
        *MEMBER_STATE,
        array_of("assignedPartitions", *_HELD),
        array_of("partitionsPendingRevocation", *_HELD),
    ),
    16: record(
        "ConsumerGroupRegularExpression",
        strings("groupId", "regularExpression"),
        Field("topics", Kind.STRING, is_array=True),
        Field("version", Kind.INT64),
        Field("timestamp", Kind.INT64),
    ),
}
"""Records of classic and consumer groups by type."""

SUBSCRIPTION: Final = Message(
    "ConsumerProtocolSubscription",
    3,
    None,
    (
        Field("topics", Kind.STRING, is_array=True),
        Field("userData", Kind.BYTES, is_nullable=True, default=None),
        Field(
            "ownedPartitions",
            Kind.STRUCT,
            since=1,
            is_array=True,
            fields=(
                Field("topic", Kind.STRING, since=1),
                Field("partitions", Kind.INT32, since=1, is_array=True),
            ),
        ),
        Field("generationId", Kind.INT32, since=2, default=-1),
        Field("rackId", Kind.STRING, since=3, is_nullable=True, default=None),
    ),
)
"""What a member asks for."""

ASSIGNMENT: Final = Message(
    "ConsumerProtocolAssignment",
    3,
    None,
    (
        Field(
            "assignedPartitions",
            Kind.STRUCT,
            is_array=True,
            fields=(
                Field("topic", Kind.STRING),
                Field("partitions", Kind.INT32, is_array=True),
            ),
        ),
        Field("userData", Kind.BYTES, is_nullable=True, default=None),
    ),
)
"""What a member was given."""

STICKY_MEMORY: Final = Message(
    "StickyAssignorUserData",
    1,
    None,
    (
        array_of("previousAssignment", *strings("topic"), PARTITIONS),
        Field("generation", Kind.INT32, since=1, default=-1),
    ),
)
"""The user data of the sticky assignor; which of its versions it is, its length shows."""
