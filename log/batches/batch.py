"""Define RecordBatch, the interface of a batch in any format.

What it decides: the questions that segments, recovery, the cleaner and the tools ask of a batch, answered alike by
magic 2 (`log.batches.batch_v2`) and by the older messages (`log.batches.legacy`), so that nobody asks for the magic
but where Kafka does.

Constraints: a batch is the bytes it came from, never changed and never copied; the header is read once, records only
on demand. Ranges are half-open: `next_offset` is the first offset after the batch.

Example: next(batches_in(data)).records()[0].key

Source: org.apache.kafka.common.record.{RecordBatch,FileLogInputStream}, 4.0.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Final

from broker.errors import CorruptDataError
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import SizeBytes, TimeMs
from log.codecs.compression import Codec, codec_of
from log.errors import CorruptBatchError
from log.record import Record, TimestampType, int64

if TYPE_CHECKING:
    from log.batches.record_columns import RecordColumns

NO_PRODUCER_ID: Final = ProducerId(-1)
NO_PRODUCER_EPOCH: Final = ProducerEpoch(-1)
NO_LEADER_EPOCH: Final = LeaderEpoch(-1)


class RecordBatch(abc.ABC):
    """One batch of magic 2, or one message of magic 0 or 1, plain or a compressed wrapper.

    `data` are its bytes and nothing else, `position` is where it stood in its file, `source` names that file in errors.
    Absent numbers are -1.
    """

    __slots__ = ("data", "position", "source")

    def __init__(self, data: memoryview, position: int, source: str) -> None:
        self.data = data
        self.position = position
        self.source = source

    @property
    @abc.abstractmethod
    def magic(self) -> int:
        """0, 1, 2; larger only in what the file reader accepts."""

    @property
    @abc.abstractmethod
    def attributes(self) -> int:
        """The field as stored: 16 bits, signed, in magic 2; 8 bits before."""

    @property
    @abc.abstractmethod
    def crc(self) -> int:
        """The checksum as stored, unsigned."""

    @property
    @abc.abstractmethod
    def base_offset(self) -> Offset:
        """The first offset. Of a wrapper of magic 0 or 1 found by looking inside, as Kafka does; may raise."""

    @property
    @abc.abstractmethod
    def last_offset(self) -> Offset:
        """The last offset that the batch covers, whether or not that record is still there."""

    @property
    @abc.abstractmethod
    def timestamp_type(self) -> TimestampType:
        """Who set the timestamps."""

    @property
    @abc.abstractmethod
    def base_timestamp(self) -> TimeMs:
        """What the records' times are relative to (the delete horizon, where there is one); -1 before magic 2."""

    @property
    @abc.abstractmethod
    def max_timestamp(self) -> TimeMs:
        """The largest time of the records when it was written, or the time of the append; -1 for none."""

    @property
    @abc.abstractmethod
    def last_offset_delta(self) -> int:
        """`last_offset` less `base_offset`."""

    @property
    @abc.abstractmethod
    def producer_id(self) -> ProducerId:
        """Who wrote it, -1 for a producer without id."""

    @property
    @abc.abstractmethod
    def producer_epoch(self) -> ProducerEpoch:
        """The producer's epoch, -1 for none."""

    @property
    @abc.abstractmethod
    def base_sequence(self) -> int:
        """The producer's number of the first record, -1 for none."""

    @property
    @abc.abstractmethod
    def last_sequence(self) -> int:
        """The producer's number of the last record, wrapping from 2147483647 to 0; -1 for none."""

    @property
    @abc.abstractmethod
    def partition_leader_epoch(self) -> LeaderEpoch:
        """The epoch of the leader that appended it, -1 for none."""

    @property
    @abc.abstractmethod
    def record_count(self) -> int:
        """How many records the header announces; before magic 2 counted, which decompresses a wrapper and may raise."""

    @property
    @abc.abstractmethod
    def is_transactional(self) -> bool:
        """Whether it is part of a transaction."""

    @property
    @abc.abstractmethod
    def is_control(self) -> bool:
        """Whether its records are the cluster's own: markers, leader changes, snapshot frames."""

    @property
    @abc.abstractmethod
    def delete_horizon_ms(self) -> TimeMs | None:
        """When its tombstones and markers may go; None before a cleaner has set it."""

    @property
    def size_bytes(self) -> SizeBytes:
        """How many bytes it takes in the log."""
        return SizeBytes(len(self.data))

    @property
    def end_position(self) -> int:
        """Where the next batch begins in the file."""
        return self.position + len(self.data)

    @property
    def next_offset(self) -> Offset:
        """The offset after `last_offset`; of the largest it is the smallest, as in Java."""
        return Offset(int64(self.last_offset + 1))

    @property
    def has_producer_id(self) -> bool:
        """Whether a producer with an id wrote it."""
        return self.producer_id > NO_PRODUCER_ID

    @property
    def codec(self) -> Codec:
        """How the records are compressed; raises UnknownCodecError."""
        try:
            return codec_of(self.attributes)
        except CorruptDataError as error:
            raise self.placed(error) from None

    def corrupt(self, what: str) -> CorruptBatchError:
        """Return the error that says `what` of this batch, with where it stands."""
        return CorruptBatchError(what, source=self.source, position=self.position)

    def placed(self, error: CorruptDataError) -> CorruptDataError:
        """Return an error found inside with the place of this batch, to be raised instead."""
        return type(error)(error.what, source=self.source, position=self.position)

    @abc.abstractmethod
    def is_valid(self) -> bool:
        """Whether the size can hold a batch and the checksum is right."""

    @abc.abstractmethod
    def ensure_valid(self) -> None:
        """Raise CorruptBatchError unless `is_valid`."""

    @abc.abstractmethod
    def records(self) -> tuple[Record, ...]:
        """Return the records, decompressed; the checksum is not asked. Raises CorruptDataError of some kind."""

    @abc.abstractmethod
    def columns(self) -> RecordColumns:
        """Return the records as columns; the checksum is not asked. Raises CorruptDataError of some kind."""
