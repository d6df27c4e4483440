"""Define BatchSpec, the header fields that a writer chooses, and refuse those that Kafka refuses.

Source: org.apache.kafka.common.record.MemoryRecordsBuilder, 4.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.errors import UsageError
from broker.ids import INT32_MAX, INT64_MAX, LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from broker.values import value
from log.batches.batch import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, RecordBatch
from log.codecs.compression import Codec
from log.record import NO_SEQUENCE, NO_TIMESTAMP, Record, TimestampType

FIRST_OFFSET: Final = Offset(0)
_NO_TIMESTAMP_TYPE: Final = TimestampType.NO_TIMESTAMP_TYPE  # Named once, as in `log.batches.in_buffer`.
_HALVES: Final = (
    *((name, 2**63) for name in ("base_offset", "log_append_time", "producer_id", "delete_horizon_ms", "last_offset")),
    *((name, 2**31) for name in ("base_sequence", "partition_leader_epoch")),
    ("producer_epoch", 2**15),
)
"""The numbers of a header, and half the count of values that each one's field can hold."""
_LEVELS: Final = {Codec.GZIP: (-1, 9), Codec.ZSTD: (-131_072, 22)}
"""The lowest and highest compression level, on the codec's own scale."""


@value
class BatchSpec:
    """Hold the header fields of a batch to be built; -1 stands for an absent number."""

    base_offset: Offset = FIRST_OFFSET
    magic: int = 2
    codec: Codec = Codec.NONE
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    log_append_time: TimeMs = NO_TIMESTAMP
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    is_control: bool = False
    partition_leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
    delete_horizon_ms: TimeMs | None = None
    last_offset: Offset | None = None
    """Where the batch ends, if beyond its last record."""
    compression_level: int | None = None
    """Of gzip or zstd, on their own scale; None is Kafka's default."""


def spec_of(batch: RecordBatch) -> BatchSpec:
    """Return the BatchSpec that builds a batch like `batch`; may raise CorruptDataError for a damaged wrapper."""
    is_append_time = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    return BatchSpec(
        base_offset=batch.base_offset,
        magic=batch.magic,
        codec=batch.codec,
        timestamp_type=batch.timestamp_type,
        log_append_time=batch.max_timestamp if is_append_time else NO_TIMESTAMP,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        partition_leader_epoch=batch.partition_leader_epoch,
        delete_horizon_ms=batch.delete_horizon_ms,
        last_offset=batch.last_offset,
    )


def check_spec(spec: BatchSpec) -> None:
    """Raise UsageError for header fields that exclude each other."""
    if spec.magic not in (0, 1, 2):
        raise UsageError(f"magic is {spec.magic}; 0, 1 and 2 are known")
    for name, half in _HALVES:
        number = getattr(spec, name)
        if number is not None and not -half <= number < half:
            raise UsageError(f"{name} is {number}; allowed are {-half} to {half - 1}")
    low, high = _LEVELS.get(spec.codec, (-INT32_MAX - 1, INT32_MAX))
    if spec.compression_level is not None and not low <= spec.compression_level <= high:
        raise UsageError(f"compression_level is {spec.compression_level}; {spec.codec.label} has {low} to {high}")
    if spec.magic > 0 and spec.timestamp_type is _NO_TIMESTAMP_TYPE:
        raise UsageError(f"magic {spec.magic} needs a timestamp type")
    if spec.magic < 2:
        _check_legacy(spec)
    if spec.is_transactional and spec.producer_id == NO_PRODUCER_ID:
        raise UsageError("Cannot write transactional messages without a valid producer ID")
    if spec.producer_id != NO_PRODUCER_ID:
        if spec.producer_epoch == NO_PRODUCER_EPOCH:
            raise UsageError("Invalid negative producer epoch")
        if spec.base_sequence < 0 and not spec.is_control:
            raise UsageError("Invalid negative sequence number used")


def _check_legacy(spec: BatchSpec) -> None:
    absent = {
        "Transactional records are": spec.is_transactional,
        "Control records are": spec.is_control,
        "ZStandard compression is": spec.codec is Codec.ZSTD,
        "Delete horizon timestamp is": spec.delete_horizon_ms is not None,
        "Idempotent messages are": spec.producer_id != NO_PRODUCER_ID,
    }
    for name, is_asked in absent.items():
        if is_asked:
            raise UsageError(f"{name} not supported for magic {spec.magic}")


def check_records(spec: BatchSpec, records: Sequence[Record]) -> None:
    """Raise UsageError for records that no batch can hold."""
    if not records:
        raise UsageError("a batch needs a record; an empty one is what the cleaner leaves of another (`emptied`)")
    previous = spec.base_offset - 1
    for record in records:
        if record.offset <= previous:
            raise UsageError(
                f"Illegal offset {record.offset} following previous offset {previous} "
                "(Offsets must increase monotonically)."
            )
        previous = record.offset
        if not NO_TIMESTAMP <= record.timestamp <= INT64_MAX:
            is_negative = record.timestamp < NO_TIMESTAMP
            raise UsageError(f"Invalid {'negative ' if is_negative else ''}timestamp {record.timestamp}")
        if record.headers and spec.magic < 2:
            raise UsageError(f"Magic v{spec.magic} does not support record headers")
    last = previous if spec.last_offset is None else spec.last_offset
    if not previous <= last <= spec.base_offset + INT32_MAX:
        raise UsageError(
            f"Maximum offset delta exceeded, base offset: {spec.base_offset}, last record: {previous}, "
            f"last offset: {last}"
        )
