"""Turn the chunks of a scan into one row per batch, with what its records add up to.

A scan may cut a batch into several chunks, which begin with that batch again; it is one row, whose counts are sums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from broker.cluster import Int64Array
from broker.ids import INT64_MAX
from log.batches.arrow_columns import batch_columns, codec_names
from log.batches.batch_v2 import HEADER
from log.batches.record_columns import HeaderColumns, RecordColumns
from spark_analysis.tables.view_columns import ColumnRows

Rows: TypeAlias = dict[str, NDArray[Any]]
_SHARED: Final = frozenset({"codec", "producer_id", "leader_epoch", "is_transactional", "is_control"})
_NONE: Final = -1


@attrs.define(eq=False)
class BatchRows:
    """Turn the chunks of one segment, in order, into rows of batches."""

    _waiting: Rows | None = None

    def add(self, start: int, chunk: RecordColumns) -> Iterator[ColumnRows]:
        """Yield the batches that end in a chunk; `start` is where the scanned bytes begin in the segment."""
        if not len(chunk.batches):
            return
        rows = _rows_of(start, chunk)
        if self._waiting is not None:
            rows = _joined(self._waiting, rows)
        # A view of the last row would hold the memory of the whole chunk.
        self._waiting = {name: column[-1:].copy() for name, column in rows.items()}
        yield from _shown({name: column[:-1] for name, column in rows.items()})

    def end(self) -> Iterator[ColumnRows]:
        """Yield the last batch."""
        if self._waiting is not None:
            yield from _shown(self._waiting)


def _rows_of(start: int, chunk: RecordColumns) -> Rows:
    """Return the batches of one chunk; `min_timestamp_ms` is the largest long where no record has a timestamp."""
    batches, count = chunk.batches, len(chunk.batches)
    least, most = np.full(count, INT64_MAX, np.int64), np.full(count, _NONE, np.int64)
    known = chunk.timestamp >= 0
    np.minimum.at(least, chunk.batch_index[known], chunk.timestamp[known])
    np.maximum.at(most, chunk.batch_index[known], chunk.timestamp[known])
    return {
        "base_offset": batches.base_offset,
        "last_offset": batches.last_offset,
        "record_count": np.bincount(chunk.batch_index, minlength=count).astype(np.int64),
        "magic": batches.magic,
        "size_bytes": batches.size_bytes,
        "unpacked_bytes": _record_bytes(chunk) + _header_bytes(batches),
        "min_timestamp_ms": least,
        "max_timestamp_ms": most,
        "position": batches.position + start,
        **batch_columns(batches, _SHARED),
    }


def _record_bytes(chunk: RecordColumns) -> Int64Array:
    sums = np.zeros(len(chunk.batches), np.int64)
    np.add.at(sums, chunk.batch_index, chunk.record_size)
    return sums


def _header_bytes(batches: HeaderColumns) -> Int64Array:
    return np.where(batches.magic >= 2, HEADER.size, 0).astype(np.int64)


def _joined(waiting: Rows, rows: Rows) -> Rows:
    """Return the waiting batch before the others, or together with the first if that is the same batch."""
    if waiting["position"][0] != rows["position"][0]:
        return {name: np.concatenate([waiting[name], rows[name]]) for name in rows}
    first = {name: column.copy() for name, column in rows.items()}
    first["record_count"][0] += waiting["record_count"][0]
    header = HEADER.size if first["magic"][0] >= 2 else 0
    first["unpacked_bytes"][0] += waiting["unpacked_bytes"][0] - header
    first["min_timestamp_ms"][0] = min(first["min_timestamp_ms"][0], waiting["min_timestamp_ms"][0])
    first["max_timestamp_ms"][0] = max(first["max_timestamp_ms"][0], waiting["max_timestamp_ms"][0])
    return first


def _shown(rows: Rows) -> Iterator[ColumnRows]:
    count = len(rows["position"])
    if not count:
        return
    least = rows["min_timestamp_ms"]
    plain = {
        **rows,
        "min_timestamp_ms": np.where(least == INT64_MAX, _NONE, least),
        "magic": rows["magic"].astype("i4"),
    }
    del plain["codec"]
    # As Arrow arrays, because a -1 of a NumPy array would become a null.
    values: dict[str, Any] = {name: pa.array(column) for name, column in plain.items()}
    yield ColumnRows(count, {**values, "codec": codec_names(rows["codec"])})
