"""Hold the results of several clusters as columns, measure them, and rank clusters.

What is found of clusters passes from those that count to those that write as columns of many clusters, so that numpy
and Arrow are called per column, not per cluster; the keys are left out, which the whole run numbers.

Example: Rows([2, 1], (broker_ids, racks)) are two rows of the first cluster and one of the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.cluster import Int64Array
from placement.balance.loads import summed_by
from placement.balance.measures import TOLERANCE, Float64Array, Spread, spreads
from placement.balance.shares import NOT_KNOWN, Held, Shares, best_of_racks
from spark_analysis.tables import schemas
from spark_analysis.tables.columns import Part, Table, batch_of
from spark_analysis.tables.scan import sorted_rows

WORST_FIRST: Final = (
    "leaderless_count",
    "sole_copy_count",
    "under_min_isr_count",
    "under_replicated_count",
    "fewer_racks_count",
    "uneven",
)
"""What ranks compare, the first that differs; more is worse, and unknown counts as none."""


@attrs.frozen(eq=False)
class Rows:
    """Hold some clusters' rows of one table: the number of rows of each cluster, and the columns without the key."""

    counts: Sequence[int] | Int64Array
    parts: tuple[Part, ...]


@attrs.frozen(eq=False)
class ClusterRows:
    """Hold some clusters, each as placed by one placer: their facts, their rows of other tables, and their shares.

    `facts` are columns by name, without `cluster_id`, which the whole run numbers; a column that is left out is null.
    `further` are rows of other tables in batches, made while they are written, as they are too many to hold.
    """

    placers: Sequence[str]
    facts: dict[str, Part]
    tables: dict[Table, Rows]
    shares: tuple[Shares, ...]
    further: Iterable[tuple[Table, Rows]] = ()


def measure_rows(
    cluster_ids: Int64Array, placers: Sequence[str], of_scopes: Iterable[Shares]
) -> tuple[pa.RecordBatch | None, Float64Array]:
    """Return the measures, and of each cluster the share of replicas plus that of leaders to move.

    The rows of a cluster stand together, in order of scope and quantity; without any there is no batch.
    """
    found = sorted((one for shares in of_scopes for one in spreads(shares)), key=lambda one: (one.scope, one.quantity))
    uneven = np.zeros(cluster_ids.size)
    for one in found:
        if one.scope == "broker" and one.quantity != "bytes" and one.moves_share is not None:
            uneven[one.cluster] += np.where(one.moves_share > TOLERANCE, one.moves_share, 0)
    if not found:
        return None, uneven
    clusters = np.concatenate([one.cluster for one in found])
    keys = (cluster_ids[clusters], [placers[row] for row in clusters.tolist()])
    columns = (_joined(name, found) for name in schemas.MEASURES.column_names[2:])
    order: Any = pa.array(np.argsort(clusters, kind="stable"))
    return batch_of(schemas.MEASURES, (*keys, *columns)).take(order), uneven


def _joined(name: str, found: Sequence[Spread]) -> Part:
    values = [getattr(one, name) for one in found]
    if name in ("scope", "quantity"):
        return [value for value, one in zip(values, found, strict=True) for _ in range(one.cluster.size)]
    kind: Any = schemas.MEASURES.arrow_schema().field(name).type
    arrays: list[Any] = [
        pa.nulls(one.cluster.size, kind) if value is None else pa.array(value).cast(kind)
        for value, one in zip(values, found, strict=True)
    ]
    return pa.concat_arrays(arrays)


def rack_rows(held: Held, over_brokers: Shares) -> Rows:
    """Return the rows of the table of racks: a cluster's racks, then its brokers without one, if it has any racks."""
    slots = held.rack_counts + 1
    last = np.cumsum(slots) - 1
    of_cluster = held.cluster_of
    place = (last + 1 - slots)[of_cluster] + np.where(held.rack >= 0, held.rack, held.rack_counts[of_cluster])
    count = int(slots.sum())
    brokers = np.bincount(place, minlength=count)
    is_last = np.zeros(count, dtype=np.bool_)
    is_last[last] = True
    kept = np.repeat(held.rack_counts > 0, slots) & (~is_last | (brokers > 0))
    names = np.full(count, None, dtype=object)
    names[~is_last] = list(held.rack_names)
    columns = [_summed(column, place, count, kept) for column in held.brokers]
    cluster = np.repeat(np.arange(slots.size), slots)
    counts = np.bincount(cluster[kept], minlength=slots.size)
    best = best_of_racks(held, over_brokers)[:, kept]
    return Rows(counts, (names[kept].tolist(), brokers[kept], *columns, *best))


def _summed(column: Int64Array | None, place: Int64Array, count: int, kept: Any) -> Part:
    if column is None:
        return None
    sums = summed_by(place, column, count)
    is_unknown = np.zeros(count, dtype=np.bool_)
    is_unknown[place[column == NOT_KNOWN]] = True
    sums[is_unknown] = NOT_KNOWN
    return sums[kept]


def ranked(facts: pa.Table) -> pa.Table:
    """Return the rows in order of cluster and placer, with the rank that says where to look first.

    Clusters are compared by: partitions without a leader; with a sole live copy; under min-ISR; under-replicated; on
    fewer racks than possible; then the share of replicas plus the share of leaders to move until brokers are at their
    best, shares up to `placement.balance.measures.TOLERANCE` counting as none. More is worse, unknown counts as none,
    and equals stand in order of number and placer. Earlier moments of clusters come after all that are the last.
    """
    rows = sorted_rows(facts, schemas.FACTS.column_names[:2])
    is_past: Any = pc.is_in(rows["cluster_id"], pc.drop_null(pc.unique(rows["previous_cluster_id"])))
    compared = [-_known(rows[name]) for name in reversed(WORST_FIRST)]
    worst_first = np.lexsort([*compared, is_past.to_numpy(zero_copy_only=False)])
    rank = np.empty(rows.num_rows, dtype=np.int32)
    rank[worst_first] = np.arange(1, rows.num_rows + 1, dtype=np.int32)
    return rows.append_column("rank", pa.array(rank))


def _known(column: Any) -> Any:
    """Return the values of a column of numbers, 0 where it is null."""
    return pc.fill_null(column, 0).to_numpy()
