"""Turn an impact into Arrow tables: a row a batch, a broker, a moved partition, and a measure.

What it decides: the columns and their names, which are an interface.

How: a column that the view does not know is null. `seconds` that never end are null with `never_ends` true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from broker.cluster import SIZE_UNKNOWN
from placement.outages.arrow import column_of, lists_column, partition_columns, table_of, unknown_column
from placement.planning.directories import DIRECTORY_COLUMNS
from placement.planning.impact import BatchImpact, Impact

if TYPE_CHECKING:
    import pyarrow as pa


def batches_table(impact: Impact) -> pa.Table:
    """Return one row a batch: what it moves, and how long at least."""
    rows = [batch_row(number, batch) for number, batch in enumerate(impact.batches, start=1)]
    return _of_rows(rows)


def batch_row(number: int, batch: BatchImpact) -> dict[str, Any]:
    """Return the columns of one batch."""
    seconds = None if batch.times is None else batch.times.seconds
    return {
        "batch": number,
        "partition_count": batch.partition_count,
        "moving_count": batch.moving_count,
        "order_only_count": batch.order_only_count,
        "moved_replica_count": batch.moved_replicas,
        "removed_replica_count": batch.removed_replicas,
        "moved_bytes": batch.moved_bytes,
        "leader_change_count": batch.leaders_moved,
        "election_count": batch.elections,
        "blocked_count": int(np.count_nonzero(batch.done.is_blocked)),
        "seconds": None if seconds is None or np.isinf(seconds) else seconds,
        "never_ends": None if seconds is None else bool(np.isinf(seconds)),
    }


def brokers_table(impact: Impact) -> pa.Table:
    """Return one row a broker: replicas, leaders and bytes before, on the way and after."""
    found, view = impact.brokers, impact.before
    count = len(view.brokers)
    disks = found.disks
    columns: dict[str, Any] = {
        "broker_id": view.broker_ids,
        "rack": column_of([broker.rack for broker in view.brokers]),
    }
    for field in attrs.fields(type(found)):
        if field.name != "disks":
            columns[_named(field.name)] = getattr(found, field.name)
    for name in ("before", "peak", "after"):
        columns[f"size_bytes_{name}"] = None if disks is None else getattr(disks, name)
    for name in ("seconds_in", "seconds_out"):
        each = [None if batch.times is None else getattr(batch.times, name) for batch in impact.batches]
        known = [one for one in each if one is not None]
        columns[name] = _finite(np.sum(known, axis=0)) if len(known) == len(each) else None
    return table_of({name: unknown_column(count) if values is None else values for name, values in columns.items()})


def directories_table(impact: Impact) -> pa.Table:
    """Return one row per log directory with replicas copied in or out within its broker."""
    import pyarrow as pa  # Late: only tables need it.

    kinds = [(name, pa.string() if name == "log_dir" else pa.int64()) for name in DIRECTORY_COLUMNS]
    table: pa.Table = pa.Table.from_pylist(list(impact.directories.rows(impact.before)), schema=pa.schema(kinds))
    return table


def moves_table(impact: Impact) -> pa.Table:
    """Return one row for each partition in a plan: replicas before and after, and its obstacles."""
    parts = [_moves(number, batch) for number, batch in enumerate(impact.batches, start=1)]
    import pyarrow as pa  # Late: only tables need it.

    table: pa.Table = pa.concat_tables(parts)
    return table


def _moves(number: int, batch: BatchImpact) -> pa.Table:
    plan, done = batch.plan, batch.done
    table = plan.view.partitions
    leader = np.full(plan.count, -2, dtype=np.int32) if table.leader is None else table.leader[plan.rows]
    columns = {
        "batch": np.full(plan.count, number, dtype=np.int32),
        **partition_columns(plan.view, plan.rows),
        "replicas_before": lists_column(plan.current),
        "replicas_after": lists_column(plan.replicas),
        "adding": lists_column(np.where(plan.added, plan.replicas, -1)),
        "removing": lists_column(np.where(plan.removed, plan.current, -1)),
        "copy_bytes": column_of(plan.copy_bytes, absent=plan.copy_bytes == SIZE_UNKNOWN),
        "leader_before": column_of(leader, absent=leader < 0),
        "leader_done": column_of(done.leader, absent=done.leader < 0),
        "leader_after": column_of(done.preferred, absent=done.preferred < 0),
        "waits_for": lists_column(np.where(done.waits_for, plan.replicas, -1)),
        "stuck": done.is_stuck,
    }
    return table_of(columns)


def _named(field: str) -> str:
    """Return a broker column's name: a count is named as in the report's tables."""
    kind, _, when = field.partition("_")
    return f"{kind[:-1]}_count_{when}" if kind in ("replicas", "leaders") else field


def _finite(seconds: Any) -> Any:
    return column_of(seconds, absent=np.isinf(seconds))


def _of_rows(rows: list[dict[str, Any]]) -> pa.Table:
    import pyarrow as pa  # Late: only tables need it.

    table: pa.Table = pa.Table.from_pylist(rows)
    return table
