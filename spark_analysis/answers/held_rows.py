"""Count what each broker holds of each topic of a cluster: replicas, leaders, bytes.

Constraints: no Python object per partition. What the cluster's rows do not say is null.

How: a number for each pair of a topic and a broker; sums of int64 by sorting these numbers.

Source: placement/balance/loads.py, for what is known and what is not.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from broker.broker_rows import broker_rows
from broker.cluster import PAD, ClusterView, Int64Array
from placement.balance.loads import leaders, replica_bytes
from spark_analysis.tables.limits import check_listed

_NO_ROWS: Final = np.zeros(0, np.int64)


def held_rows(view: ClusterView) -> pa.Table:
    """Return one row per topic and broker that holds some of it; raise UsageError if only a part is listed."""
    check_listed(view, "topics are not known")
    table, broker_count = view.partitions, len(view.brokers)
    holds = table.replicas != PAD
    topics = table.topic_index.astype(np.int64)
    codes = (np.repeat(topics, holds.sum(axis=1)) * broker_count) + broker_rows(view.broker_ids, table.replicas[holds])
    pairs, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    names: Any = pa.array([topic.name for topic in view.topics], pa.string())
    columns: dict[str, Any] = {
        "topic": names.take(pa.array(pairs // max(broker_count, 1))),
        "broker_id": pa.array(view.broker_ids[pairs % max(broker_count, 1)] if len(pairs) else _NO_ROWS),
        "replica_count": pa.array(counts.astype(np.int64)),
    }
    leader, sizes = leaders(table), replica_bytes(table)
    if leader is not None:
        columns["leader_count"] = pa.array(_led(view, topics, leader, pairs))
    if sizes is not None:
        sums = np.zeros(len(pairs), np.int64)
        np.add.at(sums, places.ravel(), sizes[holds])
        columns["size_bytes"] = pa.array(sums)
    return pa.table(columns)


def _led(view: ClusterView, topics: Int64Array, leader: Any, pairs: Int64Array) -> Int64Array:
    """Return how many partitions each pair of a topic and a broker leads."""
    has = np.flatnonzero(np.isin(leader, view.broker_ids))
    codes = topics[has] * len(view.brokers) + broker_rows(view.broker_ids, leader[has])
    places = np.searchsorted(pairs, codes)
    inside = places < len(pairs)
    inside[inside] = pairs[places[inside]] == codes[inside]  # A leader may stand outside the replicas for a moment.
    return np.bincount(places[inside], minlength=len(pairs)).astype(np.int64)
