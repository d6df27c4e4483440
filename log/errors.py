"""Define the errors of a log, each with the class that Kafka throws.

Source: org.apache.kafka.common.errors and org.apache.kafka.common, 4.0.
"""

from __future__ import annotations

from typing import ClassVar

from broker.errors import BrokersideError, CorruptDataError, RefusedError


class CorruptBatchError(CorruptDataError):
    """A batch or message has an impossible size, checksum or magic."""

    kafka_class: ClassVar[str] = "org.apache.kafka.common.errors.CorruptRecordException"


class InvalidRecordError(CorruptDataError):
    """The records of a batch with a right (or unverified) checksum are malformed."""

    kafka_class: ClassVar[str] = "org.apache.kafka.common.InvalidRecordException"


class DecompressionError(CorruptDataError):
    """A codec refuses the compressed records."""

    kafka_class: ClassVar[str] = "org.apache.kafka.common.KafkaException"
    reached_bytes: int = 0
    """How many bytes had been decompressed."""

    @classmethod
    def after(cls, reached_bytes: int, what: str) -> DecompressionError:
        """Return the error found after so many decompressed bytes."""
        error = cls(what)
        error.reached_bytes = reached_bytes
        return error


class ReadingLimitError(DecompressionError):
    """Compressed records stand for more than is read of a file of its size, or of one batch; they need no damage."""


class UnknownCodecError(CorruptDataError):
    """The attributes name a codec that Kafka does not know (5, 6 or 7), or zstd before magic 2."""

    kafka_class: ClassVar[str] = "java.lang.IllegalArgumentException"


class StorageError(BrokersideError):
    """A disk operation failed, with or without effect."""

    definite = False
    kafka_class: ClassVar[str] = "org.apache.kafka.common.errors.KafkaStorageException"

    def __init__(self, operation: str, path: str, reason: str) -> None:
        self.operation = operation
        self.path = path
        self.reason = reason
        super().__init__(f"cannot {operation} {path}: {reason}")


class MissingFileError(StorageError):
    """The file or directory does not exist; nothing was done."""

    definite = True
    kafka_class: ClassVar[str] = "java.nio.file.NoSuchFileException"


class LockedError(StorageError, RefusedError):
    """Another process holds the lock; nothing was done."""

    definite = True
    kafka_class: ClassVar[str] = "org.apache.kafka.common.KafkaException"


class CorruptIndexError(CorruptDataError):
    """An index has an impossible size, first entry or last entry."""

    kafka_class: ClassVar[str] = "org.apache.kafka.storage.internals.log.CorruptIndexException"


class CorruptTransactionIndexError(CorruptDataError):
    """An entry of a transaction index has an unknown version."""

    kafka_class: ClassVar[str] = "org.apache.kafka.common.KafkaException"


class CorruptSnapshotError(CorruptDataError):
    """A producer snapshot has an unknown version, a malformed layout or a wrong checksum."""

    kafka_class: ClassVar[str] = "org.apache.kafka.storage.internals.log.CorruptSnapshotException"


class CheckpointError(CorruptDataError):
    """Kafka refuses a checkpoint or metadata file; `kafka_class` names the exception that Kafka throws."""

    kafka_class: str = "org.apache.kafka.common.errors.KafkaStorageException"

    def __init__(self, what: str, *, source: str = "", kafka_class: str | None = None) -> None:
        if kafka_class is not None:
            self.kafka_class = kafka_class
        super().__init__(what, source=source)


class IllegalArgumentError(RefusedError):
    """An argument is one that Kafka's storage never passes itself, such as an entry for a full index."""

    kafka_class = "java.lang.IllegalArgumentException"


class IllegalStateError(RefusedError):
    """An entry for a time index has an older timestamp than the last entry."""

    kafka_class = "java.lang.IllegalStateException"


class InvalidOffsetError(RefusedError):
    """An entry for an index has an offset that is not above the last entry's."""

    kafka_class = "org.apache.kafka.common.errors.InvalidOffsetException"


class IndexOffsetOverflowError(RefusedError):
    """An offset is too far from an index's base offset to be stored in 31 bits."""

    kafka_class = "org.apache.kafka.storage.internals.log.IndexOffsetOverflowException"


class OutOfOrderSequenceError(RefusedError):
    """A batch of an idempotent producer has a sequence that does not follow the last batch's."""

    kafka_class = "org.apache.kafka.common.errors.OutOfOrderSequenceException"


class InvalidProducerEpochError(RefusedError):
    """A batch or marker has an outdated producer epoch."""

    kafka_class = "org.apache.kafka.common.errors.InvalidProducerEpochException"


class InvalidTxnStateError(RefusedError):
    """A producer with an open transaction sends a non-transactional batch."""

    kafka_class = "org.apache.kafka.common.errors.InvalidTxnStateException"


class TransactionCoordinatorFencedError(RefusedError):
    """A transaction marker has an outdated coordinator epoch."""

    kafka_class = "org.apache.kafka.common.errors.TransactionCoordinatorFencedException"


class SegmentOffsetOverflowError(RefusedError):
    """An offset is too far from a segment's base offset to be appended to the segment, or found in it."""

    kafka_class = "org.apache.kafka.storage.internals.log.LogSegmentOffsetOverflowException"

    def __init__(self, base_offset: int, offset: int) -> None:
        self.base_offset = base_offset
        self.offset = offset
        super().__init__(
            f"offset {offset} does not lie within 2147483647 above the segment's base offset {base_offset}"
        )


class OffsetOutOfRangeError(RefusedError):
    """An offset lies outside the log, or a new log start offset is invalid."""

    kafka_class = "org.apache.kafka.common.errors.OffsetOutOfRangeException"


class OffsetsOutOfOrderError(RefusedError):
    """The offsets of a replicated record set do not ascend."""

    kafka_class = "kafka.common.OffsetsOutOfOrderException"


class UnexpectedAppendOffsetError(RefusedError):
    """A replicated record set begins below the log end offset."""

    kafka_class = "kafka.common.UnexpectedAppendOffsetException"


class RecordTooLargeError(RefusedError):
    """A batch is larger than max.message.bytes."""

    kafka_class = "org.apache.kafka.common.errors.RecordTooLargeException"


class RecordBatchTooLargeError(RefusedError):
    """A record set is larger than segment.bytes."""

    kafka_class = "org.apache.kafka.common.errors.RecordBatchTooLargeException"


class InvalidAppendError(RefusedError):
    """A leader rejects a record set for its offsets, counts, magic or control bit."""

    kafka_class = "org.apache.kafka.common.InvalidRecordException"


class RecordValidationError(RefusedError):
    """A leader rejects records without the required key, or with a timestamp out of range.

    `record_indexes` are the places of those records in their batch; `has_invalid_timestamp` says that a time is wrong.
    """

    kafka_class = "org.apache.kafka.storage.internals.log.RecordValidationException"

    def __init__(self, what: str, *, record_indexes: tuple[int, ...], has_invalid_timestamp: bool) -> None:
        self.record_indexes = record_indexes
        self.has_invalid_timestamp = has_invalid_timestamp
        super().__init__(what)


class InconsistentTopicIdError(RefusedError):
    """A log is opened with another topic's id."""

    kafka_class = "org.apache.kafka.common.errors.InconsistentTopicIdException"


class SegmentExistsError(RefusedError):
    """A new segment would begin where a non-empty segment exists, or below the last segment."""

    kafka_class = "org.apache.kafka.common.KafkaException"
