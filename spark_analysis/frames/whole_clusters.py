"""Cut a stream of sorted rows into whole clusters, many at a time; no more is held than one cluster and the last batch.

>>> batch = pa.RecordBatch.from_pydict({"cluster": ["a", "a", "b"], "partition": [0, 1, 0]})
>>> [(rows.num_rows, ends.tolist()) for rows, ends in whole_clusters([batch, batch.slice(2)], ("cluster",))]
[(2, [2]), (2, [2])]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from broker.cluster import Int64Array
from spark_analysis.frames.matrices import whole


def whole_clusters(batches: Iterable[pa.RecordBatch], keys: Sequence[str]) -> Iterator[tuple[pa.Table, Int64Array]]:
    """Yield the rows of whole clusters, with the end of each cluster's rows; rows with equal keys stand together."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        held_count = sum(each.num_rows for each in held)
        starts = held_count + _starts(batch, keys)
        if not held or _is_same(held[-1], batch, keys):
            starts = starts[1:]
        if starts.size:
            last = int(starts[-1])
            yield pa.Table.from_batches([*held, batch.slice(0, last - held_count)]).combine_chunks(), starts
            held = [batch.slice(last - held_count)]
        else:
            held.append(batch)
    if held:
        rows = pa.Table.from_batches(held).combine_chunks()
        yield rows, np.array([rows.num_rows], dtype=np.int64)


def codes_of(rows: pa.Table | pa.RecordBatch, keys: Sequence[str]) -> Int64Array:
    """Return int64[rows, keys]: equal numbers where values are equal, nulls included."""
    columns: list[Any] = [whole(rows.column(key)).dictionary_encode(null_encoding="encode").indices for key in keys]
    numbers = [column.to_numpy(zero_copy_only=False).astype(np.int64) for column in columns]
    return np.column_stack(numbers)


def _starts(batch: pa.RecordBatch, keys: Sequence[str]) -> Int64Array:
    """Return where the rows of each cluster begin, 0 included."""
    codes = codes_of(batch, keys)
    changes = (codes[1:] != codes[:-1]).any(axis=1)
    return np.concatenate((np.zeros(1, np.int64), 1 + np.flatnonzero(changes)))


def _is_same(before: pa.RecordBatch, after: pa.RecordBatch, keys: Sequence[str]) -> bool:
    """Return whether the last row of one batch and the first of the next belong to one cluster."""
    return all(before.column(key)[before.num_rows - 1].equals(after.column(key)[0]) for key in keys)
