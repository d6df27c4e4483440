"""Define RecordBatch, the interface of a batch in any format.

Source: org.apache.kafka.common.record.{RecordBatch,FileLogInputStream}, 4.0.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import attrs

from broker.errors import CorruptDataError
from broker.ids import INT32_MAX, LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import SizeBytes, TimeMs
from log.batches.allowance import ReadingAllowance
from log.codecs.compression import Codec, codec_of
from log.errors import CorruptBatchError, DecompressionError
from log.record import Record, TimestampType, int64

if TYPE_CHECKING:
    from log.batches.record_columns import RecordColumns

NO_PRODUCER_ID: Final = ProducerId(-1)
NO_PRODUCER_EPOCH: Final = ProducerEpoch(-1)
NO_LEADER_EPOCH: Final = LeaderEpoch(-1)


CONTROL_COST: Final = 1024
"""What a control record costs of a `ReadingAllowance`: a batch of them decompresses to 64 KiB at most."""
SLICE_ROWS: Final = 1024
"""Records of a slice: enough to forget what a slice costs."""


@attrs.frozen
class RecordSlice:
    """Hold consecutive records of a batch, and for each row with headers left out how many those are."""

    records: tuple[Record, ...]
    hidden_headers: Mapping[int, int] = attrs.field(factory=dict)
    messages: tuple[bytes, ...] = ()
    """The bytes of each record before magic 2, its own checksum included."""


class RecordBatch(abc.ABC):
    """Define the interface of a batch: magic 2, or a message of magic 0 or 1, plain or a compressed wrapper.

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
        """Return the magic: 0, 1 or 2; the file reader also accepts larger ones."""

    @property
    @abc.abstractmethod
    def attributes(self) -> int:
        """Return the attributes as stored: 16 bits, signed, in magic 2; 8 bits, signed, in magic 0 and 1."""

    @property
    @abc.abstractmethod
    def crc(self) -> int:
        """Return the checksum as stored, unsigned."""

    @property
    @abc.abstractmethod
    def base_offset(self) -> Offset:
        """Return the first offset; a wrapper of magic 0 or 1 is decompressed to find it, which may raise."""

    @property
    @abc.abstractmethod
    def last_offset(self) -> Offset:
        """Return the last offset that the batch covers, even if the cleaner removed that record."""

    @property
    @abc.abstractmethod
    def timestamp_type(self) -> TimestampType:
        """Return the timestamp type: CreateTime or LogAppendTime."""

    @property
    @abc.abstractmethod
    def base_timestamp(self) -> TimeMs:
        """Return the base of the timestamp deltas (the delete horizon if one is set); -1 before magic 2."""

    @property
    @abc.abstractmethod
    def max_timestamp(self) -> TimeMs:
        """Return the largest record timestamp at writing, or the append time, in milliseconds; -1 for none."""

    @property
    @abc.abstractmethod
    def last_offset_delta(self) -> int:
        """Return `last_offset` minus `base_offset`."""

    @property
    @abc.abstractmethod
    def producer_id(self) -> ProducerId:
        """Return the id of the producer that wrote the batch, -1 without an id."""

    @property
    @abc.abstractmethod
    def producer_epoch(self) -> ProducerEpoch:
        """Return the producer's epoch, -1 without one."""

    @property
    @abc.abstractmethod
    def base_sequence(self) -> int:
        """Return the sequence number of the first record, -1 without one."""

    @property
    @abc.abstractmethod
    def last_sequence(self) -> int:
        """Return the sequence number of the last record, wrapped from 2147483647 to 0; -1 without one."""

    @property
    @abc.abstractmethod
    def partition_leader_epoch(self) -> LeaderEpoch:
        """Return the epoch of the leader that appended the batch, -1 for none."""

    @property
    @abc.abstractmethod
    def record_count(self) -> int:
        """Return the header's record count; before magic 2 count a wrapper's messages, which may raise."""

    @property
    @abc.abstractmethod
    def is_transactional(self) -> bool:
        """Return whether the batch is part of a transaction."""

    @property
    @abc.abstractmethod
    def is_control(self) -> bool:
        """Return whether the batch holds control records: markers, leader changes, snapshot headers and footers."""

    @property
    @abc.abstractmethod
    def delete_horizon_ms(self) -> TimeMs | None:
        """Return when the cleaner may remove tombstones and markers, in milliseconds; None until the cleaner set it."""

    @property
    def size_bytes(self) -> SizeBytes:
        """Return the size of the batch in the log, in bytes."""
        return SizeBytes(len(self.data))

    @property
    def end_position(self) -> int:
        """Return the byte position at which the next batch begins in the file."""
        return self.position + len(self.data)

    @property
    def next_offset(self) -> Offset:
        """Return the offset after `last_offset`; Long.MAX_VALUE wraps to Long.MIN_VALUE, as in Java."""
        return Offset(int64(self.last_offset + 1))

    @property
    def has_producer_id(self) -> bool:
        """Return whether a producer with an id wrote the batch."""
        return self.producer_id > NO_PRODUCER_ID

    @property
    def codec(self) -> Codec:
        """Return the compression codec of the records; raise UnknownCodecError."""
        try:
            return codec_of(self.attributes)
        except CorruptDataError as error:
            raise self.placed(error) from None

    def corrupt(self, what: str) -> CorruptBatchError:
        """Return a CorruptBatchError with the message `what`, and the batch's source and position."""
        return CorruptBatchError(what, source=self.source, position=self.position)

    def placed(self, error: CorruptDataError) -> CorruptDataError:
        """Return a copy of an error found inside this batch, with the batch's source and position added."""
        placed = type(error)(error.what, source=self.source, position=self.position)
        if isinstance(error, DecompressionError) and isinstance(placed, DecompressionError):
            placed.reached_bytes = error.reached_bytes
        return placed

    @abc.abstractmethod
    def is_valid(self) -> bool:
        """Return whether the size can hold a batch and the checksum is right."""

    @abc.abstractmethod
    def ensure_valid(self) -> None:
        """Raise CorruptBatchError unless `is_valid`."""

    def records(self) -> tuple[Record, ...]:
        """Return the decompressed records without verifying the checksum; raise a CorruptDataError for damage."""
        return tuple(self.each_record())

    def each_record(self, allowance: ReadingAllowance | None = None) -> Iterator[Record]:
        """Yield the records as `records` returns them, of which only a slice is held at a time."""
        return itertools.chain.from_iterable(found.records for found in self.record_slices(allowance=allowance))

    def first_record(self) -> Record | None:
        """Return the first record of a control batch, which has few and small ones; None without records."""
        return next(self.each_record(ReadingAllowance(self.size_bytes, CONTROL_COST)), None)

    @abc.abstractmethod
    def record_slices(
        self, *, headers_max: int = INT32_MAX, allowance: ReadingAllowance | None = None
    ) -> Iterator[RecordSlice]:
        """Yield the records as `records` returns them, some at a time, each with its first `headers_max` headers.

        Raises a CorruptDataError for damage, after the records before it where the batch is not compressed, and for
        what is beyond the `allowance`.
        """

    @abc.abstractmethod
    def columns(self) -> RecordColumns:
        """Return the records as columns without verifying the checksum; raise a CorruptDataError for damage."""
