"""Name mirrored topics and decide which topics are mirrored: never one that has been on the target.

>>> remote_topic("eu", "ap.orders"), is_cycle("us.orders", "us")
('eu.ap.orders', True)

Source: Kafka connect-mirror-client ReplicationPolicy, DefaultReplicationPolicy and connect-mirror MirrorSourceConnector
.shouldReplicateTopic, isCycle, computeAndCreateTopicPartitions, 4.3.1; KIP-382, KIP-1074.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.ids import TopicPartition

SEPARATOR: Final = "."
_INTERNAL: Final = ".internal"


def remote_topic(source: str, topic: str) -> str:
    """Return the target's name for a topic of cluster `source`."""
    return f"{source}{SEPARATOR}{topic}"


def topic_source(topic: str) -> str | None:
    """Return the alias of the cluster that a topic was copied from; None if it is no copy."""
    # As Java splits: what is empty at the end does not count.
    source, _, rest = topic.rstrip(SEPARATOR).partition(SEPARATOR)
    return source if rest else None


def upstream_topic(topic: str) -> str | None:
    """Return a topic's name on the cluster that it was copied from; None if it is no copy."""
    source = topic_source(topic)
    return None if source is None else topic[len(source) + len(SEPARATOR) :]


def original_topic(topic: str) -> str:
    """Return the name that a topic had before its first hop."""
    upstream = upstream_topic(topic)
    return topic if upstream is None else original_topic(upstream)


def is_internal(topic: str) -> bool:
    """Return whether a topic is an internal one of Kafka or MirrorMaker; since 4.1 no others are (KIP-1074)."""
    is_sync = topic.startswith("mm2") and topic.endswith(_INTERNAL)
    return is_sync or topic.endswith(f".checkpoints{_INTERNAL}") or topic.startswith(("__", "."))


def is_cycle(topic: str, target: str) -> bool:
    """Return whether a topic has been on cluster `target` before, as its name shows."""
    upstream = upstream_topic(topic)
    return upstream is not None and (topic_source(topic) == target or is_cycle(upstream, target))


def is_replicated(topic: str, target: str) -> bool:
    """Return whether a topic is copied to cluster `target`, whose filter takes every topic."""
    return not is_internal(topic) and not is_cycle(topic, target)


def target_partition(source: str, target: str, partition: TopicPartition) -> TopicPartition:
    """Return the target partition of a source partition; a topic copied from the target gets its old name."""
    is_back = topic_source(partition.topic) == target
    name = original_topic(partition.topic) if is_back else remote_topic(source, partition.topic)
    return TopicPartition(name, partition.partition)


def wanted_partitions(
    source: str, source_counts: Mapping[str, int], target_counts: Mapping[str, int]
) -> dict[str, int]:
    """Return the partition count that topics of the target must be created with or raised to, by name and sorted.

    A topic of the target never loses partitions, even if its source was created again with fewer.
    """
    wanted = {}
    for topic, count in sorted(source_counts.items()):
        remote = remote_topic(source, topic)
        if count > target_counts.get(remote, 0):
            wanted[remote] = count
    return wanted
