"""Answer questions about all plain clusters of a chunk at once: measures, and who has no violation.

Constraints: answers are those of the kernels that take one ClusterView, value by value; a test holds them equal.

How: what brokers, racks and topics hold are counts over all clusters, cut by cluster, which become measures as those of
a fleet do (tables/spreads.py). With racks of one size, or none, and nobody fenced the best spread is that of whole
shares (placement/balance/reachable.py).

Example: measures_of(chunk)

Left out: clusters that are not plain.

Source: fleet/shares.py, which does the same for simulated clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa

from broker.cluster import Int64Array
from broker.row_flags import distinct_in_row
from spark_analysis.frames.chunks import UNKNOWN, BoolArray, Chunk
from spark_analysis.tables.cluster_rows import FREE, Best, Shares
from spark_analysis.tables.spreads import measured

IN_CHUNK: Final = "cluster_id"
"""The column of an answer that says which cluster of the chunk a row is about."""
Answered: TypeAlias = tuple[BoolArray, pa.Table]
"""The clusters that are answered, bool[K], and the rows of their answers, with `IN_CHUNK`."""
NO_ROWS: Final = pa.table({IN_CHUNK: pa.array([], pa.int64())})
"""The rows of clusters of which nothing is to be said."""
Many: TypeAlias = Callable[[Chunk], Answered]


def measures_of(chunk: Chunk) -> Answered:
    """Return the measures of the plain clusters."""
    places = np.arange(chunk.count)
    shares = (_over_brokers(chunk), *_over_racks(chunk), _over_topics(chunk))
    batch, _ = measured(places, [""] * chunk.count, shares)
    if batch is None:
        return np.zeros(chunk.count, np.bool_), NO_ROWS
    return chunk.is_plain, pa.Table.from_batches([batch])


def calm(chunk: Chunk, min_insync_replicas: int | None) -> Answered:
    """Return the plain clusters in which nothing is broken, and no rows; the others are looked at one by one."""
    held = chunk.replicas >= 0
    factors, in_sync = held.sum(axis=1), (chunk.isr >= 0).sum(axis=1)
    wrong = chunk.knows_leader[chunk.cluster] & (chunk.leader != chunk.replicas[:, 0])
    wrong |= chunk.knows_isr[chunk.cluster] & (in_sync != factors)
    default = UNKNOWN if min_insync_replicas is None else min_insync_replicas
    least = np.where(chunk.min_isr >= 0, chunk.min_isr, default)[chunk.topic]
    wrong |= chunk.knows_isr[chunk.cluster] & (least >= 0) & (in_sync <= least)
    widest = np.zeros(len(chunk.topic_cluster), np.int64)
    np.maximum.at(widest, chunk.topic, factors)
    wrong |= factors != widest[chunk.topic]
    wrong |= _rack_counts(chunk) < np.minimum(factors, chunk.rack_counts[chunk.cluster])
    is_calm = chunk.is_plain & (np.bincount(chunk.cluster[wrong], minlength=chunk.count) == 0)
    return is_calm, NO_ROWS


def _rack_counts(chunk: Chunk) -> Int64Array:
    """Return how many racks of its cluster each partition stands on."""
    racks = np.where(chunk.replicas >= 0, np.append(chunk.rack, UNKNOWN)[chunk.replicas], UNKNOWN)
    return distinct_in_row(racks)


@attrs.frozen(eq=False)
class _Held:
    """Hold what each of some groups holds: replicas, and leaders, -1 where not said; nobody knows bytes."""

    replicas: Int64Array
    leaders: Int64Array

    @property
    def quantities(self) -> tuple[Int64Array | None, ...]:
        return self.replicas, self.leaders if (self.leaders != UNKNOWN).any() else None, None


def _held(chunk: Chunk) -> _Held:
    """Return what brokers hold."""
    count = chunk.broker_ids.size
    replicas = np.bincount(chunk.replicas[chunk.replicas >= 0], minlength=count).astype(np.int64)
    led = np.bincount(chunk.leader[chunk.leader >= 0], minlength=count).astype(np.int64)
    return _Held(replicas, np.where(chunk.knows_leader[chunk.broker_cluster], led, UNKNOWN))


def _over_brokers(chunk: Chunk) -> Shares:
    held, counts = _held(chunk), chunk.broker_counts
    starts = np.cumsum(counts) - counts
    inside = np.arange(chunk.broker_ids.size) - starts[chunk.broker_cluster]
    group = np.where(chunk.rack >= 0, chunk.rack, inside)
    is_ruled = (chunk.rack_counts > 1) & (chunk.rack_counts < counts)
    return Shares("broker", counts, chunk.broker_ids, held.quantities, _bests(group, np.where(is_ruled, 0, FREE)))


def _over_racks(chunk: Chunk) -> tuple[Shares, ...]:
    if not chunk.rack_names:
        return ()
    held, counts = _held(chunk), chunk.rack_counts
    starts = np.cumsum(counts) - counts
    has = np.flatnonzero(chunk.rack >= 0)
    rack = starts[chunk.broker_cluster[has]] + chunk.rack[has]
    of_racks = [np.zeros(len(chunk.rack_names), np.int64) for _ in range(2)]
    for sums, column in zip(of_racks, (held.replicas, held.leaders), strict=True):
        np.add.at(sums, rack, column[has])
    of_cluster = np.repeat(np.arange(chunk.count), counts)
    summed = _Held(of_racks[0], np.where(chunk.knows_leader[of_cluster], of_racks[1], UNKNOWN))
    widest = np.zeros(chunk.count, np.int64)
    np.maximum.at(widest, chunk.cluster, (chunk.replicas >= 0).sum(axis=1))
    group = np.arange(of_cluster.size) - starts[of_cluster]
    bests = _bests(group, np.where(widest <= counts, FREE, 0))
    return (Shares("rack", counts, list(chunk.rack_names), summed.quantities, bests),)


def _over_topics(chunk: Chunk) -> Shares:
    count = chunk.topic_cluster.size
    replicas = np.zeros(count, np.int64)
    np.add.at(replicas, chunk.topic, (chunk.replicas >= 0).sum(axis=1))
    led = np.bincount(chunk.topic[chunk.leader >= 0], minlength=count).astype(np.int64)
    held = _Held(replicas, np.where(chunk.knows_leader[chunk.topic_cluster], led, UNKNOWN))
    counts = np.bincount(chunk.topic_cluster, minlength=chunk.count).astype(np.int64)
    return Shares("topic", counts, chunk.topic_names, held.quantities)


def _bests(group: Int64Array, kinds: Int64Array) -> tuple[Best | None, ...]:
    """Return the best spreads of replicas, by these kinds, and of leaders, which no rule binds."""
    none = np.zeros_like(group)
    free = np.full(kinds.size, FREE, np.int64)
    return Best(kinds.astype(np.int64), group, none, none), Best(free, group, none, none), None
