"""Make the tables of a plan, moves.parquet and brokers.parquet: every partition that changes, and every broker's loads.

What the input does not say is null, and so are bounds that the goal does not ask for. At the peak a broker holds,
besides what it held, all that the fullest batch brings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from broker.cluster import BROKER_FLAGS, PAD, SIZE_UNKNOWN, Int64Array
from broker.row_flags import count_each
from placement.outages.arrow import column_of, lists_column, names_column, partition_columns, table_of, unknown_column
from placement.planning.check import Certificate
from placement.planning.given import added, leaders_of, target_rows
from placement.planning.goal import Goal
from placement.planning.peak import disks, in_order
from placement.planning.reassignment import Reassignment

if TYPE_CHECKING:
    import pyarrow as pa

FLAG_COLUMNS: Final = {
    flag: "is_stopping" if flag == "in_controlled_shutdown" else f"is_{flag}" for flag in BROKER_FLAGS
}
"""The column of each of a broker's flags in brokers.parquet."""


def moves_table(moved: Reassignment, goal: Goal, batches: Sequence[Int64Array]) -> pa.Table:
    """Return every partition that a plan for `goal` changes, one row each: batch, replicas, leaders, bytes of a copy.

    `batches` are places in `moved`.
    """
    view = moved.view
    before, after = leaders_of(view, goal, target_rows(view, moved.rows, moved.replicas))
    ids = np.append(view.broker_ids, PAD).astype(np.int32)
    batch = np.zeros(moved.count, dtype=np.int32)
    for number, places in enumerate(batches):
        batch[places] = number + 1
    sizes = moved.copy_bytes
    led, leads = ids[before[moved.rows]], ids[after[moved.rows]]
    return table_of(
        partition_columns(view, moved.rows)
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


def brokers_table(moved: Reassignment, goal: Goal, certificate: Certificate, batches: Sequence[Int64Array]) -> pa.Table:
    """Return one row per broker: loads before, at the peak and after, their bounds, bytes received and sent.

    `batches` are places in `moved`, the plan for `goal` that `certificate` proves.
    """
    view, count = moved.view, len(moved.view.brokers)
    target, parts = target_rows(view, moved.rows, moved.replicas), moved.parts(batches)
    led, leads = leaders_of(view, goal, target)
    before, after = count_each(view.replica_rows, count), count_each(target, count)
    received, given = _coming(moved), _going(moved)
    coming = [_coming(part) for part in parts]
    going = [_going(part) for part in parts]
    peak, now = before.copy(), before.copy()
    for come, go in zip(coming, going, strict=True):
        peak = np.maximum(peak, now + come)
        now = now + come - go
    full = disks(tuple(in_order(parts))) if parts else None
    proof, leaders = certificate.replicas, certificate.leaders
    replicas, in_bytes = (None, proof) if goal.by_bytes else (proof, None)
    sized = {
        f"bytes_{name}": unknown_column(count) if full is None else getattr(full, name)
        for name in ("before", "peak", "after")
    }
    return table_of(
        {
            "broker": view.broker_ids,
            "rack": names_column([b.rack for b in view.brokers], np.arange(count)),
            **{column: view.flag(flag) for flag, column in FLAG_COLUMNS.items()},
            "is_added": added(view, goal),
            "is_removed": np.isin(view.broker_ids, goal.remove),
            "replicas_before": before,
            "replicas_peak": peak,
            "replicas_after": after,
            "replicas_received": received,
            "replicas_given": given,
            "replicas_low": unknown_column(count) if replicas is None else replicas.low,
            "replicas_high": unknown_column(count) if replicas is None else replicas.high,
            "leaders_before": count_each(led, count),
            "leaders_after": count_each(leads, count),
            "leaders_low": leaders.low,
            "leaders_high": leaders.high,
        }
        | sized
        | {
            "bytes_low": unknown_column(count) if in_bytes is None else in_bytes.low,
            "bytes_high": unknown_column(count) if in_bytes is None else in_bytes.high,
        }
    )


def _coming(part: Reassignment) -> Int64Array:
    ids = part.view.broker_ids
    return count_each(np.searchsorted(ids, part.replicas[part.added]), ids.size)


def _going(part: Reassignment) -> Int64Array:
    ids = part.view.broker_ids
    return count_each(np.searchsorted(ids, part.current[part.removed]), ids.size)
