"""Turn the records of a scan into the columns of the table of records, only those that are asked for.

Constraints: no Python object a record; keys and values are copied once; a piece has at most `PIECE_BYTES` of them,
unless one record has more.

Example: record_columns(chunk, frozenset({"offset", "key"}), position=0)

Source: Kafka's record batch, magic 2, for attributes; DefaultRecordBatch.incrementSequence for sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from broker.ids import INT32_MAX
from broker.units import MIB
from log.batches.record_columns import HeaderColumns, RecordColumns
from log.codecs.compression import CODEC_MASK, Codec
from log.record import TIMESTAMP_TYPE_BIT
from spark_analysis.data_sources.committed import CONTROL_BIT, TRANSACTIONAL_BIT
from spark_analysis.tables.byte_columns import bytes_column, headers_column

PIECE_BYTES: Final = 64 * MIB  # Of Arrow's 2 GiB a column; what the JVM copies at once.
OF_VALUES: Final = ("value", "headers")
_OF_RECORDS: Final = (
    "offset",
    "timestamp",
    "key_position",
    "key_size",
    "value_position",
    "value_size",
    "header_count",
    "record_position",
    "record_size",
    "batch_index",
)
_NO_TIMESTAMP_TYPE: Final = -1
_CODECS: Final[Any] = pa.array(
    [Codec(code).name.lower() if code < len(Codec) else None for code in range(CODEC_MASK + 1)], pa.string()
)
_BATCH: Final[Mapping[str, Callable[[HeaderColumns], Any]]] = {
    "timestamp_type": lambda batches: np.where(
        batches.magic > 0, _bits(batches) & TIMESTAMP_TYPE_BIT != 0, _NO_TIMESTAMP_TYPE
    ).astype(np.int32),
    "producer_id": lambda batches: batches.producer_id,
    "producer_epoch": lambda batches: batches.producer_epoch.astype(np.int16),
    "is_transactional": lambda batches: (batches.magic >= 2) & (batches.attributes & TRANSACTIONAL_BIT != 0),
    "is_control": lambda batches: (batches.magic >= 2) & (batches.attributes & CONTROL_BIT != 0),
    "codec": lambda batches: _bits(batches) & CODEC_MASK,
    "leader_epoch": lambda batches: batches.partition_leader_epoch.astype(np.int32),
}
"""Columns that all records of a batch share."""


def taken(chunk: RecordColumns, rows: NDArray[np.int64] | slice) -> RecordColumns:
    """Return some rows of a chunk."""
    return attrs.evolve(chunk, **{name: getattr(chunk, name)[rows] for name in _OF_RECORDS})


def pieces(chunk: RecordColumns) -> Iterator[RecordColumns]:
    """Yield a chunk in pieces of at most `PIECE_BYTES` of records each."""
    ends = np.cumsum(chunk.record_size, dtype=np.int64)
    start = 0
    while start < len(chunk):  # Each turn takes a record at least.
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + PIECE_BYTES, side="right")))
        yield chunk if stop - start == len(chunk) else taken(chunk, slice(start, stop))
        start = stop


def record_columns(chunk: RecordColumns, wanted: frozenset[str], *, position: int) -> dict[str, Any]:
    """Return the columns `wanted` of records; `position` is where the scanned bytes begin in their segment."""
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
    }
    columns = {name: make() for name, make in made.items() if name in wanted}
    for name, of_batch in _BATCH.items():
        if name in wanted:
            values = of_batch(batches)[index]
            columns[name] = _CODECS.take(pa.array(values)) if name == "codec" else pa.array(values)
    return columns


def _bits(batches: HeaderColumns) -> NDArray[np.int16]:
    """Return the attributes; the attributes of a message have four bits."""
    return np.where(batches.magic >= 2, batches.attributes, batches.attributes & 0x0F)


def _sequences(chunk: RecordColumns) -> NDArray[np.int32]:
    """Return the sequence of each record, which goes on at 0 after 2^31 - 1; -1 without one."""
    base = chunk.batches.base_sequence[chunk.batch_index]
    counted = (base + chunk.offset - chunk.batches.base_offset[chunk.batch_index]) & INT32_MAX
    return np.where(base < 0, -1, counted).astype(np.int32)


def _base_offsets(chunk: RecordColumns) -> NDArray[np.int64]:
    """Return the first offset of each record's batch; of a wrapper of magic 0 or 1 that of its first record here."""
    index = chunk.batch_index
    offsets = chunk.batches.base_offset[index]
    if not len(chunk) or (chunk.batches.magic >= 2).all():
        return offsets
    firsts = chunk.offset[np.searchsorted(index, index, side="left")]
    return np.where(chunk.batches.magic[index] >= 2, offsets, firsts)
