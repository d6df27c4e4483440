"""Keep the input of a plan as a table, and make the view of it again, so that a plan can be checked without its dump.

What it decides: the columns topic, partition, replicas, isr, offline, leader, size_bytes and copy_bytes of
input.parquet.

`copy_bytes` is what one new replica copies: the leader's replica, where its size is known, else `size_bytes`.

Constraints: what the input does not say is null. The view made again has the partitions in the same order.

Example: one row: orders, 3, [1, 2], [2, 1], null, 1, 1048576, 1048576.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from broker.cluster import PAD, SIZE_UNKNOWN, ClusterView, Int32Array, PartitionTable
from placement.outages.arrow import column_of, lists_column, partition_columns, table_of
from placement.planning.goal import copy_sizes

if TYPE_CHECKING:
    import pyarrow as pa


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
            "leader": column_of(leader, absent=unknown if table.leader is None else None),
            "size_bytes": column_of(sizes, absent=unknown if table.size_bytes is None else sizes == SIZE_UNKNOWN),
            "copy_bytes": column_of(copies, absent=copies == SIZE_UNKNOWN),
        }
    )


def _lists(matrix: Int32Array | None, count: int) -> pa.Array[Any]:
    """Return brokers of each row as lists, all of them null where nothing is known."""
    import pyarrow as pa  # Late: only tables need it.

    return pa.nulls(count, pa.list_(pa.int32())) if matrix is None else lists_column(matrix)


def view_of_input(table: pa.Table, like: ClusterView) -> ClusterView:
    """Return the view that `input_table` was made of, with the brokers and topics of `like`.

    Its sizes are those of `copy_bytes`, if the table has that column; so with `isr` and `offline`.
    Raises ValueError for a topic that `like` does not have, and for rows without a value.
    """
    empty = [name for name in ("topic", "partition", "replicas") if table.column(name).null_count]
    if empty:
        raise ValueError(f"column {empty[0]} has rows without a value")
    replicas = _matrix(table, "replicas")
    assert replicas is not None
    topics: Any = table.column("topic").combine_chunks().dictionary_encode()
    place = {topic.name: number for number, topic in enumerate(like.topics)}
    strangers = [name for name in topics.dictionary.to_pylist() if name not in place]
    if strangers:
        raise ValueError(f"topic {strangers[0]!r} is not one of the certificate's")
    number = np.array([place[name] for name in topics.dictionary.to_pylist()], dtype=np.int32)
    leader: Any = table.column("leader")
    known = None if leader.null_count else np.asarray(leader, dtype=np.int32)
    sizes = None
    if "copy_bytes" in table.column_names:
        copies: Any = table.column("copy_bytes").combine_chunks()
        sizes = np.asarray(copies.fill_null(SIZE_UNKNOWN), dtype=np.int64)
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
            isr=_matrix(table, "isr"),
            offline=_matrix(table, "offline"),
            size_bytes=sizes,
        ),
    )


def _matrix(table: pa.Table, name: str) -> Int32Array | None:
    """Return a column of lists as int32[P, W], padded; None if there is none, or nothing is known."""
    if name not in table.column_names or (table.num_rows and table.column(name).null_count == table.num_rows):
        return None
    lists: Any = table.column(name).combine_chunks()
    if lists.null_count:
        raise ValueError(f"column {name} has rows without a value")
    counts = np.diff(np.asarray(lists.offsets, dtype=np.int64))
    width = int(counts.max(initial=0))
    matrix = np.full((counts.size, width), PAD, dtype=np.int32)
    matrix[np.arange(width) < counts[:, None]] = np.asarray(lists.flatten(), dtype=np.int32)
    return matrix
