"""Assign offsets, leader epoch and timestamps to the records that a leader accepts.

Source: org.apache.kafka.storage.internals.log.LogValidator and org.apache.kafka.common.record.MemoryRecordsBuilder,
4.3.1; KIP-32 for LogAppendTime.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import attrs

from broker.ids import LeaderEpoch, Offset
from broker.units import TimeMs
from broker.values import value
from log.batches.batch import RecordBatch
from log.batches.build import BatchSpec, build_batch
from log.batches.in_buffer import BatchReader, batches_in
from log.codecs.compression import Codec
from log.codecs.crc import crc32c
from log.errors import InvalidAppendError, RecordValidationError
from log.log_config import PRODUCER_COMPRESSION, LogConfig
from log.partition.producer_append import AppendOrigin
from log.partition.record_set import RecordSet
from log.record import NO_TIMESTAMP, TIMESTAMP_TYPE_BIT, Record, TimestampOffset, TimestampType, int64

_OFFSET: Final = struct.Struct(">q")
_EPOCH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_OFFSET_AT: Final = 0

_LOG_APPEND_TIME: Final = TimestampType.LOG_APPEND_TIME

_EPOCH_AT: Final = 12
_CRC_AT: Final = 17
_ATTRIBUTES_AT: Final = 21  # Two bytes; the bits of interest are in the second.
_MAX_TIMESTAMP_AT: Final = 35
_MAGIC: Final = 2
"""The magic of every batch written; messages of magic 0 and 1 are converted to it."""


@value
class Stamp:
    """Hold the fields that a leader writes into the header of a batch."""

    last_offset: Offset
    leader_epoch: LeaderEpoch
    timestamp_type: TimestampType
    max_timestamp: TimeMs


def stamped(batch: RecordBatch, stamp: Stamp) -> bytearray:
    """Return the bytes of a batch of magic 2 with the fields of `stamp` in its header."""
    data = bytearray(batch.data)
    _OFFSET.pack_into(data, _OFFSET_AT, stamp.last_offset - batch.last_offset_delta)
    _EPOCH.pack_into(data, _EPOCH_AT, stamp.leader_epoch)
    if stamp.timestamp_type is not batch.timestamp_type or stamp.max_timestamp != batch.max_timestamp:
        _set_type(data, _ATTRIBUTES_AT + 1, stamp.timestamp_type)
        _OFFSET.pack_into(data, _MAX_TIMESTAMP_AT, stamp.max_timestamp)
        _CRC.pack_into(data, _CRC_AT, crc32c(memoryview(data)[_ATTRIBUTES_AT:]))
    return data


def _set_type(data: bytearray, position: int, timestamp_type: TimestampType) -> None:
    if timestamp_type is _LOG_APPEND_TIME:
        data[position] |= TIMESTAMP_TYPE_BIT
    else:
        data[position] &= ~TIMESTAMP_TYPE_BIT & 0xFF


COLUMNS_FROM_COUNT: Final = 16
"""From so many records on a batch is read as columns; below, starting that costs more than it saves."""
# Named once, as in `log.batches.in_buffer`.
_CLIENT: Final = AppendOrigin.CLIENT
_CREATE_TIME: Final = TimestampType.CREATE_TIME


@value(kw_only=True)
class LeaderAppend:
    """Hold the leader's part in one append: log settings, first offset, leader epoch and time."""

    config: LogConfig
    origin: AppendOrigin
    next_offset: Offset
    leader_epoch: LeaderEpoch
    now_ms: TimeMs
    where: str

    @property
    def timestamp_type(self) -> TimestampType:
        """Return the timestamp type of the log, CreateTime or LogAppendTime."""
        return _LOG_APPEND_TIME if self.config.stamps_log_append_time else _CREATE_TIME

    def stamp(self, last_offset: int, largest_timestamp: int) -> Stamp:
        """Return the header fields to write into a batch with this last offset and largest timestamp."""
        if self.config.stamps_log_append_time:
            return Stamp(Offset(last_offset), self.leader_epoch, _LOG_APPEND_TIME, self.now_ms)
        return Stamp(Offset(last_offset), self.leader_epoch, _CREATE_TIME, TimeMs(largest_timestamp))

    def target_codec(self, source: Codec) -> Codec:
        """Return the codec in which records compressed with `source` are stored."""
        name = self.config.compression_type
        if name == PRODUCER_COMPRESSION:
            return source
        return Codec.NONE if name == "uncompressed" else Codec[name.upper()]


