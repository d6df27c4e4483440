"""Define the records of `__transaction_state`, `__share_group_state` and `__remote_log_metadata`.

What it decides: the fields of each record's key and value, by the record's type, the first 16 bits of its key.

Constraints: names and order are those of Kafka's schemas, as its tools print them.

Example: TRANSACTION_RECORDS[0].key.name == "TransactionLogKey"

Source: transaction-coordinator, share-coordinator and storage, their resources of messages, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from log.internal_topics.messages import Message, RecordSchema
from log.metadata.fields import Field, Kind

TRANSACTION_RECORDS: Final[Mapping[int, RecordSchema]] = {
    0: RecordSchema(
        Message("TransactionLogKey", 0, None, (Field("transactionalId", Kind.STRING),)),
        Message(
            "TransactionLogValue",
            1,
            1,
            (
                Field("producerId", Kind.INT64),
                Field("previousProducerId", Kind.INT64, since=1, tag=0, default=-1),
                Field("nextProducerId", Kind.INT64, since=1, tag=1, default=-1),
                Field("producerEpoch", Kind.INT16),
                Field("nextProducerEpoch", Kind.INT16, since=1, tag=3, default=-1),
                Field("transactionTimeoutMs", Kind.INT32),
                Field("transactionStatus", Kind.INT8),
                Field(
                    "transactionPartitions",
                    Kind.STRUCT,
                    is_array=True,
                    is_nullable=True,
                    fields=(
                        Field("topic", Kind.STRING),
                        Field("partitionIds", Kind.INT32, is_array=True),
                    ),
                ),
                Field("transactionLastUpdateTimestampMs", Kind.INT64),
                Field("transactionStartTimestampMs", Kind.INT64),
                Field("clientTransactionVersion", Kind.INT16, since=1, tag=2),
            ),
        ),
    ),
}
"""Records of __transaction_state by type."""

SHARE_STATE_RECORDS: Final[Mapping[int, RecordSchema]] = {
    0: RecordSchema(
        Message(
            "ShareSnapshotKey",
            0,
            None,
            (
                Field("groupId", Kind.STRING),
                Field("topicId", Kind.UUID),
                Field("partition", Kind.INT32),
            ),
        ),
        Message(
            "ShareSnapshotValue",
            0,
            0,
            (
                Field("snapshotEpoch", Kind.INT32),
                Field("stateEpoch", Kind.INT32),
                Field("leaderEpoch", Kind.INT32),
                Field("startOffset", Kind.INT64),
                Field("deliveryCompleteCount", Kind.INT32, tag=0, default=-1),
                Field("createTimestamp", Kind.INT64),
                Field("writeTimestamp", Kind.INT64),
                Field(
                    "stateBatches",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("firstOffset", Kind.INT64),
                        Field("lastOffset", Kind.INT64),
                        Field("deliveryState", Kind.INT8),
                        Field("deliveryCount", Kind.INT16),
                    ),
                ),
            ),
        ),
    ),
    1: RecordSchema(
        Message(
            "ShareUpdateKey",
            0,
            None,
            (
                Field("groupId", Kind.STRING),
                Field("topicId", Kind.UUID),
                Field("partition", Kind.INT32),
            ),
        ),
        Message(
            "ShareUpdateValue",
            0,
            0,
            (
                Field("snapshotEpoch", Kind.INT32),
                Field("leaderEpoch", Kind.INT32),
                Field("startOffset", Kind.INT64),
                Field("deliveryCompleteCount", Kind.INT32, tag=0, default=-1),
                Field(
                    "stateBatches",
                    Kind.STRUCT,
                    is_array=True,
                    fields=(
                        Field("firstOffset", Kind.INT64),
                        Field("lastOffset", Kind.INT64),
                        Field("deliveryState", Kind.INT8),
                        Field("deliveryCount", Kind.INT16),
                    ),
                ),
            ),
        ),
    ),
}
"""Records of __share_group_state by type."""

REMOTE_LOG_RECORDS: Final[Mapping[int, Message]] = {
    0: Message(
        "RemoteLogSegmentMetadataRecord",
        0,
        0,
        (
            Field(
                "remoteLogSegmentId",
                Kind.STRUCT,
                fields=(
                    Field(
                        "topicIdPartition",
                        Kind.STRUCT,
                        fields=(
                            Field("name", Kind.STRING),
                            Field("id", Kind.UUID),
                            Field("partition", Kind.INT32),
                        ),
                    ),
                    Field("id", Kind.UUID),
                ),
            ),
            Field("startOffset", Kind.INT64),
            Field("endOffset", Kind.INT64),
            Field("brokerId", Kind.INT32),
            Field("maxTimestampMs", Kind.INT64),
            Field("eventTimestampMs", Kind.INT64),
            Field(
                "segmentLeaderEpochs",
                Kind.STRUCT,
                is_array=True,
                fields=(
                    Field("leaderEpoch", Kind.INT32),
                    Field("offset", Kind.INT64),
                ),
            ),
            Field("segmentSizeInBytes", Kind.INT32),
            Field("customMetadata", Kind.BYTES, is_nullable=True, default=None),
            Field("remoteLogSegmentState", Kind.INT8),
            Field("txnIndexEmpty", Kind.BOOL, tag=0),
        ),
    ),
    1: Message(
        "RemoteLogSegmentMetadataUpdateRecord",
        0,
        0,
        (
            Field(
                "remoteLogSegmentId",
                Kind.STRUCT,
                fields=(
                    Field(
                        "topicIdPartition",
                        Kind.STRUCT,
                        fields=(
                            Field("name", Kind.STRING),
                            Field("id", Kind.UUID),
                            Field("partition", Kind.INT32),
                        ),
                    ),
                    Field("id", Kind.UUID),
                ),
            ),
            Field("brokerId", Kind.INT32),
            Field("eventTimestampMs", Kind.INT64),
            Field("customMetadata", Kind.BYTES, is_nullable=True, default=None),
            Field("remoteLogSegmentState", Kind.INT8),
        ),
    ),
    2: Message(
        "RemotePartitionDeleteMetadataRecord",
        0,
        0,
        (
            Field(
                "topicIdPartition",
                Kind.STRUCT,
                fields=(
                    Field("name", Kind.STRING),
                    Field("id", Kind.UUID),
                    Field("partition", Kind.INT32),
                ),
            ),
            Field("brokerId", Kind.INT32),
            Field("eventTimestampMs", Kind.INT64),
            Field("remotePartitionDeleteState", Kind.INT8),
        ),
    ),
    3: Message(
        "RemoteLogSegmentMetadataSnapshotRecord",
        0,
        0,
        (
            Field("segmentId", Kind.UUID),
            Field("startOffset", Kind.INT64),
            Field("endOffset", Kind.INT64),
            Field("brokerId", Kind.INT32),
            Field("maxTimestampMs", Kind.INT64),
            Field("eventTimestampMs", Kind.INT64),
            Field(
                "segmentLeaderEpochs",
                Kind.STRUCT,
                is_array=True,
                fields=(
                    Field("leaderEpoch", Kind.INT32),
                    Field("offset", Kind.INT64),
                ),
            ),
            Field("segmentSizeInBytes", Kind.INT32),
            Field("customMetadata", Kind.BYTES, is_nullable=True, default=None),
            Field("remoteLogSegmentState", Kind.INT8),
            Field("txnIndexEmpty", Kind.BOOL, tag=0),
        ),
    ),
}
"""Records of __remote_log_metadata by type; they have no keys."""
