"""Define the errors of a log, each with the class that Kafka throws.

Damaged bytes are `CorruptDataError`s; `kafka_class` names the Java class, so that both can be compared to the
letter. A short read at the end of a file is no error: iteration ends there.

Source: org.apache.kafka.common.errors and org.apache.kafka.common, 4.0.
"""

from __future__ import annotations

from typing import ClassVar

from broker.errors import BrokersideError, CorruptDataError, RefusedError


class CorruptBatchError(CorruptDataError):
    """A batch or message with an impossible size, checksum or magic."""

    kafka_class: ClassVar[str] = "org.apache.kafka.common.errors.CorruptRecordException"


class InvalidRecordError(CorruptDataError):
    """A batch with a right (or unverified) checksum whose records are malformed."""

    kafka_class: ClassVar[str] = "org.apache.kafka.common.InvalidRecordException"


class DecompressionError(CorruptDataError):
    """Compressed records that their codec does not accept, or that grow beyond the limit."""

    kafka_class: ClassVar[str] = "org.apache.kafka.common.KafkaException"


class UnknownCodecError(CorruptDataError):
    """Attributes that name a codec Kafka does not know (5, 6 or 7), or zstd before magic 2."""

    kafka_class: ClassVar[str] = "java.lang.IllegalArgumentException"


class StorageError(BrokersideError):
    """A disk operation failed; whether it took effect is unknown."""

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
    """An index with an impossible size, first entry or last entry."""

    kafka_class: ClassVar[str] = "org.apache.kafka.storage.internals.log.CorruptIndexException"


class CorruptTransactionIndexError(CorruptDataError):
    """A transaction index entry with an unknown version."""

    kafka_class: ClassVar[str] = "org.apache.kafka.common.KafkaException"


class CorruptSnapshotError(CorruptDataError):
    """A producer snapshot with an unknown version, a malformed layout or a wrong checksum."""

    kafka_class: ClassVar[str] = "org.apache.kafka.storage.internals.log.CorruptSnapshotException"


class CheckpointError(CorruptDataError):
    """A checkpoint or metadata file that Kafka refuses; `kafka_class` names the exception that Kafka throws."""

    kafka_class: str = "org.apache.kafka.common.errors.KafkaStorageException"

    def __init__(self, what: str, *, source: str = "", kafka_class: str | None = None) -> None:
        if kafka_class is not None:
            self.kafka_class = kafka_class
        super().__init__(what, source=source)


class IllegalArgumentError(RefusedError):
    """An argument that Kafka's storage never passes itself, such as an entry for a full index."""

    kafka_class = "java.lang.IllegalArgumentException"


class IllegalStateError(RefusedError):
    """A time index entry with an older timestamp than the last one."""

    kafka_class = "java.lang.IllegalStateException"


class InvalidOffsetError(RefusedError):
    """An index entry whose offset is not above the last entry's."""

    kafka_class = "org.apache.kafka.common.errors.InvalidOffsetException"


class IndexOffsetOverflowError(RefusedError):
    """An offset too far from an index's base offset to be kept in 31 bits."""

    kafka_class = "org.apache.kafka.storage.internals.log.IndexOffsetOverflowException"


class OutOfOrderSequenceError(RefusedError):
    """A batch of an idempotent producer whose sequence does not follow the last batch's."""

    kafka_class = "org.apache.kafka.common.errors.OutOfOrderSequenceException"


class InvalidProducerEpochError(RefusedError):
    """A batch or marker of an outdated producer epoch."""

    kafka_class = "org.apache.kafka.common.errors.InvalidProducerEpochException"


class InvalidTxnStateError(RefusedError):
    """A non-transactional batch from a producer with an open transaction."""

    kafka_class = "org.apache.kafka.common.errors.InvalidTxnStateException"


class TransactionCoordinatorFencedError(RefusedError):
    """A transaction marker of an outdated coordinator epoch."""

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
    """An offset outside the log, or an invalid new log start offset."""

    kafka_class = "org.apache.kafka.common.errors.OffsetOutOfRangeException"


class OffsetsOutOfOrderError(RefusedError):
    """A replicated record set whose offsets do not ascend."""

    kafka_class = "kafka.common.OffsetsOutOfOrderException"


class UnexpectedAppendOffsetError(RefusedError):
    """A replicated record set that begins below the log end offset."""

    kafka_class = "kafka.common.UnexpectedAppendOffsetException"


class RecordTooLargeError(RefusedError):
    """A batch larger than max.message.bytes."""

    kafka_class = "org.apache.kafka.common.errors.RecordTooLargeException"


class RecordBatchTooLargeError(RefusedError):
    """A record set larger than segment.bytes."""

    kafka_class = "org.apache.kafka.common.errors.RecordBatchTooLargeException"


class InvalidAppendError(RefusedError):
    """A record set that a leader rejects for its offsets, counts, magic or control bit."""

    kafka_class = "org.apache.kafka.common.InvalidRecordException"


class RecordValidationError(RefusedError):
    """Records that a leader rejects: without the required key, or with a time out of range.

    `record_indexes` are the places of those records in their batch; `has_invalid_timestamp` says that a time is wrong.
    """

    kafka_class = "org.apache.kafka.storage.internals.log.RecordValidationException"

    def __init__(self, what: str, *, record_indexes: tuple[int, ...], has_invalid_timestamp: bool) -> None:
        self.record_indexes = record_indexes
        self.has_invalid_timestamp = has_invalid_timestamp
        super().__init__(what)


class UnsupportedForMessageFormatError(RefusedError):
    """A field or record that the message format of the log cannot hold."""

    kafka_class = "org.apache.kafka.common.errors.UnsupportedForMessageFormatException"


class InconsistentTopicIdError(RefusedError):
    """An attempt to open a log with another topic's id."""

    kafka_class = "org.apache.kafka.common.errors.InconsistentTopicIdException"


class SegmentExistsError(RefusedError):
    """A new segment at an offset at which a non-empty segment exists, or below the last one."""

    kafka_class = "org.apache.kafka.common.KafkaException"
