"""Decide which logs on a broker's disk belong to no partition of that broker any more.

A topic is known by its id, which is in the partition.metadata file beside the log. Without ids (before
3.1) only the name is known, and a log whose topic's name exists is kept.

Example: topic "a" with id 1 was deleted and created again with id 2.

>>> from replication.rules.switches import CURRENT, without
>>> one = BrokerId(1)
>>> partitions = {2: PartitionState(replicas=(one,), isr=(one,), leader=one)}
>>> is_stray(StoredReplica("a", topic_id=1), one, {2: "a"}, partitions, CURRENT)
True
>>> is_stray(StoredReplica("a", topic_id=1), one, {2: "a"}, partitions, without(CURRENT, "topic_id_check"))
False

Source: Kafka storage LogManager.isStrayKraftReplica, 4.3.1; KIP-516, KAFKA-14616.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from broker.ids import BrokerId
from replication.rules.partition import PartitionState
from replication.rules.switches import Rules


@attrs.frozen
class StoredReplica:
    """Describe a log on disk: the name of its topic, and the topic id in its partition.metadata file."""

    topic: str
    topic_id: int


def is_stray(
    stored: StoredReplica,
    broker: BrokerId,
    topics: Mapping[int, str],
    partitions: Mapping[int, PartitionState],
    rules: Rules,
) -> bool:
    """Return whether a log is stray; `topics` are the topic names by id, and each topic has one partition."""
    if rules.topic_id_check:
        state = partitions.get(stored.topic_id)
        return state is None or broker not in state.replicas
    namesakes = [partitions[topic_id] for topic_id, name in topics.items() if name == stored.topic]
    return all(broker not in state.replicas for state in namesakes)
