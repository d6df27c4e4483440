"""Answer questions about all regular clusters of a chunk at once: measures, and which clusters have no violation.

Answers are those of the kernels that take one ClusterView, value by value. What brokers, racks and topics hold are
counts over all clusters, which become measures as those of one cluster do (placement/balance/measures.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from broker.cluster import BoolArray, Int64Array
from broker.min_isr import shown_or_given
from placement.balance.constraints import racks_had_and_needed
from placement.balance.reachable import Optimum
from placement.balance.shares import Held, Quantities
from spark_analysis.frames.chunks import UNKNOWN, Chunk
from spark_analysis.tables.cluster_rows import measure_rows

IN_CHUNK: Final = "cluster_id"
"""The column of an answer that says which cluster of the chunk a row is about."""
Answered: TypeAlias = tuple[BoolArray, pa.Table]
"""The clusters that are answered, bool[K], and the rows of their answers, with `IN_CHUNK`."""
NO_ROWS: Final = pa.table({IN_CHUNK: pa.array([], pa.int64())})
"""The rows of clusters of which nothing is to be said."""
Many: TypeAlias = Callable[[Chunk], Answered]


def measures_of(chunk: Chunk) -> Answered:
    """Return the measures of the regular clusters."""
    places = np.arange(chunk.count)
    batch, _ = measure_rows(places, [""] * chunk.count, _held(chunk).shares())
    if batch is None:
        return np.zeros(chunk.count, np.bool_), NO_ROWS
    answered = chunk.is_regular & all_alive(chunk)
    return answered, pa.Table.from_batches([batch]).filter(pa.array(answered[batch.column(IN_CHUNK).to_numpy()]))


def all_alive(chunk: Chunk) -> BoolArray:
    """Return the clusters in which each broker is in an ISR or holds nothing; of others the view knows who is down."""
    held, seen = (np.zeros(chunk.broker_ids.size, np.bool_) for _ in range(2))
    for flags, column in ((held, chunk.replicas), (seen, chunk.isr), (seen, chunk.leader)):
        flags[column[column >= 0]] = True
    down = held & ~seen & chunk.knows_isr[chunk.broker_cluster]
    return np.asarray(np.bincount(chunk.broker_cluster[down], minlength=chunk.count) == 0)


def unbroken(chunk: Chunk, min_insync_replicas: int | None) -> Answered:
    """Return the regular clusters in which nothing is broken, and no rows; the others are looked at one by one."""
    held = chunk.replicas >= 0
    factors, in_sync = held.sum(axis=1), (chunk.isr >= 0).sum(axis=1)
    wrong = chunk.knows_leader[chunk.cluster] & (chunk.leader != chunk.replicas[:, 0])
    wrong |= chunk.knows_isr[chunk.cluster] & (in_sync != factors)
    least = shown_or_given(chunk.min_isr, min_insync_replicas)[chunk.topic]
    wrong |= chunk.knows_isr[chunk.cluster] & (least >= 0) & (in_sync <= least)
    widest = np.zeros(len(chunk.topic_cluster), np.int64)
    np.maximum.at(widest, chunk.topic, factors)
    wrong |= factors != widest[chunk.topic]
    racks = np.where(chunk.replicas >= 0, np.append(chunk.rack, UNKNOWN)[chunk.replicas], UNKNOWN)
    had, needed = racks_had_and_needed(racks, chunk.rack_counts[chunk.cluster])
    wrong |= had < needed
    is_unbroken = chunk.is_regular & (np.bincount(chunk.cluster[wrong], minlength=chunk.count) == 0)
    return is_unbroken, NO_ROWS


def _held(chunk: Chunk) -> Held:
    """Return what the brokers and topics of the regular clusters hold."""
    of_broker, of_topic = (
        _quantities(chunk, *groups)
        for groups in (
            (chunk.replicas[chunk.replicas >= 0], chunk.leader, chunk.broker_cluster),
            (np.repeat(chunk.topic, (chunk.replicas >= 0).sum(axis=1)), chunk.topic, chunk.topic_cluster),
        )
    )
    widest = np.zeros(chunk.count, np.int64)
    np.maximum.at(widest, chunk.cluster, (chunk.replicas >= 0).sum(axis=1))
    none = np.zeros(chunk.broker_ids.size, np.bool_)
    return Held(
        broker_counts=chunk.broker_counts,
        broker_names=chunk.broker_ids,
        rack=chunk.rack,
        fenced=none,
        cordoned=none,
        brokers=of_broker,
        rack_counts=chunk.rack_counts,
        rack_names=chunk.rack_names,
        topic_counts=np.bincount(chunk.topic_cluster, minlength=chunk.count).astype(np.int64),
        topic_names=chunk.topic_names,
        topics=of_topic,
        widest=widest,
        optimum=_no_optimum,
    )


def _no_optimum(_: int) -> Optimum:
    raise AssertionError("the best spreads of regular clusters are those of whole shares")


def _quantities(chunk: Chunk, held: Int64Array, led: Int64Array, of_cluster: Int64Array) -> Quantities:
    """Return replicas and leaders of each group, the leaders -1 where not known; nobody knows bytes."""
    replicas = np.bincount(held, minlength=of_cluster.size).astype(np.int64)
    leaders = np.bincount(led[chunk.leader >= 0], minlength=of_cluster.size)
    return replicas, np.where(chunk.knows_leader[of_cluster], leaders, UNKNOWN), None
