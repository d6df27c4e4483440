"""Turn scanned records into Arrow columns, without a Python object a record.

Source: Arrow's layout of binary and list arrays; Kafka's record batch, magic 2, for attributes;
DefaultRecordBatch.incrementSequence for sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from broker.block_copy import copy_block
from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from broker.ids import INT32_MAX
from broker.java.utf8 import decode_java_utf8
from log.codecs.compression import CODEC_MASK, Codec
from log.record import CONTROL_BIT, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT


@compiled_with(copy_block, allocates=False)
def fill_slices(
    data: NDArray[np.uint8], starts: Int64Array, sizes: Int32Array, offsets: Int32Array, out: NDArray[np.uint8]
) -> None:
    """Copy slices (start, size) of `data` to `out`, back to back; fill in the start of each and the last end.

    A slice of size -1, a null, has no bytes.
    """
    end = 0
    offsets[0] = 0
    for row in range(starts.shape[0]):
        size = sizes[row]
        if size > 0:
            copy_block(out, end, data, starts[row], size)
            end += size
        offsets[row + 1] = end


def size_at(data: NDArray[np.uint8], position: int) -> tuple[np.int64, int]:
    """Return the zig-zag encoded size at `position`, -1 for a null, and the position after it."""
    value, shift = np.int64(0), 0
    while True:  # A scan has read these bytes: at most five.
        byte = np.int64(data[position])
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return np.int64(max(np.int64((value >> 1) ^ -(value & 1)), np.int64(-1))), position


@compiled_with(size_at)
def find_headers(
    data: NDArray[np.uint8], positions: Int64Array, counts: Int32Array, starts: Int64Array, sizes: Int32Array
) -> None:
    """Fill int64[2, H] starts and int32[2, H] sizes of the names and values of all headers, record by record.

    `positions` int64[N] are where the values of the records end, `counts` int32[N] their numbers of headers.
    """
    header = 0
    for row in range(positions.shape[0]):
        if counts[row] == 0:
            continue
        _, position = size_at(data, positions[row])
        for _ in range(counts[row]):
            for part in range(2):
                size, position = size_at(data, position)
                starts[part, header], sizes[part, header] = position, size
                position += int(max(size, np.int64(0)))
            header += 1


if TYPE_CHECKING:
    from log.batches.record_columns import ByteArray, HeaderColumns, RecordColumns

HEADER_NAMES: Final = ("key", "value")  # As Spark's own source of Kafka records calls them.
NO_TIMESTAMP_TYPE: Final = -1
_CODECS: Final = [Codec(code).name.lower() if code < len(Codec) else None for code in range(CODEC_MASK + 1)]
_BATCH: Final[Mapping[str, Callable[[HeaderColumns], Any]]] = {
    "timestamp_type": lambda batches: np.where(
        batches.magic > 0, _bits(batches) & TIMESTAMP_TYPE_BIT != 0, NO_TIMESTAMP_TYPE
    ).astype(np.int32),
    "producer_id": lambda batches: batches.producer_id,
    "producer_epoch": lambda batches: batches.producer_epoch.astype(np.int16),
    "is_transactional": lambda batches: (batches.magic >= 2) & (batches.attributes & TRANSACTIONAL_BIT != 0),
    "is_control": lambda batches: (batches.magic >= 2) & (batches.attributes & CONTROL_BIT != 0),
    "codec": lambda batches: _bits(batches) & CODEC_MASK,
    "leader_epoch": lambda batches: batches.partition_leader_epoch.astype(np.int32),
}
"""Columns that all records of a batch share."""
RECORD_COLUMNS: Final[tuple[str, ...]] = (
    "offset",
    "timestamp_ms",
    "timestamp_type",
    "key",
    "value",
    "headers",
    "producer_id",
    "producer_epoch",
    "sequence",
    "is_transactional",
    "is_control",
    "codec",
    "leader_epoch",
    "size_bytes",
    "batch_base_offset",
    "batch_position",
    "value_size_bytes",
)


def record_columns(chunk: RecordColumns, wanted: frozenset[str], *, position: int = 0) -> dict[str, Any]:
    """Return the columns `wanted` of records; `position` is where the scanned bytes begin in their segment."""
    import pyarrow as pa

    batches, index = chunk.batches, chunk.batch_index
    made: dict[str, Callable[[], Any]] = {
        "offset": lambda: pa.array(chunk.offset),
        "timestamp_ms": lambda: pa.array(chunk.timestamp),
        "key": lambda: bytes_column(chunk.data, chunk.key_position, chunk.key_size),
        "value": lambda: bytes_column(chunk.data, chunk.value_position, chunk.value_size),
        "headers": lambda: headers_column(chunk),
        "sequence": lambda: pa.array(_sequences(chunk)),
        "size_bytes": lambda: pa.array(chunk.record_size),
        "batch_base_offset": lambda: pa.array(_base_offsets(chunk)),
        "batch_position": lambda: pa.array(batches.position[index] + position),
        "value_size_bytes": lambda: pa.array(chunk.value_size),
    }
    columns = {name: make() for name, make in made.items() if name in wanted}
    for name, values in batch_columns(batches, wanted).items():
        columns[name] = codec_names(values[index]) if name == "codec" else pa.array(values[index])
    return columns


def batch_columns(batches: HeaderColumns, wanted: frozenset[str]) -> dict[str, NDArray[Any]]:
    """Return the columns `wanted` that all records of a batch share, one row per batch; codecs are numbers."""
    return {name: of_batch(batches) for name, of_batch in _BATCH.items() if name in wanted}


def codec_names(codes: NDArray[Any]) -> Any:
    """Return a column of the names of codecs, null for a number that Kafka does not know."""
    import pyarrow as pa

    return pa.array(_CODECS, pa.string()).take(pa.array(codes))


def bytes_column(data: ByteArray, positions: Int64Array, sizes: Int32Array) -> Any:
    """Return the slices of `data` as a column of bytes, null where the size is -1."""
    import pyarrow as pa

    total = int(np.maximum(sizes, 0).sum(dtype=np.int64))
    assert total <= np.iinfo(np.int32).max, total
    gathered, offsets = np.empty(total, np.uint8), np.empty(len(sizes) + 1, np.int32)
    fill_slices(data, np.ascontiguousarray(positions), np.ascontiguousarray(sizes), offsets, gathered)
    validity = pa.array(sizes >= 0).buffers()[1] if (sizes < 0).any() else None
    buffers = [validity, pa.py_buffer(offsets.data), pa.py_buffer(gathered.data)]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)


def headers_column(chunk: RecordColumns, names: tuple[str, str] = HEADER_NAMES) -> Any:
    """Return the headers of records as lists of structures of name and value, empty where there are none."""
    import pyarrow as pa

    counts = chunk.header_count
    total = int(counts.sum(dtype=np.int64))
    if not total:
        kinds: Any = {names[0]: pa.string(), names[1]: pa.binary()}
        none: Any = pa.array([], pa.struct(kinds))
        ends: Any = pa.array(np.zeros(len(counts) + 1, np.int32))
        return pa.ListArray.from_arrays(ends, none)
    starts, sizes = np.empty((2, total), np.int64), np.empty((2, total), np.int32)
    value_ends = chunk.value_position + np.maximum(chunk.value_size, 0)
    find_headers(chunk.data, value_ends, np.ascontiguousarray(counts), starts, sizes)
    keys = _text(bytes_column(chunk.data, starts[0], sizes[0]))
    values = bytes_column(chunk.data, starts[1], sizes[1])
    offsets: Any = pa.array(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays([keys, values], names=list(names)))


def _text(column: Any) -> Any:
    """Return bytes as text; bytes that are no UTF-8 become what Java makes of them."""
    import pyarrow as pa

    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([decode_java_utf8(each) for each in column.to_pylist()], pa.string())


def _bits(batches: HeaderColumns) -> NDArray[np.int16]:
    """Return the attributes; the attributes of a message have four bits."""
    return np.where(batches.magic >= 2, batches.attributes, batches.attributes & 0x0F)


def _sequences(chunk: RecordColumns) -> NDArray[np.int32]:
    """Return the sequence of each record as `log.record.increment_sequence` counts it; -1 without one."""
    base = chunk.batches.base_sequence[chunk.batch_index]
    delta = chunk.offset - chunk.batches.base_offset[chunk.batch_index]
    counted = base + delta - np.where((delta < 0) | (base + delta > INT32_MAX), INT32_MAX + 1, 0)
    return np.where(base < 0, -1, counted.astype(np.int32)).astype(np.int32)


def _base_offsets(chunk: RecordColumns) -> NDArray[np.int64]:
    """Return the first offset of each record's batch; of a wrapper of magic 0 or 1 that of its first record here."""
    index = chunk.batch_index
    offsets = chunk.batches.base_offset[index]
    if not len(chunk) or (chunk.batches.magic >= 2).all():
        return offsets
    firsts = chunk.offset[np.searchsorted(index, index, side="left")]
    return np.where(chunk.batches.magic[index] >= 2, offsets, firsts)
