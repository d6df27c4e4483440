"""Store a plan's input as a table, and rebuild its view, so that the plan can be checked without the dump.

Of `COLUMNS`, `replica_size_bytes` has the size of each replica in the order of `replicas`; `copy_bytes` is what one new
replica copies. What the input does not say is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from broker.cluster import PAD, SIZE_UNKNOWN, ClusterView, Int32Array, Int64Array, PartitionTable
from placement.outages.arrow import column_of, lists_column, partition_columns, table_of
from placement.planning.goal import copy_sizes

if TYPE_CHECKING:
    import pyarrow as pa

_LISTS: Final = ("replicas", "isr", "offline", "observers", "replica_size_bytes")
COLUMNS: Final = ("topic", "partition", *_LISTS[:4], "leader", "size_bytes", _LISTS[4], "copy_bytes")
CELLS_MAX: Final = 1 << 26
"""Numbers of a matrix that is read, at most: 256 MiB."""


def input_table(view: ClusterView) -> pa.Table:
    """Return all partitions of a view as a plan sees them, one row each, in the view's order."""
    table = view.partitions
    unknown = np.full(table.count, True)
    leader = np.zeros(table.count, dtype=np.int32) if table.leader is None else table.leader
    sizes = np.zeros(table.count, dtype=np.int64) if table.size_bytes is None else table.size_bytes
    copies = copy_sizes(view)
    return table_of(
        partition_columns(view, np.arange(table.count, dtype=np.int64))
        | {
            "replicas": lists_column(table.replicas),
            "isr": _lists(table.isr, table.count),
            "offline": _lists(table.offline, table.count),
            "observers": _lists(table.observers, table.count),
            "leader": column_of(leader, absent=unknown if table.leader is None else None),
            "size_bytes": column_of(sizes, absent=unknown if table.size_bytes is None else sizes == SIZE_UNKNOWN),
            "replica_size_bytes": _sizes(table),
            "copy_bytes": column_of(copies, absent=copies == SIZE_UNKNOWN),
        }
    )


def _lists(matrix: Int32Array | None, count: int) -> pa.Array[Any]:
    """Return brokers of each row as lists, all of them null where nothing is known."""
    import pyarrow as pa  # Late: only tables need it.

    return pa.nulls(count, pa.list_(pa.int32())) if matrix is None else lists_column(matrix)


def _sizes(table: PartitionTable) -> pa.Array[Any]:
    import pyarrow as pa  # Late: only tables need it.

    if table.replica_size_bytes is None:
        return pa.nulls(table.count, pa.list_(pa.int64()))
    sizes: pa.Array[Any] = lists_column(table.replica_size_bytes, table.replicas >= 0)
    return sizes


def view_of_input(table: pa.Table, like: ClusterView) -> ClusterView:
    """Return the view that `input_table` was made of, with the brokers and topics of `like`.

    Raises ValueError for columns other than those of `input_table`, for a topic that `like` does not have, for rows
    without a value, and for more replicas in a row than there are brokers.
    """
    wrong = [name for name in COLUMNS if name not in table.column_names]
    if wrong:
        raise ValueError(f"there is no column {wrong[0]}")
    empty = [name for name in ("topic", "partition", "replicas") if table.column(name).null_count]
    if empty:
        raise ValueError(f"column {empty[0]} has rows without a value")
    lists = {name: _matrix(table, name, len(like.brokers)) for name in _LISTS}
    replicas, each = lists["replicas"], lists["replica_size_bytes"]
    assert replicas is not None
    if each is not None and not np.array_equal(_lengths(table, "replicas"), _lengths(table, "replica_size_bytes")):
        raise ValueError("column replica_size_bytes has rows of another length than replicas")
    topics: Any = table.column("topic").combine_chunks()
    place = {topic.name: number for number, topic in enumerate(like.topics)}
    strangers = [name for name in topics.dictionary.to_pylist() if name not in place]
    if strangers:
        raise ValueError(f"topic {strangers[0]!r} is not one of the certificate's")
    number = np.array([place[name] for name in topics.dictionary.to_pylist()], dtype=np.int32)
    leader: Any = table.column("leader")
    known = None if leader.null_count else np.asarray(leader, dtype=np.int32)
    largest: Any = table.column("size_bytes").combine_chunks()
    sizes = None if largest.null_count == len(largest) else np.asarray(largest.fill_null(SIZE_UNKNOWN), dtype=np.int64)
    return ClusterView(
        name=like.name,
        source=like.source,
        format=like.format,
        brokers=like.brokers,
        topics=like.topics,
        partitions=PartitionTable(
            topic_index=number[np.asarray(topics.indices, dtype=np.int32)],
            partition_ids=np.asarray(table.column("partition"), dtype=np.int32),
            replicas=replicas,
            leader=known,
            isr=lists["isr"],
            offline=lists["offline"],
            observers=lists["observers"],
            size_bytes=sizes,
            replica_size_bytes=each,
        ),
    )


def _matrix(table: pa.Table, name: str, broker_count: int) -> Any:
    """Return a column of lists as a matrix int[P, W], padded; None where nothing is known."""
    if table.num_rows and table.column(name).null_count == table.num_rows:
        return None
    lists: Any = table.column(name).combine_chunks()
    if lists.null_count:
        raise ValueError(f"column {name} has rows without a value")
    counts = _lengths(table, name)
    width = int(counts.max(initial=0))
    if width > broker_count or width * counts.size > CELLS_MAX:
        raise ValueError(f"column {name} lists {width} in a row of {counts.size}; there are {broker_count} brokers")
    values = lists.flatten().fill_null(SIZE_UNKNOWN) if name == "replica_size_bytes" else lists.flatten()
    kind = np.int64 if name == "replica_size_bytes" else np.int32
    matrix = np.full((counts.size, width), PAD, dtype=kind)
    matrix[np.arange(width) < counts[:, None]] = np.asarray(values, dtype=kind)
    return matrix


def _lengths(table: pa.Table, name: str) -> Int64Array:
    """Return the length of the list in each row, int64[P]."""
    lists: Any = table.column(name).combine_chunks()
    return np.asarray(np.diff(np.asarray(lists.offsets)), dtype=np.int64)
