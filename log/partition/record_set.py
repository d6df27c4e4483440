"""Check a record set before it is appended, and read its offsets, largest timestamp and codec.

Source: kafka.log.UnifiedLog.analyzeAndValidateRecords, 4.3.1.
"""

from __future__ import annotations

from typing import Final

from broker.ids import LeaderEpoch, Offset
from broker.units import SizeBytes
from broker.values import value
from log.batches.batch import RecordBatch
from log.batches.in_buffer import BatchReader, batches_in
from log.codecs.compression import CODEC_MASK, Codec, codec_of
from log.errors import CorruptBatchError, InvalidAppendError, OffsetsOutOfOrderError, RecordTooLargeError
from log.partition.producer_append import AppendOrigin
from log.record import NO_TIMESTAMP, TimestampOffset
from log.storage.protocol import Buffer

# Named once, as in `log.batches.in_buffer`.
_CLIENT: Final = AppendOrigin.CLIENT
_RAFT_LEADER: Final = AppendOrigin.RAFT_LEADER
_REPLICATION: Final = AppendOrigin.REPLICATION
_MEMORY: Final = BatchReader.MEMORY


@value
class RecordSet:
    """Hold whole batches, one after the other, and their offsets, largest timestamp and codec.

    `first_offset` is None if unknown: in magic 0 and 1, until the leader has assigned offsets. `max_timestamp` is the
    largest timestamp, with the last offset of the first batch that has it; (-1, -1) without timestamps.
    """

    data: Buffer
    batches: tuple[RecordBatch, ...]
    first_offset: Offset | None
    last_offset: Offset
    max_timestamp: TimestampOffset
    codec: Codec

    @property
    def size_bytes(self) -> SizeBytes:
        """Return the size of all batches in bytes."""
        return SizeBytes(len(self.data))

    @property
    def first_known_offset(self) -> Offset:
        """Return the first offset, or if that is unknown the last offset of the first batch."""
        return self.batches[0].last_offset if self.first_offset is None else self.first_offset


@value(kw_only=True)
class AppendLimits:
    """Set limits on a record set: origin, largest batch in bytes (None: any), epoch of a Raft leader."""

    origin: AppendOrigin
    batch_size_bytes_max: SizeBytes | None
    leader_epoch: LeaderEpoch
    where: str


def read_record_set(data: Buffer, limits: AppendLimits) -> RecordSet | None:
    """Return the whole batches at the beginning of `data`, None if there is none.

    Raises CorruptBatchError, InvalidAppendError, RecordTooLargeError and, unless offsets are yet to be given,
    OffsetsOutOfOrderError.
    """
    batches: list[RecordBatch] = []
    last_offset, largest, offset_of_largest = -1, NO_TIMESTAMP, -1
    is_ascending, codec_bits = True, 0
    for batch in batches_in(data, reader=_MEMORY, source=limits.where):
        _check_batch(batch, limits)
        if last_offset >= batch.last_offset:
            is_ascending = False
        last_offset = batch.last_offset
        if batch.max_timestamp > largest:
            largest, offset_of_largest = batch.max_timestamp, last_offset
        codec_bits = batch.attributes & CODEC_MASK or codec_bits
        batches.append(batch)
    if not batches:
        return None
    if not is_ascending and limits.origin in (_REPLICATION, _RAFT_LEADER):
        raise OffsetsOutOfOrderError(f"{limits.where}: offsets of the batches to append do not grow")
    return RecordSet(
        memoryview(data)[: batches[-1].end_position],
        tuple(batches),
        batches[0].base_offset if batches[0].magic >= 2 else None,
        Offset(last_offset),
        TimestampOffset(largest, offset_of_largest),
        codec_of(codec_bits),
    )


def _check_batch(batch: RecordBatch, limits: AppendLimits) -> None:
    """Raise if a batch may not be appended, in the order in which Kafka asks."""
    origin = limits.origin
    if origin is _RAFT_LEADER and batch.partition_leader_epoch != limits.leader_epoch:
        raise InvalidAppendError(
            f"{limits.where}: a Raft leader of epoch {limits.leader_epoch} appends a batch of epoch "
            f"{batch.partition_leader_epoch}"
        )
    if origin is _CLIENT and batch.magic >= 2 and batch.base_offset != 0:
        raise InvalidAppendError(
            f"{limits.where}: a client's batch has base offset {batch.base_offset}; it must be 0, "
            "as the leader gives it"
        )
    if limits.batch_size_bytes_max is not None and batch.size_bytes > limits.batch_size_bytes_max:
        raise too_large(batch.size_bytes, limits.batch_size_bytes_max, limits.where)
    if not batch.is_valid():
        raise CorruptBatchError(
            f"batch of offset {batch.base_offset} is damaged: its stored checksum is {batch.crc}",
            source=limits.where,
            position=batch.position,
        )


def too_large(size_bytes: int, size_bytes_max: int, where: str) -> RecordTooLargeError:
    """Return the RecordTooLargeError of a batch above max.message.bytes."""
    return RecordTooLargeError(
        f"{where}: a batch of {size_bytes} bytes is larger than max.message.bytes, {size_bytes_max}"
    )
