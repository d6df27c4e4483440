"""Columns of keys and values to batches of magic 2: many records at once.

What it decides: the same bytes as `log.build.build_batch`, made for whole columns: for whoever has records as arrays,
such as a job that writes segment files.

Constraints: all batches share the spec; the offsets of all records follow one another; records have no headers.

How: one pass computes sizes, one writes all records where they belong; headers and checksums are set batch by batch.
Compressed, the records are written first and compressed batch by batch. A few MiB at a time are quickest: more is
written to memory that is new.

Example: 250 records by 100 make batches of 100, 100 and 50.

Source: ours; the format is Kafka's.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int64Array
from broker.errors import UsageError
from broker.ids import INT32_MAX
from log.batch_v2 import CHECKED_POSITION, CRC_POSITION, HEADER, HEADER_FIELDS, LENGTH_BYTES
from log.build import attributes_of
from log.build_spec import BatchSpec, check_spec
from log.columns import ByteArray
from log.compression import Codec, compress
from log.crc import BytesLike, crc32c
from log.kernels.encode import encode_batches, encoded_sizes
from log.record import NO_SEQUENCE, TimestampType

HEADER_DTYPE: Final = np.dtype([(name, f">{code}") for name, code in HEADER_FIELDS])
assert HEADER_DTYPE.itemsize == HEADER.size
CRC_DTYPE: Final = np.dtype(">u4")


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


def build_batches(spec: BatchSpec, records: PlainColumns, records_per_batch: int) -> BytesLike:
    """Return batches of up to `records_per_batch` records, one after the other.

    Offsets and, of a producer, sequences go on from batch to batch. Raises UsageError for a spec that Kafka refuses,
    for positions outside `data`, and for magic 0 and 1.
    """
    check_spec(spec)
    _check(spec, records, records_per_batch)
    firsts = np.arange(0, len(records), records_per_batch)
    counts = np.minimum(records_per_batch, len(records) - firsts)
    out, ends = _encoded(records, firsts, records_per_batch)
    starts = np.concatenate((np.zeros(1, np.int64), ends))[: len(firsts)] + HEADER.size
    headers = _headers(spec, records, firsts, counts)
    if spec.codec is Codec.NONE:
        _seal_in_place(out, starts, ends, headers)
        return out.data
    view, level = out.data, spec.compression_level
    payloads = [
        compress(spec.codec, view[a:b], level=level) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    headers["length"] = [HEADER.size - LENGTH_BYTES + len(payload) for payload in payloads]
    raw = headers.view(np.uint8).reshape(len(firsts), HEADER.size)
    headers["crc"] = [crc32c(payload, crc32c(raw[row, CHECKED_POSITION:].data)) for row, payload in enumerate(payloads)]
    return b"".join(part for row, payload in enumerate(payloads) for part in (raw[row].tobytes(), payload))


def _seal_in_place(out: ByteArray, starts: Int64Array, ends: Int64Array, headers: NDArray[np.void]) -> None:
    """Write the headers before the records of each batch, their lengths and checksums computed."""
    headers["length"] = HEADER.size - LENGTH_BYTES + ends - starts
    at = (starts - HEADER.size)[:, None]
    out[at + np.arange(HEADER.size)] = headers.view(np.uint8).reshape(len(headers), HEADER.size)
    view = out.data
    checked = zip((at[:, 0] + CHECKED_POSITION).tolist(), ends.tolist(), strict=True)
    crcs = np.array([crc32c(view[a:b]) for a, b in checked], CRC_DTYPE)
    out[at + CRC_POSITION + np.arange(CRC_DTYPE.itemsize)] = crcs.view(np.uint8).reshape(
        len(headers), CRC_DTYPE.itemsize
    )


def _encoded(records: PlainColumns, firsts: Int64Array, records_per_batch: int) -> tuple[ByteArray, Int64Array]:
    """Return the records of all batches with room before each for its header, and where each ends."""
    sizes = np.stack((records.key_sizes, records.value_sizes))
    positions = np.stack((records.key_positions, records.value_positions))
    ends = np.zeros(len(firsts), np.int64)
    encoded_sizes(records.timestamps, sizes, records_per_batch, ends)
    ends += HEADER.size * np.arange(1, len(firsts) + 1)
    out = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    starts = np.concatenate((np.zeros(1, np.int64), ends))[: len(firsts)] + HEADER.size
    plan = np.stack((firsts, np.minimum(firsts + records_per_batch, len(records)), starts))
    encode_batches(records.data, records.timestamps, positions, sizes, plan, out)
    return out, ends


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


def _check(spec: BatchSpec, records: PlainColumns, records_per_batch: int) -> None:
    if spec.magic != 2 or spec.delete_horizon_ms is not None or spec.last_offset is not None:
        raise UsageError("columns are written as magic 2, without delete horizon and last offset")
    if not 1 <= records_per_batch <= INT32_MAX:
        raise UsageError(f"records per batch are {records_per_batch}; allowed are 1 to {INT32_MAX}")
    size = len(records.data)
    for positions, sizes in (
        (records.key_positions, records.key_sizes),
        (records.value_positions, records.value_sizes),
    ):
        if len(positions) != len(records) or len(sizes) != len(records):
            raise UsageError("the columns of records are not of equal length")
        outside = (sizes >= 0) & ((positions < 0) | (positions + sizes > size)) | (sizes < -1)
        if outside.any():
            raise UsageError(f"record {int(outside.argmax())} has a key or value outside the {size} bytes of data")
    if len(records) and int(records.timestamps.min()) < -1:
        raise UsageError(f"Invalid negative timestamp {int(records.timestamps.min())}")
