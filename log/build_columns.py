"""Columns of keys and values to batches of magic 2: many records at once.

What it decides: the same bytes as `log.build.build_batch`, made for whole columns: for whoever has records as arrays,
such as a job that writes segment files.

Constraints: all batches share the spec; the offsets of all records follow one another; records have no headers.

How: one pass computes sizes and so where each batch goes. Then a few batches at a time are encoded into one buffer,
headers first, and each is compressed and checksummed as it is asked for. The buffer is kept small and used again and
again: memory that is new costs more to touch than the records do to encode.

Example: 250 records by 100 make batches of 100, 100 and 50.

Source: ours; the format is Kafka's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int64Array
from broker.errors import UsageError
from broker.ids import INT32_MAX, Offset
from broker.units import KIB, TimeMs
from broker.values import value
from log.batch_v2 import (
    CHECKED_POSITION,
    CRC_POSITION,
    HEADER,
    HEADER_FIELDS,
    LENGTH_BYTES,
)
from log.build import attributes_of
from log.build_spec import BatchSpec, check_spec
from log.columns import ByteArray
from log.compression import Codec, compress_briefly
from log.crc import BytesLike, crc32c
from log.kernels.encode import Fields, encode_batches, measure_batches
from log.record import NO_SEQUENCE, TimestampType

HEADER_DTYPE: Final = np.dtype([(name, f">{code}") for name, code in HEADER_FIELDS])
assert HEADER_DTYPE.itemsize == HEADER.size
CRC: Final = struct.Struct(">I")
LENGTH: Final = struct.Struct(">i")
LENGTH_POSITION: Final = LENGTH_BYTES - LENGTH.size
PIECE_BYTES: Final = 256 * KIB
"""How much is encoded at a time: it is still in the processor's nearer cache when it is checksummed and written."""


@attrs.frozen(eq=False)
class PlainColumns:
    """N records without headers: where keys and values stand in `data`, sizes of -1 for null."""

    data: ByteArray
    timestamps: Int64Array
    key_positions: Int64Array
    key_sizes: Int64Array
    value_positions: Int64Array
    value_sizes: Int64Array

    def __len__(self) -> int:
        return len(self.timestamps)

    def fields(self) -> Fields:
        """Return the columns of numbers as kernels take them: each in one piece."""
        return (
            np.ascontiguousarray(self.timestamps, np.int64),
            np.ascontiguousarray(self.key_positions, np.int64),
            np.ascontiguousarray(self.key_sizes, np.int64),
            np.ascontiguousarray(self.value_positions, np.int64),
            np.ascontiguousarray(self.value_sizes, np.int64),
        )


@value
class BuiltBatch:
    """A whole batch; its bytes are overwritten by later ones: use or copy them before the next is asked for."""

    data: BytesLike
    last_offset: Offset
    max_timestamp: TimeMs


def build_batches(spec: BatchSpec, records: PlainColumns, records_per_batch: int) -> BytesLike:
    """Return the batches that `each_batch` yields, one after the other; raises what it raises."""
    out = bytearray()
    for batch in each_batch(spec, records, records_per_batch):
        out += batch.data
    return out


def each_batch(spec: BatchSpec, records: PlainColumns, records_per_batch: int) -> Iterator[BuiltBatch]:
    """Return an iterator over batches of up to `records_per_batch` records.

    Offsets and, of a producer, sequences go on from batch to batch. Raises UsageError, at once, for a spec that Kafka
    refuses, for positions outside `data`, for magic 0 and 1, and for batches that are too large.
    """
    check_spec(spec)
    fields = records.fields()
    _check(spec, fields, records_per_batch)
    firsts = np.arange(0, len(records), records_per_batch)
    ends = np.zeros(len(firsts), np.int64)
    outside = measure_batches(fields, len(records.data), records_per_batch, ends)
    if outside >= 0:
        raise UsageError(f"record {outside} has a key or value outside the {len(records.data)} bytes of data")
    ends += HEADER.size * np.arange(1, len(firsts) + 1)
    ends_before = np.append(0, ends)[:-1]
    plan = np.stack((firsts, np.minimum(firsts + records_per_batch, len(records)), ends_before), axis=1)
    sizes = ends - ends_before
    if len(sizes) and sizes.max() > INT32_MAX:
        raise UsageError(f"a batch would have {sizes.max()} bytes; allowed are {INT32_MAX}")
    headers = _headers(spec, records, firsts, plan[:, 1] - firsts)
    headers["length"] = sizes - LENGTH_BYTES
    return _written(spec, _Planned(records.data, fields, headers, plan, ends))


