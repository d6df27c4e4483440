"""Make the tables of a plan: its input, every partition that changes, and every broker's loads.

The input makes the view again, partitions in the same order, so that a plan can be checked without its dump; its
`copy_bytes` is what one new replica copies: the leader's replica, where its size is known, else `size_bytes`.

Constraints: what the input does not say is null, and so are bounds that the goal does not ask for: of replicas, or, of
a goal that makes bytes even, of bytes (a replica counting as many as a new copy). At the peak a broker holds, besides
what it held, all that the fullest batch brings; replicas that leave are still there.

Example: one row of `moves`: orders, 3, batch 1, [1, 2], [4, 2], adding [4], removing [1], 1, 4, 1048576.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from broker.broker_rows import broker_rows
from broker.cluster import PAD, SIZE_UNKNOWN, ClusterView, Int32Array, Int64Array, PartitionTable
from placement.outages.arrow import column_of, lists_column, names_column, partition_columns, table_of, unknown_column
from placement.planning.given import leaders_of
from placement.planning.goal import copy_sizes
from placement.planning.peak import disks, in_order
from placement.planning.plan import Plan
from placement.planning.reassignment import Reassignment
from placement.planning.schedule import Schedule

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


def moves_table(plan: Plan, schedule: Schedule) -> pa.Table:
    """Return every partition that changes, one row each: batch, replicas, leaders, bytes of one copy."""
    moved = plan.reassignment
    before, after = leaders_of(plan.view, plan.goal, plan.target)
    ids = np.append(plan.view.broker_ids, PAD).astype(np.int32)
    batch = np.zeros(moved.count, dtype=np.int32)
    for number, places in enumerate(schedule.batches):
        batch[places] = number + 1
    sizes = moved.copy_bytes
    led, leads = ids[before[moved.rows]], ids[after[moved.rows]]
    return table_of(
        partition_columns(plan.view, moved.rows)
        | {
            "batch": batch,
            "replicas_before": lists_column(moved.current),
            "replicas_after": lists_column(moved.replicas),
            "adding": lists_column(np.where(moved.added, moved.replicas, PAD).astype(np.int32)),
            "removing": lists_column(np.where(moved.removed, moved.current, PAD).astype(np.int32)),
            "leader_before": column_of(led, absent=led < 0),
            "leader_after": column_of(leads, absent=leads < 0),
            "size_bytes": column_of(sizes, absent=sizes == SIZE_UNKNOWN),
        }
    )


def brokers_table(plan: Plan, schedule: Schedule) -> pa.Table:
    """Return every broker: loads before, at the peak and after, their bounds, and what it receives and gives."""
    view, count = plan.view, len(plan.view.brokers)
    added = {number for number, _ in plan.goal.add}
    led, leads = leaders_of(view, plan.goal, plan.target)
    before, after = (
        _counted(broker_rows(view.broker_ids, view.partitions.replicas), count),
        _counted(plan.target, count),
    )
    received, given = _coming(plan.reassignment), _going(plan.reassignment)
    coming = [_coming(part) for part in schedule.parts()]
    going = [_going(part) for part in schedule.parts()]
    peak, now = before.copy(), before.copy()
    for come, go in zip(coming, going, strict=True):
        peak = np.maximum(peak, now + come)
        now = now + come - go
    full = disks(tuple(in_order(schedule.parts()))) if schedule.batches else None
    proof, leaders = plan.certificate.replicas, plan.certificate.leaders
    replicas, in_bytes = (None, proof) if plan.goal.by_bytes else (proof, None)
    sized = {
        f"bytes_{name}": unknown_column(count) if full is None else getattr(full, name)
        for name in ("before", "peak", "after")
    }
    return table_of(
        {
            "broker": view.broker_ids,
            "rack": names_column([b.rack for b in view.brokers], np.arange(count)),
            "is_fenced": view.flag("fenced"),
            "is_cordoned": view.flag("cordoned"),
            "is_stopping": view.flag("in_controlled_shutdown"),
            "is_added": np.array([b.id in added for b in view.brokers], dtype=np.bool_),
            "is_removed": np.array([b.id in plan.goal.remove for b in view.brokers], dtype=np.bool_),
            "replicas_before": before,
            "replicas_peak": peak,
            "replicas_after": after,
            "replicas_received": received,
            "replicas_given": given,
            "replicas_low": unknown_column(count) if replicas is None else replicas.low,
            "replicas_high": unknown_column(count) if replicas is None else replicas.high,
            "leaders_before": np.bincount(led[led >= 0], minlength=count),
            "leaders_after": np.bincount(leads[leads >= 0], minlength=count),
            "leaders_low": leaders.low,
            "leaders_high": leaders.high,
        }
        | sized
        | {
            "bytes_low": unknown_column(count) if in_bytes is None else in_bytes.low,
            "bytes_high": unknown_column(count) if in_bytes is None else in_bytes.high,
        }
    )


def _counted(rows: Int32Array | Int64Array, count: int) -> Int64Array:
    return np.bincount(rows[rows >= 0], minlength=count).astype(np.int64)


def _coming(part: Reassignment) -> Int64Array:
    ids = part.view.broker_ids
    return _counted(np.searchsorted(ids, part.replicas[part.added]), ids.size)


def _going(part: Reassignment) -> Int64Array:
    ids = part.view.broker_ids
    return _counted(np.searchsorted(ids, part.current[part.removed]), ids.size)