def only_batch(records: RecordSet) -> RecordBatch:
    """Return the first batch; raise InvalidAppendError for more batches, unless they are plain messages."""
    first = records.batches[0]
    if len(records.batches) > 1 and (first.magic >= 2 or records.codec is not Codec.NONE):
        raise InvalidAppendError(f"a record set of magic {first.magic} has more than one batch")
    return first


def checked_timestamps(first: RecordBatch, batch: RecordBatch, append: LeaderAppend) -> Sequence[int]:
    """Return the timestamps of all records of a valid batch; `first` is the first batch of its set.

    Raises InvalidAppendError, and RecordValidationError for single records.
    """
    _check_batch(first, batch, append)
    compacts, keyless = append.config.compacts, []
    if batch.record_count >= COLUMNS_FROM_COUNT:
        columns = batch.columns()
        timestamps: Sequence[int] = columns.timestamp.tolist()
        if compacts:
            keyless = (columns.key_size < 0).nonzero()[0].tolist()
    else:
        records = batch.records()
        timestamps = [record.timestamp for record in records]
        if compacts:
            keyless = [index for index, record in enumerate(records) if record.key is None]
    if keyless:
        raise RecordValidationError(
            f"a compacted log takes no record without a key: record {keyless[0]} of a batch to {append.where}",
            record_indexes=tuple(keyless),
            has_invalid_timestamp=False,
        )
    _check_timestamps(batch, timestamps, append)
    return timestamps


def _check_batch(first: RecordBatch, batch: RecordBatch, append: LeaderAppend) -> None:
    """Raise if the header of a batch says what a leader does not take."""
    if batch.magic != first.magic:
        raise InvalidAppendError(f"batch of magic {batch.magic} after one of magic {first.magic} in {append.where}")
    if append.origin is _CLIENT:
        _check_client_batch(batch, append.where)


def _check_client_batch(batch: RecordBatch, where: str) -> None:
    """Raise if a client's batch counts wrongly, is a control batch, or has a producer id without a sequence."""
    if batch.magic >= 2:
        count_by_offsets = batch.last_offset - batch.base_offset + 1
        if count_by_offsets <= 0 or batch.record_count != count_by_offsets:
            raise InvalidAppendError(
                f"a batch of {batch.record_count} records has offsets {batch.base_offset} to {batch.last_offset} "
                f"in {where}"
            )
    if batch.is_control:
        raise InvalidAppendError(f"clients are not allowed to write control records in {where}")
    if batch.has_producer_id and batch.base_sequence < 0:
        raise InvalidAppendError(
            f"a batch of producer id {batch.producer_id} has the sequence {batch.base_sequence} in {where}"
        )


def _check_timestamps(batch: RecordBatch, timestamps: Sequence[int], append: LeaderAppend) -> None:
    """Raise RecordValidationError for times out of range, or set by a producer as if it were the broker."""
    config = append.config
    stamps, is_late_type = config.stamps_log_append_time, batch.timestamp_type is _LOG_APPEND_TIME
    low, high = append.now_ms - config.timestamp_before_max_ms, append.now_ms + config.timestamp_after_max_ms
    if not is_late_type and (stamps or not timestamps or (low <= min(timestamps) and max(timestamps) <= high)):
        return
    wrong = tuple(
        index
        for index, timestamp in enumerate(timestamps)
        if (is_late_type if stamps or timestamp == NO_TIMESTAMP else _is_out_of_range(timestamp, append))
    )
    if wrong:
        raise RecordValidationError(
            f"record {wrong[0]} of a batch to {append.where} has the timestamp {timestamps[wrong[0]]} of type "
            f"{batch.timestamp_type.value}; allowed are {config.timestamp_type} from {low} to {high}",
            record_indexes=wrong,
            has_invalid_timestamp=True,
        )


def _is_out_of_range(timestamp: int, append: LeaderAppend) -> bool:
    """Return whether a record's time is too far from the leader's clock; the difference wraps as Java's long."""
    late_ms = int64(append.now_ms - timestamp)
    config = append.config
    return late_ms > config.timestamp_before_max_ms or int64(-late_ms) > config.timestamp_after_max_ms


