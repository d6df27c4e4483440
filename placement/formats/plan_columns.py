"""Read the JSON of kafka-reassign-partitions in columns, without a Python object for each entry.

What it decides: whether a text is a plan in the form that Kafka's tools write, and what its columns are then.

Constraints: a text gives either the columns that Python's json would find, or None: in another form (other keys, blanks
between entries, values of another type), and wherever a sentence about an entry might be needed.

Source: Kafka 4.3.1 ReassignPartitionsCommand (formatAsReassignmentJson).
"""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any, Final

import attrs
import numpy as np

from broker.cluster import PAD, Int32Array, Int64Array
from placement.formats.rows import MATRIX_CELLS_MAX

_HEAD: Final = re.compile(rb'[ \t\r\n]*\{[ \t\r\n]*"version"[ \t]*:[ \t]*1[ \t]*,[ \t\r\n]*"partitions"[ \t]*:[ \t]*\[')
_BETWEEN: Final = b"},{"
_BLANKS: Final = b" \t\r\n"
_BLOCK_BYTES: Final = 4 << 20


@attrs.frozen(kw_only=True, eq=False)
class PlanColumns:
    """Hold N entries: `topic` int64[N] places in `topics`, `partition` int64[N], `replicas` int32[N, W], -1 pads."""

    topics: tuple[str, ...]
    topic: Int64Array
    partition: Int64Array
    replicas: Int32Array


def plan_columns(data: bytes) -> PlanColumns | None:
    """Return the columns of a plan in UTF-8, or None where the text must be read entry by entry.

    Cost: a second of CPU and three times the text in memory for a million entries.
    """
    head, end = _HEAD.match(data), data.rfind(b"]")
    if head is None or end < head.end() or data[end + 1 :].strip(_BLANKS) != b"}" or not data.isascii():
        return None
    entries = data[head.end() : end]
    return _columns(entries.replace(_BETWEEN, b"}\n{"), entries.count(_BETWEEN) + 1)


def _columns(lines: bytes, count: int) -> PlanColumns | None:
    """Return the columns of `count` entries, one a line."""
    import pyarrow as pa  # Late: only large plans need it.
    from pyarrow import json

    fields: dict[str, pa.DataType] = {
        "topic": pa.string(),
        "partition": pa.int32(),
        "replicas": pa.list_(pa.int32()),
        "log_dirs": pa.list_(pa.string()),
    }
    try:
        table = json.read_json(
            BytesIO(lines),
            read_options=json.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
            parse_options=json.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="error"),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != count or any(table[name].null_count for name in ("topic", "partition", "replicas")):
        return None
    replicas, dirs = (table[name].combine_chunks() for name in ("replicas", "log_dirs"))
    if not _are_any(dirs, replicas):
        return None
    matrix = _matrix(replicas)
    if matrix is None:
        return None
    names: Any = table["topic"].combine_chunks().dictionary_encode()
    return PlanColumns(
        topics=tuple(names.dictionary.to_pylist()),
        topic=names.indices.to_numpy().astype(np.int64),
        partition=table["partition"].combine_chunks().to_numpy().astype(np.int64),
        replicas=matrix,
    )


def _matrix(lists: Any) -> Int32Array | None:
    """Return lists of numbers as a matrix padded by -1; None for an empty list, a null, or too large a matrix."""
    lengths, flat = lists.value_lengths().to_numpy(), lists.flatten()
    width = int(lengths.max())
    if not lengths.min() or flat.null_count or width * lengths.size > MATRIX_CELLS_MAX:
        return None
    matrix = np.full((lengths.size, width), PAD, dtype=np.int32)
    matrix[np.arange(width) < lengths[:, None]] = flat.to_numpy()
    return matrix


def _are_any(dirs: Any, replicas: Any) -> bool:
    """Return whether no entry names directories, or all name "any" for each of their replicas."""
    if dirs.null_count == len(dirs):
        return True
    flat = dirs.flatten()
    if dirs.null_count or flat.null_count or not dirs.value_lengths().equals(replicas.value_lengths()):
        return False
    return flat.dictionary_encode().dictionary.to_pylist() in ([], ["any"])
