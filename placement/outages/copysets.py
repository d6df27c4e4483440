"""Count the copysets and the scatter width of a placement, beside the fewest copysets that this scatter width allows.

What it decides: a copyset is a set of brokers that holds all replicas of some partition; losing all of it at once loses
the partition. A broker's scatter width is the number of other brokers that share a partition with it: so many can help
to rebuild it. Fewer copysets make loss by correlated failures rarer; a greater scatter width makes rebuilding faster.

How: partitions are taken by their number of replicas f. Each copyset gives a broker at most f - 1 others, so a broker
of scatter width s is in ceil(s / (f - 1)) copysets or more, and at least

    copyset_count_min = ceil( sum over brokers of ceil(s / (f - 1)) / f )

are needed for these scatter widths; with the least scatter width, f - 1, there are ceil(brokers / f).

Example: four brokers in a ring, factor 2: four copysets, each broker shares with two others, and no fewer do.

    >>> from broker.cluster import PartitionTable, TopicView
    >>> ring = [[1, 2], [2, 3], [3, 4], [4, 1]]
    >>> table = PartitionTable(topic_index=[0] * 4, partition_ids=[0, 1, 2, 3], replicas=ring)
    >>> view = ClusterView.build(name="n", source="s", format="f", partitions=table, topics=[TopicView("t")])
    >>> (found,) = copysets(view)
    >>> found.copyset_count, found.copyset_count_min, found.scatter_width_mean, found.copyset_count_least_scatter
    (4, 4, 2.0, 2)

Source: Cidon et al., "Copysets: reducing the frequency of data loss in cloud storage", USENIX ATC 2013.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import attrs
import numpy as np

from broker.cluster import ClusterView, Int32Array, Int64Array
from placement.outages.arrow import table_of

if TYPE_CHECKING:
    import pyarrow as pa


@attrs.frozen(kw_only=True)
class Copysets:
    """Hold the copysets of the partitions with `replication_factor` replicas.

    `copyset_count_min` is the fewest that these scatter widths allow, `copyset_count_least_scatter` the fewest at all.
    """

    replication_factor: int
    partition_count: int
    broker_count: int
    copyset_count: int
    copyset_count_min: int
    copyset_count_least_scatter: int
    scatter_width_min: int
    scatter_width_mean: float
    scatter_width_max: int


def copysets(view: ClusterView) -> tuple[Copysets, ...]:
    """Return the copysets of `view`, one entry for each number of replicas that a partition has, ascending."""
    rows = view.replica_rows
    factors = np.count_nonzero(rows >= 0, axis=1)
    ordered = np.sort(rows, axis=1)[:, ::-1]  # Padding last.
    return tuple(
        _of_factor(np.ascontiguousarray(ordered[factors == factor][:, :factor]), len(view.brokers))
        for factor in np.unique(factors[factors > 0]).tolist()
    )


def _of_factor(rows: Int32Array, broker_count: int) -> Copysets:
    factor = rows.shape[1]
    held = np.flatnonzero(np.bincount(rows.ravel(), minlength=broker_count))
    widths = scatter_widths(rows, broker_count)[held]
    each = -(-widths // (factor - 1)) if factor > 1 else np.ones_like(widths)
    return Copysets(
        replication_factor=factor,
        partition_count=rows.shape[0],
        broker_count=held.size,
        copyset_count=_distinct_count(rows),
        copyset_count_min=-(-int(each.sum()) // factor),
        copyset_count_least_scatter=-(-held.size // factor),
        scatter_width_min=int(widths.min()),
        scatter_width_mean=float(widths.mean()),
        scatter_width_max=int(widths.max()),
    )


def _distinct_count(rows: Int32Array) -> int:
    """Return the number of different rows."""
    order = np.lexsort(rows.T)
    differs = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    return 1 + int(np.count_nonzero(differs))


def scatter_widths(rows: Int32Array, broker_count: int) -> Int64Array:
    """Return for each broker how many others stand in a row with it, int64[B]; no row names a broker twice."""
    ordered = np.sort(rows, axis=1).astype(np.int64)
    pairs = [ordered[:, one] * broker_count + ordered[:, two] for one, two in combinations(range(rows.shape[1]), 2)]
    both = np.sort(np.concatenate([*pairs, np.zeros(0, np.int64)]))  # Much faster than the hashes of np.unique.
    both = both[np.diff(both, prepend=-1) > 0]
    ends = (np.bincount(side, minlength=broker_count) for side in divmod(both, broker_count))
    return np.asarray(sum(ends), dtype=np.int64)


def copysets_table(found: tuple[Copysets, ...]) -> pa.Table:
    """Return one row for each number of replicas, as an Arrow table."""
    import pyarrow as pa  # Late: only tables need it.

    names = [field.name for field in attrs.fields(Copysets)]
    types = [pa.float64() if name == "scatter_width_mean" else pa.int64() for name in names]
    columns = ([getattr(each, name) for each in found] for name in names)
    return table_of({name: pa.array(values, type_) for name, values, type_ in zip(names, columns, types, strict=True)})