@attrs.frozen(eq=False)
class _Planned:
    """What is to be written where: `plan` as `encode_batches` takes it, and where each batch ends."""

    data: ByteArray
    fields: Fields
    headers: NDArray[np.void]
    plan: Int64Array
    ends: Int64Array


def _written(spec: BatchSpec, planned: _Planned) -> Iterator[BuiltBatch]:
    """Yield the batches: a few are encoded at a time, into one buffer, and sealed one by one."""
    starts, ends = planned.plan[:, 2], planned.ends
    pieces = _pieces(starts, ends)
    out = np.empty(max((int(ends[high - 1] - starts[low]) for low, high in pieces), default=0), np.uint8)
    raw = planned.headers.view(np.uint8).reshape(len(ends), HEADER.size)
    last_offsets = (planned.headers["base_offset"] + planned.headers["last_offset_delta"]).tolist()
    max_timestamps = planned.headers["max_timestamp"].tolist()
    is_plain = spec.codec is Codec.NONE
    for low, high in pieces:
        encode_batches(planned.data, planned.fields, raw[low:high], planned.plan[low:high], out)
        view, zero = out.data, int(starts[low])
        for batch, start, end in zip(range(low, high), starts[low:high].tolist(), ends[low:high].tolist(), strict=True):
            plain = view[start - zero : end - zero]
            data: BytesLike = plain
            if is_plain:
                CRC.pack_into(plain, CRC_POSITION, crc32c(plain[CHECKED_POSITION:]))
            else:
                data = _compressed(spec, plain)
            yield BuiltBatch(data, last_offsets[batch], max_timestamps[batch])


def _pieces(starts: Int64Array, ends: Int64Array) -> list[tuple[int, int]]:
    """Return the batches to be encoded at a time: one at least, and no more than fit `PIECE_BYTES`."""
    pieces = []
    low = 0
    while low < len(ends):
        high = max(low + 1, int(np.searchsorted(ends, starts[low] + PIECE_BYTES, side="right")))
        pieces.append((low, high))
        low = high
    return pieces


def _compressed(spec: BatchSpec, batch: memoryview) -> bytes:
    """Return a batch with its records compressed, its length and checksum computed."""
    payload = compress_briefly(spec.codec, batch[HEADER.size :], level=spec.compression_level)
    LENGTH.pack_into(batch, LENGTH_POSITION, HEADER.size - LENGTH_BYTES + len(payload))
    CRC.pack_into(batch, CRC_POSITION, crc32c(payload, crc32c(batch[CHECKED_POSITION : HEADER.size])))
    return b"".join((batch[: HEADER.size], payload))


def _headers(spec: BatchSpec, records: PlainColumns, firsts: Int64Array, counts: Int64Array) -> NDArray[np.void]:
    """Return the headers of all batches, but for lengths and checksums."""
    headers = np.zeros(len(firsts), HEADER_DTYPE)
    headers["base_offset"] = spec.base_offset + firsts
    headers["partition_leader_epoch"] = spec.partition_leader_epoch
    headers["magic"] = spec.magic
    headers["attributes"] = attributes_of(spec)
    headers["last_offset_delta"] = counts - 1
    headers["base_timestamp"] = records.timestamps[firsts]
    headers["max_timestamp"] = spec.log_append_time
    if spec.timestamp_type is TimestampType.CREATE_TIME and len(firsts):
        headers["max_timestamp"] = np.maximum.reduceat(records.timestamps, firsts)
    headers["producer_id"] = spec.producer_id
    headers["producer_epoch"] = spec.producer_epoch
    headers["base_sequence"] = (spec.base_sequence + firsts) % 2**31 if spec.base_sequence >= 0 else NO_SEQUENCE
    headers["record_count"] = counts
    return headers


def _check(spec: BatchSpec, fields: Fields, records_per_batch: int) -> None:
    if spec.magic != 2 or spec.delete_horizon_ms is not None or spec.last_offset is not None:
        raise UsageError("columns are written as magic 2, without delete horizon and last offset")
    if not 1 <= records_per_batch <= INT32_MAX:
        raise UsageError(f"records per batch are {records_per_batch}; allowed are 1 to {INT32_MAX}")
    timestamps = fields[0]
    if any(len(column) != len(timestamps) for column in fields):
        raise UsageError("the columns of records are not of equal length")
    if len(timestamps) and int(timestamps.min()) < -1:
        raise UsageError(f"Invalid negative timestamp {int(timestamps.min())}")
