"""Turn the keys, values and headers of scanned records into Arrow columns, without a Python object a record.

Constraints: one copy of the bytes; null stays null. A chunk of a scan holds less than 2 GiB of each.

Example: bytes_column(chunk.data, chunk.key_position, chunk.key_size)

Source: Arrow's layout of binary and list arrays.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from broker.cluster import Int32Array, Int64Array
from log.batches.record_columns import ByteArray, RecordColumns
from log.codecs.java_utf8 import decode_java_utf8
from spark_analysis.tables.gather_kernel import fill_slices, find_headers

HEADER_NAMES: Final = ("key", "value")  # As Spark's own source of Kafka records calls them.


def bytes_column(data: ByteArray, positions: Int64Array, sizes: Int32Array) -> Any:
    """Return the slices of `data` as a column of bytes, null where the size is -1."""
    total = int(np.maximum(sizes, 0).sum(dtype=np.int64))
    assert total <= np.iinfo(np.int32).max, total
    gathered, offsets = np.empty(total, np.uint8), np.empty(len(sizes) + 1, np.int32)
    fill_slices(data, np.ascontiguousarray(positions), np.ascontiguousarray(sizes), offsets, gathered)
    validity = pa.array(sizes >= 0).buffers()[1] if (sizes < 0).any() else None
    buffers = [validity, pa.py_buffer(offsets.data), pa.py_buffer(gathered.data)]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)


def headers_column(chunk: RecordColumns, names: tuple[str, str] = HEADER_NAMES) -> Any:
    """Return the headers of records as lists of structures of name and value, empty where there are none."""
    counts = chunk.header_count
    total = int(counts.sum(dtype=np.int64))
    starts, sizes = np.empty((2, total), np.int64), np.empty((2, total), np.int32)
    if total:
        ends = chunk.value_position + np.maximum(chunk.value_size, 0)
        find_headers(chunk.data, ends, np.ascontiguousarray(counts), starts, sizes)
    keys = _text(bytes_column(chunk.data, starts[0], sizes[0]))
    values = bytes_column(chunk.data, starts[1], sizes[1])
    offsets: Any = pa.array(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays([keys, values], names=list(names)))


def _text(column: Any) -> Any:
    """Return bytes as text; bytes that are no UTF-8 become what Java makes of them."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([decode_java_utf8(each) for each in column.to_pylist()], pa.string())
