"""Encode columns of keys and values as many batches of magic 2."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.block_copy import copy_block
from broker.cluster import Int64Array
from broker.compiled import compiled_with
from broker.errors import UsageError
from broker.ids import INT32_MAX
from broker.units import MIB
from log.batches.batch_v2 import (
    CHECKED_POSITION,
    CRC_POSITION,
    HEADER,
    HEADER_FIELDS,
    LENGTH_BYTES,
)
from log.batches.build import BatchSpec, attributes_of, check_spec
from log.batches.record_columns import BatchRun, ByteArray
from log.codecs.compression import Codec, compress_into
from log.codecs.crc import BytesLike, crc32c
from log.record import NO_SEQUENCE, TimestampType

Fields: TypeAlias = tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array]
"""Of N records, int64[N] each: timestamps, starts and sizes of keys, starts and sizes of values; -1 is null's size."""


def zigzag(value: int) -> np.uint64:
    """Return the zig-zag encoding of a signed number: its sign moves to the lowest bit."""
    return np.uint64((value << 1) ^ (value >> 63))


def varint_size(value: int) -> int:
    """Return the size of a zig-zag encoded number as a varint, in bytes."""
    rest = zigzag(value)
    size = 1
    while rest > np.uint64(0x7F):
        rest >>= np.uint64(7)
        size += 1
    return size


def put_varint(out: ByteArray, position: int, value: int) -> int:
    """Write a number as a varint at `position`; return the position after it."""
    rest = zigzag(value)
    while rest > np.uint64(0x7F):
        out[np.uint64(position)] = np.uint8(rest & np.uint64(0x7F) | np.uint64(0x80))
        rest >>= np.uint64(7)
        position += 1
    out[np.uint64(position)] = np.uint8(rest)
    return position + 1


def field_size(size: int) -> int:
    """Return the encoded size of a key or value of `size` bytes, in bytes; -1 means null."""
    return varint_size(size) + max(size, 0)


def body_size(key_size: int, value_size: int, offset_delta: int, timestamp_delta: int) -> int:
    """Return the size of a record after its length field, in bytes: attributes, deltas, key, value, no headers."""
    return 2 + varint_size(timestamp_delta) + varint_size(offset_delta) + field_size(key_size) + field_size(value_size)


def put_field(out: ByteArray, position: int, data: ByteArray, start: int, size: int) -> int:
    """Write a key or value after its size; return the position after it."""
    position = put_varint(out, position, size)
    if size > 0:
        copy_block(out, position, data, start, size)
    return position + max(size, 0)


def is_inside(data_size: int, start: int, size: int) -> bool:
    """Return whether a key or value is null or lies within the data."""
    return size == -1 or (size >= 0 and 0 <= start <= data_size - size)


