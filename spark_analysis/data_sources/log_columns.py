"""Take rows of scanned records, and cut them into pieces that cross to Spark.

Constraints: a piece has at most `PIECE_BYTES` of records, unless one record has more.

Example: [len(piece) for piece in pieces(chunk)]

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.units import MIB
from log.batches.record_columns import RecordColumns

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
