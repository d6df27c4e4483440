"""The min.insync.replicas of a topic has one source, the first of Kafka's order that has a number."""

from __future__ import annotations

import numpy as np
import pytest

from broker.cluster import ClusterView, TopicView
from broker.min_isr import (
    MinIsr,
    MinIsrSource,
    effective_by_row,
    effective_min_isr,
    min_isr,
    min_isr_by_topic,
    with_min_isr,
)


@pytest.mark.parametrize(
    ("values", "count", "source"),
    [
        ({"topic": "3", "broker": "2", "cluster": "4", "given": 5}, 3, MinIsrSource.TOPIC),
        ({"topic": 3, "given": 5}, 3, MinIsrSource.TOPIC),
        ({"topic": "x", "broker": "+2", "cluster": "4"}, 2, MinIsrSource.BROKER_DEFAULT),
        ({"broker": "2147483648", "cluster": "4"}, 4, MinIsrSource.CLUSTER_DEFAULT),
        ({"cluster": "", "given": 5, "all_known": True}, 5, MinIsrSource.GIVEN),
        ({"all_known": True}, 1, MinIsrSource.KAFKA_DEFAULT),
        ({}, None, MinIsrSource.UNKNOWN),
    ],
)
def test_the_first_source_that_has_a_number_decides(
    values: dict[str, str | int], count: int | None, source: MinIsrSource
) -> None:
    assert min_isr(**values) == MinIsr(count, source)  # type: ignore[arg-type]  # Each value has the type of its name.


def test_topics_that_show_none_have_the_given_one_or_none() -> None:
    topics = [TopicView("a", min_insync_replicas=2), TopicView("b")]
    assert min_isr_by_topic(topics).tolist() == [2, -1]
    assert min_isr_by_topic(topics, given=3).tolist() == [2, 3]
    view = ClusterView(name="c", source="s", format="f", brokers=(), topics=tuple(topics))
    assert [topic.min_insync_replicas for topic in with_min_isr(view, 3).topics] == [2, 3]
    assert with_min_isr(view, None) is view


def test_brokers_ask_for_no_more_in_sync_replicas_than_a_partition_has() -> None:
    """KAFKA-15583, since 3.7."""
    shown, factors = np.array([3, 2, 1, -1], np.int32), np.array([2, 2, 3, 3])
    assert effective_by_row(shown, factors).tolist() == [2, 2, 1, -1] == list(map(effective_min_isr, shown, factors))
