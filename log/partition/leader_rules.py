"""Decide which records a leader accepts into its log.

What it decides: for each batch of a set, before anything is written, whether the whole batch may be appended, given
the log's settings and the origin of the append.

Constraints:
- Batches of magic 2, and compressed ones of any magic, come alone in a set; all batches of a set have one magic.
- A client's batch has a right record count, is no control batch, and has a sequence if it has a producer id.
- A compacted topic takes no record without a key. With CreateTime a record's time lies within
  [now - message.timestamp.before.max.ms, now + message.timestamp.after.max.ms]; no time at all (-1) is allowed.
- With LogAppendTime the broker's clock is the time of every record; a producer may never have set that type.

How: records are read as columns when a batch is large, else one by one. The checks return
their timestamps, which the leader needs next.

Example: at 1,000,000 ms with an after.max of 1,000 ms a record of 1,001,001 ms is refused; the error
names its place in the batch.

Source: org.apache.kafka.storage.internals.log.LogValidator, trunk 1eb7644 (2024-10); KIP-937 for the two limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.ids import LeaderEpoch, Offset
from broker.units import TimeMs
from broker.values import value
from log.batches.batch import RecordBatch
from log.batches.stamping import Stamp
from log.codecs.compression import Codec
from log.errors import InvalidAppendError, RecordValidationError, UnsupportedForMessageFormatError
from log.log_config import PRODUCER_COMPRESSION, LogConfig
from log.partition.record_set import RecordSet
from log.producers.append import AppendOrigin
from log.record import NO_TIMESTAMP, TimestampType, int64

COLUMNS_FROM_COUNT: Final = 16
"""From so many records on a batch is read as columns; below, starting that costs more than it saves."""
# Named once, as in `log.batches.in_buffer`.
_CLIENT: Final = AppendOrigin.CLIENT
_CREATE_TIME: Final = TimestampType.CREATE_TIME
_LOG_APPEND_TIME: Final = TimestampType.LOG_APPEND_TIME


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

    Raises InvalidAppendError, UnsupportedForMessageFormatError, and RecordValidationError for single records.
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
    if append.config.magic < 2 and (batch.is_transactional or batch.has_producer_id):
        raise UnsupportedForMessageFormatError(
            f"records of producer ids or transactions need magic 2; {append.where} has magic {append.config.magic}"
        )


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
