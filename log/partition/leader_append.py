"""Assign offsets, leader epoch and timestamps to the records that a leader accepts.

What it decides: for each record set from a client or a coordinator which bytes enter the log. Whether they may enter is
decided by `log.partition.leader_rules`.

Goals, most important first:
1. What a leader stores, every follower and consumer can read: one magic, one codec, consecutive offsets.
2. The producer's bytes are kept where possible: offsets, leader epoch and times are written into the headers, and
   records are only rewritten when codec or magic change or their offsets are not consecutive.
3. A refused set changes nothing.

Constraints: a control batch, which only a coordinator sends, is never recompressed.

How: `assigned` picks one of three ways, as Kafka does: stamp uncompressed batches, stamp a compressed one, or build
one batch anew.

Example: log end 40, a batch of 3 records: it becomes 40..42, and 43 is next.

Left out: metrics; the brokers of old whose protocol version forbade zstd.

Source: org.apache.kafka.storage.internals.log.LogValidator and org.apache.kafka.common.record.MemoryRecordsBuilder,
trunk 1eb7644 (2024-10); KIP-32 for LogAppendTime.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from broker.ids import Offset
from broker.units import TimeMs
from log.batches.batch import RecordBatch
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.batches.in_buffer import BatchReader, batches_in
from log.batches.stamping import Stamp, stamped
from log.codecs.compression import Codec
from log.log_config import PRODUCER_COMPRESSION, LogConfig
from log.partition.leader_rules import LeaderAppend, checked_timestamps, only_batch
from log.partition.record_set import RecordSet
from log.record import NO_TIMESTAMP, Record, TimestampOffset
from log.storage.protocol import Buffer

# Named once, as in `log.batches.in_buffer`.
_MEMORY: Final = BatchReader.MEMORY
_NO_CODEC: Final = Codec.NONE


def assigned(records: RecordSet, append: LeaderAppend) -> RecordSet:
    """Return `records` with the leader's offsets, epoch and timestamps; batches may be rebuilt.

    Raises InvalidAppendError, RecordValidationError and UnsupportedForMessageFormatError.
    """
    magic = append.config.magic
    target = append.target_codec(records.codec)
    if records.codec is _NO_CODEC and target is _NO_CODEC:
        if all(batch.magic == magic for batch in records.batches):
            return _stamped_plain(records, append)
        return _rebuilt(records, _checked_records(records, append), Codec.NONE, append)
    first = only_batch(records)
    if len(records.batches) > 1:
        # Plain messages of the old formats, which have a batch each, become one batch.
        return _rebuilt(records, _checked_records(records, append), target, append)
    timestamps = checked_timestamps(first, first, append)
    in_place = records.codec is target and first.magic == magic and magic > 0
    if records.codec is Codec.NONE and first.is_control:
        in_place = True
    if in_place and _has_consecutive_offsets(first):
        return _stamped_compressed(records, timestamps, append)
    return _rebuilt(records, first.records(), target, append)


def _stamped_plain(records: RecordSet, append: LeaderAppend) -> RecordSet:
    """Write offsets, epoch and times into the headers of uncompressed batches."""
    first = only_batch(records)
    stamps = append.config.stamps_log_append_time
    next_offset = int(append.next_offset)
    largest, offset_of_largest = NO_TIMESTAMP, -1
    parts: list[RecordBatch] = []
    for batch in records.batches:
        timestamps = checked_timestamps(first, batch, append)
        next_offset += len(timestamps)
        batch_largest = max(timestamps, default=NO_TIMESTAMP)
        if batch_largest > largest:
            largest, offset_of_largest = TimeMs(batch_largest), next_offset - 1
        parts.append(_stamped(batch, append.stamp(next_offset - 1, batch_largest), append))
    if stamps:
        largest, offset_of_largest = append.now_ms, next_offset - 1
        if append.config.magic == 1:
            offset_of_largest = append.next_offset
        elif append.config.magic == 0:
            largest, offset_of_largest = NO_TIMESTAMP, -1
    max_timestamp = TimestampOffset(largest, offset_of_largest)
    if len(parts) == 1:
        return _of_one(records, parts[0], append, next_offset - 1, max_timestamp)
    return _record_set(records, b"".join(part.data for part in parts), append, next_offset - 1, max_timestamp)


def _stamped_compressed(records: RecordSet, timestamps: Sequence[int], append: LeaderAppend) -> RecordSet:
    """Write offsets, epoch and times into the header of a compressed batch."""
    stamps = append.config.stamps_log_append_time
    last_offset = append.next_offset + len(timestamps) - 1
    largest = max(timestamps, default=NO_TIMESTAMP)
    batch = _stamped(records.batches[0], append.stamp(last_offset, largest), append)
    return _of_one(
        records, batch, append, last_offset, TimestampOffset(append.now_ms if stamps else largest, last_offset)
    )


def _rebuilt(records: RecordSet, kept: Sequence[Record], codec: Codec, append: LeaderAppend) -> RecordSet:
    """Write records anew as one batch, with consecutive offsets."""
    first, config = records.batches[0], append.config
    spec = BatchSpec(
        base_offset=append.next_offset,
        magic=config.magic,
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
    last_offset = append.next_offset + len(moved) - 1
    return _record_set(
        records, build_batch(spec, moved), append, last_offset, _rebuilt_timestamp(moved, codec, last_offset, append)
    )


def _rebuilt_timestamp(
    records: Sequence[Record], codec: Codec, last_offset: int, append: LeaderAppend
) -> TimestampOffset:
    """Return the largest timestamp of records written anew; plain old messages have a batch each."""
    is_one_batch = codec is not Codec.NONE or append.config.magic >= 2
    if append.config.stamps_log_append_time:
        return TimestampOffset(append.now_ms, last_offset if is_one_batch else append.next_offset)
    # max() keeps the first of equals, as the builder does.
    newest = max(records, key=lambda record: record.timestamp)
    if newest.timestamp == NO_TIMESTAMP or append.config.magic == 0:
        return TimestampOffset(NO_TIMESTAMP, -1)
    return TimestampOffset(newest.timestamp, last_offset if is_one_batch else newest.offset)


def _stamped(batch: RecordBatch, stamp: Stamp, append: LeaderAppend) -> RecordBatch:
    return type(batch)(memoryview(stamped(batch, stamp)), 0, append.where)


def _of_one(
    records: RecordSet, batch: RecordBatch, append: LeaderAppend, last_offset: int, max_timestamp: TimestampOffset
) -> RecordSet:
    return RecordSet(batch.data, (batch,), append.next_offset, Offset(last_offset), max_timestamp, records.codec)


def _record_set(
    records: RecordSet, data: Buffer, append: LeaderAppend, last_offset: int, max_timestamp: TimestampOffset
) -> RecordSet:
    batches = tuple(batches_in(data, reader=_MEMORY, source=append.where))
    assert batches, "a leader appends whole batches"
    return RecordSet(data, batches, append.next_offset, Offset(last_offset), max_timestamp, records.codec)


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
