"""What can be wrong with a log, in the three families of `broker.errors`, each with the class that Kafka throws.

Damaged bytes are `CorruptDataError`s; `kafka_class` names the Java class, so that both can be compared to the
letter. A short read at the end of a file is no error: iteration ends there.

Source: org.apache.kafka.common.errors and org.apache.kafka.common, 4.0.
"""

from __future__ import annotations

from typing import ClassVar

from broker.errors import BrokersideError, CorruptDataError, RefusedError


class CorruptBatchError(CorruptDataError):
    """A batch or message whose size, checksum or magic cannot be right."""

    kafka_class: ClassVar[str] = "org.apache.kafka.common.errors.CorruptRecordException"


class InvalidRecordError(CorruptDataError):
    """A batch whose checksum holds, or was not asked for, but whose records do not add up."""

    kafka_class: ClassVar[str] = "org.apache.kafka.common.InvalidRecordException"


class DecompressionError(CorruptDataError):
    """Compressed records that their codec does not accept, or that grow beyond the limit."""

    kafka_class: ClassVar[str] = "org.apache.kafka.common.KafkaException"


class UnknownCodecError(CorruptDataError):
    """Attributes that name a codec Kafka does not know (5, 6 or 7), or zstd before magic 2."""

    kafka_class: ClassVar[str] = "java.lang.IllegalArgumentException"


class StorageError(BrokersideError):
    """The disk refused: which operation, on which path, and why. Whether it was done is not known."""

    definite = False
    kafka_class: ClassVar[str] = "org.apache.kafka.common.errors.KafkaStorageException"

    def __init__(self, operation: str, path: str, reason: str) -> None:
        self.operation = operation
        self.path = path
        self.reason = reason
        super().__init__(f"cannot {operation} {path}: {reason}")


class MissingFileError(StorageError):
    """The file or directory is not there; nothing was done."""

    definite = True
    kafka_class: ClassVar[str] = "java.nio.file.NoSuchFileException"


class LockedError(StorageError, RefusedError):
    """Another process holds the lock; nothing was done."""

    definite = True
    kafka_class: ClassVar[str] = "org.apache.kafka.common.KafkaException"


class CorruptIndexError(CorruptDataError):
    """An index that cannot be right: its size, its first or its last entry."""

    kafka_class: ClassVar[str] = "org.apache.kafka.storage.internals.log.CorruptIndexException"


class CorruptTransactionIndexError(CorruptDataError):
    """An entry of a transaction index in a version that is not known."""

    kafka_class: ClassVar[str] = "org.apache.kafka.common.KafkaException"


class CorruptSnapshotError(CorruptDataError):
    """A producer snapshot whose version, layout or checksum cannot be right."""

    kafka_class: ClassVar[str] = "org.apache.kafka.storage.internals.log.CorruptSnapshotException"


class CheckpointError(CorruptDataError):
    """A checkpoint or metadata file that Kafka refuses; `kafka_class` is what Kafka throws for this fault."""

    kafka_class: str = "org.apache.kafka.common.errors.KafkaStorageException"

    def __init__(self, what: str, *, source: str = "", kafka_class: str | None = None) -> None:
        if kafka_class is not None:
            self.kafka_class = kafka_class
        super().__init__(what, source=source)


class IllegalArgumentError(RefusedError):
    """Something that Kafka's storage never does to itself, such as an entry for a full index."""

    kafka_class = "java.lang.IllegalArgumentException"


class IllegalStateError(RefusedError):
    """A time index entry older than the last one."""

    kafka_class = "java.lang.IllegalStateException"


class InvalidOffsetError(RefusedError):
    """An index entry whose offset is not above the last one's."""

    kafka_class = "org.apache.kafka.common.errors.InvalidOffsetException"


class IndexOffsetOverflowError(RefusedError):
    """An offset too far from an index's base offset to be kept in 31 bits."""

    kafka_class = "org.apache.kafka.storage.internals.log.IndexOffsetOverflowException"


class OutOfOrderSequenceError(RefusedError):
    """A batch of an idempotent producer that does not follow its last one."""

    kafka_class = "org.apache.kafka.common.errors.OutOfOrderSequenceException"


class InvalidProducerEpochError(RefusedError):
    """A batch or marker of a producer epoch that has been succeeded."""

    kafka_class = "org.apache.kafka.common.errors.InvalidProducerEpochException"


class InvalidTxnStateError(RefusedError):
    """A batch outside a transaction from a producer that is in one."""

    kafka_class = "org.apache.kafka.common.errors.InvalidTxnStateException"


class TransactionCoordinatorFencedError(RefusedError):
    """A transaction marker of a coordinator epoch that has been succeeded."""

    kafka_class = "org.apache.kafka.common.errors.TransactionCoordinatorFencedException"


class SegmentOffsetOverflowError(RefusedError):
    """An offset too far from a segment's base to be appended to it, or found in it."""

    kafka_class = "org.apache.kafka.storage.internals.log.LogSegmentOffsetOverflowException"

    def __init__(self, base_offset: int, offset: int) -> None:
        self.base_offset = base_offset
        self.offset = offset
        super().__init__(
            f"offset {offset} does not lie within 2147483647 above the segment's base offset {base_offset}"
        )


class OffsetOutOfRangeError(RefusedError):
    """An offset that the log does not have, or that it may not start at."""

    kafka_class = "org.apache.kafka.common.errors.OffsetOutOfRangeException"


class OffsetsOutOfOrderError(RefusedError):
    """A replicated set of batches whose offsets do not grow."""

    kafka_class = "kafka.common.OffsetsOutOfOrderException"


class UnexpectedAppendOffsetError(RefusedError):
    """A replicated set of batches that begins below the log's end."""

    kafka_class = "kafka.common.UnexpectedAppendOffsetException"


class RecordTooLargeError(RefusedError):
    """A batch larger than max.message.bytes."""

    kafka_class = "org.apache.kafka.common.errors.RecordTooLargeException"


class RecordBatchTooLargeError(RefusedError):
    """A set of batches larger than segment.bytes."""

    kafka_class = "org.apache.kafka.common.errors.RecordBatchTooLargeException"


class InvalidAppendError(RefusedError):
    """A batch that a leader does not take: its offsets, counts, magic or control bit."""

    kafka_class = "org.apache.kafka.common.InvalidRecordException"


class RecordValidationError(RefusedError):
    """Records that a leader does not take: without a key where one is needed, or with a time out of range.

    `record_indexes` are the places of those records in their batch; `has_invalid_timestamp` says that a time is wrong.
    """

    kafka_class = "org.apache.kafka.storage.internals.log.RecordValidationException"

    def __init__(self, what: str, *, record_indexes: tuple[int, ...], has_invalid_timestamp: bool) -> None:
        self.record_indexes = record_indexes
        self.has_invalid_timestamp = has_invalid_timestamp
        super().__init__(what)


class UnsupportedForMessageFormatError(RefusedError):
    """Something that the message format of the log cannot say."""

    kafka_class = "org.apache.kafka.common.errors.UnsupportedForMessageFormatException"


class InconsistentTopicIdError(RefusedError):
    """A log of one topic is opened as another's."""

    kafka_class = "org.apache.kafka.common.errors.InconsistentTopicIdException"


class SegmentExistsError(RefusedError):
    """A log is to begin a segment at an offset where it has one that is not empty, or below its last one."""

    kafka_class = "org.apache.kafka.common.KafkaException"
