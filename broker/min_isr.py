"""Decide the min.insync.replicas of a topic, and where it comes from.

How: the topic's own value, else the default of its broker, else that of the cluster, else what the user gave
(`--min-isr`), else Kafka's default if all settings are known, else unknown. A value that Java cannot read is none.
Brokers ask for no more in-sync replicas than a partition has (`effective_min_isr`), since 3.7; kafka-topics does.

Example:

    >>> min_isr(topic="2", cluster="3"), min_isr(given=2)
    (MinIsr(count=2, source=<MinIsrSource.TOPIC: 'topic'>), MinIsr(count=2, source=<MinIsrSource.GIVEN: 'given'>))
    >>> min_isr().count, min_isr(all_known=True).count
    (None, 1)

Source: kafka.server.DynamicBrokerConfig (order of dynamic, default and static values), LogConfig,
Partition.effectiveMinIsr and ReplicationControlManager.getTopicEffectiveMinIsr, 4.3.1; KAFKA-15583.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import ClusterView, Int32Array, MinIsrSource, TopicView
from broker.clusters import Clusters
from broker.config.catalog import lookup
from broker.config.setting import Scope
from broker.java.numbers import parse_number

Number = TypeVar("Number", bound=np.signedinteger)

MIN_ISR: Final = "min.insync.replicas"
MIN_ISR_UNKNOWN: Final = -1
"""Stands in arrays for a topic whose min.insync.replicas is not known."""


@attrs.frozen
class MinIsr:
    """Hold a min.insync.replicas, None if it is unknown, and its source."""

    count: int | None
    source: MinIsrSource


def min_isr(
    *,
    topic: str | int | None = None,
    broker: str | None = None,
    cluster: str | None = None,
    given: int | None = None,
    all_known: bool = False,
) -> MinIsr:
    """Return the effective min.insync.replicas of a topic; `all_known`: the caller sees all settings."""
    sources = (
        (topic, MinIsrSource.TOPIC),
        (broker, MinIsrSource.BROKER_DEFAULT),
        (cluster, MinIsrSource.CLUSTER_DEFAULT),
        (given, MinIsrSource.GIVEN),
    )
    for value, source in sources:
        count = parse_number(value, bits=32) if isinstance(value, str) else value
        if count is not None:
            return MinIsr(count, source)
    if all_known:
        default = lookup(MIN_ISR, Scope.TOPIC).default
        assert isinstance(default, int), default
        return MinIsr(default, MinIsrSource.KAFKA_DEFAULT)
    return MinIsr(None, MinIsrSource.UNKNOWN)


def min_isr_of(topic: TopicView, given: int | None = None) -> int | None:
    """Return the min.insync.replicas of a topic as a dump shows it, else `given`."""
    return min_isr(topic=topic.min_insync_replicas, given=given).count


def min_isr_by_topic(topics: Sequence[TopicView], given: int | None = None) -> Int32Array:
    """Return the min.insync.replicas of each topic as a dump shows it, int32[T]; MIN_ISR_UNKNOWN where unknown."""
    found = (min_isr_of(topic, given) for topic in topics)
    return np.array([MIN_ISR_UNKNOWN if count is None else count for count in found], dtype=np.int32)


def with_min_isr(view: ClusterView, given: int | None) -> ClusterView:
    """Return the view with `given` as min.insync.replicas of the topics that do not show theirs."""
    if given is None:
        return view
    topics = (
        topic
        if topic.min_insync_replicas is not None
        else attrs.evolve(topic, min_insync_replicas=given, stated_source=MinIsrSource.GIVEN)
        for topic in view.topics
    )
    return attrs.evolve(view, topics=tuple(topics))


def with_min_isr_of(clusters: Clusters, given: int | None) -> Clusters:
    """Return the clusters as `with_min_isr` returns one."""
    return attrs.evolve(clusters, view=with_min_isr(clusters.view, given))


def effective_min_isr(min_isr: int, replica_count: int) -> int:
    """Return the in-sync replicas that brokers ask of a partition of so many replicas."""
    return min(min_isr, replica_count)


def effective_by_row(min_isr: NDArray[Number], replica_count: NDArray[Any]) -> NDArray[Number]:
    """Return the effective min.insync.replicas of each partition; MIN_ISR_UNKNOWN stays."""
    effective: NDArray[Number] = np.minimum(min_isr, replica_count).astype(min_isr.dtype)
    return effective
