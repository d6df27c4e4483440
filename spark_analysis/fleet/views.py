"""Turn a simulated cluster and its replicas into a `ClusterView`, as a dump of it would be read.

Its state is the one that KRaft's topic creation leaves: the replicas on unfenced brokers are in sync, and the first of
them leads. So a fenced broker leads nothing, and partitions on it are under-replicated from the start.

Source: org.apache.kafka.controller.ReplicationControlManager.createTopic, 4.0.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
import pyarrow as pa

from broker.cluster import PAD, ClusterView, Int32Array, PartitionTable, TopicView
from broker.row_flags import first_in_row
from spark_analysis.fleet.generate import SimulatedCluster
from spark_analysis.fleet.place import broker_views, topic_ends

SIMULATED: Final = "simulated"


def simulated_view(cluster: SimulatedCluster, rows: Int32Array, source: str) -> ClusterView:
    """Return the placed cluster as KRaft's topic creation leaves it: unfenced replicas in sync, the first leads."""
    topic_index = np.repeat(np.arange(cluster.topic_count, dtype=np.int32), cluster.grown_counts)
    firsts = topic_ends(cluster) - cluster.grown_counts
    settings = zip(cluster.grown_counts.tolist(), cluster.factors.tolist(), strict=True)
    names: list[Any] = topic_names(cluster.topic_count).to_pylist()
    isr = in_sync(rows, cluster)
    return ClusterView(
        name=cluster_name(cluster),
        source=source,
        format=SIMULATED,
        brokers=broker_views(cluster),
        topics=tuple(
            TopicView(name, count, factor, cluster.shape.min_insync_replicas)
            for name, (count, factor) in zip(names, settings, strict=True)
        ),
        partitions=PartitionTable(
            topic_index=topic_index,
            partition_ids=np.arange(rows.shape[0]) - np.repeat(firsts, cluster.grown_counts),
            replicas=rows,
            leader=first_in_row(isr, isr >= 0),
            isr=isr,
            size_bytes=None if cluster.size_bytes is None else cluster.size_bytes[topic_index],
        ),
    )


def cluster_name(cluster: SimulatedCluster) -> str:
    """Return the name of a simulated cluster in the tables, such as "cluster-000007"."""
    return f"cluster-{cluster.number:06d}"


def in_sync(rows: Int32Array, cluster: SimulatedCluster) -> Int32Array:
    """Return the replicas on unfenced brokers in their columns, with -1 in place of the others."""
    if not cluster.fenced.any():
        return rows
    return np.where((rows >= 0) & ~cluster.fenced[rows], rows, PAD).astype(np.int32)


@functools.lru_cache(maxsize=64)
def topic_names(count: int) -> Any:
    """Return the names of a simulated cluster's topics, an Arrow array of strings."""
    return pa.array([f"topic-{number:06d}" for number in range(count)], type=pa.string())