# Named once, as in `log.batches.in_buffer`.
_MEMORY: Final = BatchReader.MEMORY
_NO_CODEC: Final = Codec.NONE


def assigned(records: RecordSet, append: LeaderAppend) -> RecordSet:
    """Return `records` with the leader's offsets, epoch and timestamps; batches may be rebuilt.

    Raises InvalidAppendError and RecordValidationError.
    """
    target = append.target_codec(records.codec)
    if records.codec is _NO_CODEC and target is _NO_CODEC:
        if all(batch.magic == _MAGIC for batch in records.batches):
            first = only_batch(records)
            return _stamped_only(records, checked_timestamps(first, first, append), append)
        return _rebuilt(records, _checked_records(records, append), Codec.NONE, append)
    first = only_batch(records)
    if len(records.batches) > 1:
        # Plain messages of the old formats, which have a batch each, become one batch.
        return _rebuilt(records, _checked_records(records, append), target, append)
    timestamps = checked_timestamps(first, first, append)
    in_place = records.codec is target and first.magic == _MAGIC
    if records.codec is Codec.NONE and first.is_control:
        in_place = True
    if in_place and _has_consecutive_offsets(first):
        return _stamped_only(records, timestamps, append)
    return _rebuilt(records, first.records(), target, append)


def _stamped_only(records: RecordSet, timestamps: Sequence[int], append: LeaderAppend) -> RecordSet:
    """Write offsets, epoch and times into the header of the only batch."""
    last_offset = append.next_offset + len(timestamps) - 1
    largest = max(timestamps, default=NO_TIMESTAMP)
    stamp = append.stamp(last_offset, largest)
    batch = type(records.batches[0])(memoryview(stamped(records.batches[0], stamp)), 0, append.where)
    if append.config.stamps_log_append_time:
        largest = append.now_ms
    # Of a plain batch without a time there is no largest one, of a compressed one it is the last record's.
    offset_of_largest = -1 if records.codec is _NO_CODEC and largest == NO_TIMESTAMP else last_offset
    max_timestamp = TimestampOffset(TimeMs(largest), Offset(offset_of_largest))
    return RecordSet(batch.data, (batch,), append.next_offset, Offset(last_offset), max_timestamp, records.codec)


def _rebuilt(records: RecordSet, kept: Sequence[Record], codec: Codec, append: LeaderAppend) -> RecordSet:
    """Write records anew as one batch, with consecutive offsets."""
    first, config = records.batches[0], append.config
    spec = BatchSpec(
        base_offset=append.next_offset,
        codec=codec,
        timestamp_type=append.timestamp_type,
        log_append_time=append.now_ms if config.stamps_log_append_time else NO_TIMESTAMP,
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        base_sequence=first.base_sequence,
        is_transactional=first.is_transactional,
        partition_leader_epoch=append.leader_epoch,
        compression_level=_level(config, codec),
    )
    moved = [attrs.evolve(record, offset=Offset(append.next_offset + index)) for index, record in enumerate(kept)]
    last_offset = Offset(append.next_offset + len(moved) - 1)
    largest = append.now_ms if config.stamps_log_append_time else max(record.timestamp for record in moved)
    max_timestamp = TimestampOffset(largest, Offset(-1) if largest == NO_TIMESTAMP else last_offset)
    data = build_batch(spec, moved)
    batches = tuple(batches_in(data, reader=_MEMORY, source=append.where))
    return RecordSet(data, batches, append.next_offset, last_offset, max_timestamp, records.codec)


def _checked_records(records: RecordSet, append: LeaderAppend) -> list[Record]:
    """Return all records of a set, each batch checked."""
    first = only_batch(records)
    checked: list[Record] = []
    for batch in records.batches:
        checked_timestamps(first, batch, append)
        checked.extend(batch.records())
    return checked


def _level(config: LogConfig, codec: Codec) -> int | None:
    """Return the level at which the log compresses; None is the codec's default."""
    if config.compression_type == PRODUCER_COMPRESSION:
        return None
    return {Codec.GZIP: config.gzip_level, Codec.LZ4: config.lz4_level, Codec.ZSTD: config.zstd_level}.get(codec)


def _has_consecutive_offsets(batch: RecordBatch) -> bool:
    """Return whether the records of a compressed batch have the relative offsets 0, 1, 2 and so on."""
    return all(record.offset == index for index, record in enumerate(batch.records()))