@compiled_with(zigzag, varint_size, field_size, body_size, is_inside, allocates=False)
def measure_batches(fields: Fields, data_size: int, per_batch: int, ends: Int64Array) -> int:
    """Fill `ends` int64[B] with the end position of each batch's records in the output, written without gaps.

    Return the first record with a key or value outside the `data_size` bytes of data, -1 if there is none.
    """
    timestamps, key_starts, key_sizes, value_starts, value_sizes = fields
    total = 0
    for record in range(len(timestamps)):
        key_size, value_size = key_sizes[record], value_sizes[record]
        if not is_inside(data_size, key_starts[record], key_size):
            return record
        if not is_inside(data_size, value_starts[record], value_size):
            return record
        delta = record % per_batch
        body = body_size(key_size, value_size, delta, int(np.int64(timestamps[record] - timestamps[record - delta])))
        total += varint_size(body) + body
        ends[record // per_batch] = total
    return -1


@compiled_with(zigzag, varint_size, field_size, body_size, put_varint, put_field, copy_block, allocates=False)
def encode_batches(data: ByteArray, fields: Fields, headers: ByteArray, plan: Int64Array, out: ByteArray) -> None:
    """Write the header and records of each batch to `out`.

    `plan` int64[B, 3] holds for each batch: first record, end record, position (relative to the first batch's);
    `data` uint8[M] holds keys and values, `headers` uint8[B, H] what stands before the records.
    """
    timestamps, key_starts, key_sizes, value_starts, value_sizes = fields
    for batch in range(len(plan)):
        first = plan[batch, 0]
        position = plan[batch, 2] - plan[0, 2]
        for index in range(headers.shape[1]):
            out[np.uint64(position + index)] = headers[batch, index]
        position += headers.shape[1]
        for record in range(first, plan[batch, 1]):
            timestamp_delta = int(np.int64(timestamps[record] - timestamps[first]))
            body = body_size(key_sizes[record], value_sizes[record], record - first, timestamp_delta)
            position = put_varint(out, position, body)
            out[np.uint64(position)] = 0
            position = put_varint(out, position + 1, timestamp_delta)
            position = put_varint(out, position, record - first)
            position = put_field(out, position, data, key_starts[record], key_sizes[record])
            position = put_field(out, position, data, value_starts[record], value_sizes[record])
            out[np.uint64(position)] = 0
            position += 1


HEADER_DTYPE: Final = np.dtype([(name, f">{code}") for name, code in HEADER_FIELDS])
assert HEADER_DTYPE.itemsize == HEADER.size
CRC: Final = struct.Struct(">I")
LENGTH: Final = struct.Struct(">i")
LENGTH_POSITION: Final = LENGTH_BYTES - LENGTH.size
RUN_BYTES: Final = 2 * MIB
"""How much is encoded and written at a time: the cost of calls is lost in it, and it stays in the processor's cache."""


@attrs.frozen(eq=False)
class PlainColumns:
    """Hold N records without headers: positions and sizes of their keys and values in `data`, size -1 for null."""

    data: ByteArray
    timestamps: Int64Array
    key_positions: Int64Array
    key_sizes: Int64Array
    value_positions: Int64Array
    value_sizes: Int64Array

    def __len__(self) -> int:
        return len(self.timestamps)

    def fields(self) -> Fields:
        """Return the columns as contiguous arrays, as the kernels take them."""
        return (
            np.ascontiguousarray(self.timestamps, np.int64),
            np.ascontiguousarray(self.key_positions, np.int64),
            np.ascontiguousarray(self.key_sizes, np.int64),
            np.ascontiguousarray(self.value_positions, np.int64),
            np.ascontiguousarray(self.value_sizes, np.int64),
        )


def build_batches(spec: BatchSpec, records: PlainColumns, records_per_batch: int) -> BytesLike:
    """Return the batches of all runs of `each_run` as one array of bytes; raise as `each_run` does."""
    out = bytearray()
    for run in each_run(spec, records, records_per_batch):
        out += run.data
    return out


def each_run(spec: BatchSpec, records: PlainColumns, records_per_batch: int) -> Iterator[BatchRun]:
    """Return an iterator over runs of batches of up to `records_per_batch` records.

    A run's bytes are overwritten by the next one: use or copy them before iterating further. Offsets and, of a
    producer, sequences go on from batch to batch. Raises UsageError, at once, for a spec that Kafka refuses, for
    positions outside `data`, for magic 0 and 1, and for batches that are too large.
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
    planned = _Planned(
        data=records.data,
        fields=fields,
        headers=headers,
        plan=plan,
        ends=ends,
        last_offsets=spec.base_offset + plan[:, 1] - 1,
        max_timestamps=headers["max_timestamp"].astype(np.int64),
    )
    return _plain_runs(planned) if spec.codec is Codec.NONE else _compressed_runs(spec, planned)


@attrs.frozen(eq=False)
class _Planned:
    """A layout of batches: `plan` as `encode_batches` takes it, and end, offsets and times of each batch."""

    data: ByteArray
    fields: Fields
    headers: NDArray[np.void]
    plan: Int64Array
    ends: Int64Array
    last_offsets: Int64Array
    max_timestamps: Int64Array

    @property
    def size_bytes(self) -> int:
        """Return the uncompressed size of all batches in bytes."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def parts(self) -> list[tuple[int, int]]:
        """Return the ranges of batches to encode together: at least one batch, at most `RUN_BYTES`."""
        found = []
        low = 0
        while low < len(self.ends):
            high = int(np.searchsorted(self.ends, self.plan[low, 2] + RUN_BYTES, side="right"))
            found.append((low, max(high, low + 1)))
            low = found[-1][1]
        return found

    def run(self, data: memoryview, ends: Int64Array, low: int) -> BatchRun:
        """Return the batches from number `low` on, encoded into `data`, as a run."""
        high = low + len(ends)
        return BatchRun(data, ends, self.last_offsets[low:high], self.max_timestamps[low:high])


def _encoded(planned: _Planned) -> Iterator[BatchRun]:
    """Yield runs of batches without checksums; compression, if any, is still to be done."""
    parts = planned.parts()
    starts, ends = planned.plan[:, 2], planned.ends
    raw = planned.headers.view(np.uint8).reshape(len(ends), HEADER.size)
    out = np.empty(max((int(ends[high - 1] - starts[low]) for low, high in parts), default=0), np.uint8)
    for low, high in parts:
        encode_batches(planned.data, planned.fields, raw[low:high], planned.plan[low:high], out)
        ends_there = ends[low:high] - starts[low]
        yield planned.run(out.data[: int(ends_there[-1])], ends_there, low)


def _plain_runs(planned: _Planned) -> Iterator[BatchRun]:
    """Yield runs of batches that are not compressed."""
    for run in _encoded(planned):
        start = 0
        for end in run.ends.tolist():
            CRC.pack_into(run.data, start + CRC_POSITION, crc32c(run.data[start + CHECKED_POSITION : end]))
            start = end
        yield run


def _compressed_runs(spec: BatchSpec, planned: _Planned) -> Iterator[BatchRun]:
    """Yield runs of compressed batches: a run is as many as fit the buffer, and one at least."""
    packed = _Packed(np.empty(min(RUN_BYTES, planned.size_bytes), np.uint8).data)
    first = 0
    for plain in _encoded(planned):
        start = 0
        for end in plain.ends.tolist():
            header, records = plain.data[start : start + HEADER.size], plain.data[start + HEADER.size : end]
            start = end
            payload = compress_into(spec.codec, records, packed.room, level=spec.compression_level)
            if not packed.add(header, payload):
                yield planned.run(packed.data, np.array(packed.ends), first)
                first += len(packed.ends)
                packed.ends.clear()
                packed.add(header, payload)
    if packed.ends:
        yield planned.run(packed.data, np.array(packed.ends), first)


@attrs.define
class _Packed:
    """Compressed batches one after the other, and the end of each."""

    out: memoryview
    ends: list[int] = attrs.field(factory=list)

    @property
    def _end(self) -> int:
        return self.ends[-1] if self.ends else 0

    @property
    def data(self) -> memoryview:
        """Return the bytes of all batches."""
        return self.out[: self._end]

    @property
    def room(self) -> memoryview:
        """Return the free rest of the buffer, for the next batch's records."""
        return self.out[self._end + HEADER.size :]

    def add(self, header: memoryview, payload: int | BytesLike) -> bool:
        """Add a batch: its header, and its records or the number of their bytes already in `room`.

        Return whether there was room; the first batch is always taken. Length and checksum are computed.
        """
        start = self._end
        if not isinstance(payload, int):
            if len(payload) > len(self.room):
                if self.ends:
                    return False
                self.out = np.empty(HEADER.size + len(payload), np.uint8).data
            self.room[: len(payload)] = payload
            payload = len(payload)
        batch = self.out[start : start + HEADER.size + payload]
        batch[: HEADER.size] = header
        LENGTH.pack_into(batch, LENGTH_POSITION, len(batch) - LENGTH_BYTES)
        CRC.pack_into(batch, CRC_POSITION, crc32c(batch[CHECKED_POSITION:]))
        self.ends.append(start + len(batch))
        return True


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
