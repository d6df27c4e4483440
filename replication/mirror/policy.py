"""Name mirrored topics and decide which topics are mirrored.

Constraints: a topic that has been on the target is never copied to it again. The default policy writes the source's
alias before the name, so that every hop is in the name; the identity policy keeps names, and knows only from its
settings where a topic came from.

Example:

>>> policy = DefaultPolicy()
>>> policy.remote_topic("eu", "ap.orders"), is_cycle(policy, "us.orders", "us")
('eu.ap.orders', True)

Source: Kafka connect-mirror-client ReplicationPolicy, DefaultReplicationPolicy, IdentityReplicationPolicy and
connect-mirror MirrorSourceConnector.shouldReplicateTopic, isCycle, computeAndCreateTopicPartitions, 4.3.1; KIP-382,
KIP-690, KIP-1074.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from broker.ids import TopicPartition

HEARTBEATS: Final = "heartbeats"


@attrs.frozen
class DefaultPolicy:
    """Put the source's alias before a topic's name; `separates_internal` uses the separator in internal names too."""

    separator: str = "."
    separates_internal: bool = True

    def remote_topic(self, source: str, topic: str) -> str:
        """Return the target's name for a topic of cluster `source`."""
        return f"{source}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """Return the alias of the cluster that a topic was copied from; None if it is no copy."""
        parts = topic.split(self.separator)
        # As Java splits: what is empty at the end does not count.
        while parts and not parts[-1] and len(topic) > 0:
            parts.pop()
        return parts[0] if len(parts) > 1 else None

    def upstream_topic(self, topic: str) -> str | None:
        """Return a topic's name on the cluster that it was copied from; None if it is no copy."""
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def original_topic(self, topic: str) -> str:
        """Return the name that a topic had before its first hop."""
        upstream = self.upstream_topic(topic)
        return topic if upstream is None or upstream == topic else self.original_topic(upstream)

    def offset_syncs_topic(self, target: str) -> str:
        """Return the name of the offset syncs topic for cluster `target`."""
        return f"mm2-offset-syncs{self._internal_separator}{target}{self._internal_suffix}"

    def checkpoints_topic(self, source: str) -> str:
        """Return the name of the checkpoints topic for cluster `source`."""
        return f"{source}{self._internal_separator}checkpoints{self._internal_suffix}"

    def is_heartbeats(self, topic: str) -> bool:
        """Return whether a topic is a heartbeats topic, copied or not."""
        return self.original_topic(topic) == HEARTBEATS

    def is_internal(self, topic: str) -> bool:
        """Return whether a topic is an internal one of Kafka or MirrorMaker; since 4.1 no others are (KIP-1074)."""
        is_sync = topic.startswith("mm2") and topic.endswith(self._internal_suffix)
        is_checkpoints = topic.endswith(f"{self._internal_separator}checkpoints{self._internal_suffix}")
        return is_sync or is_checkpoints or topic.startswith(("__", "."))

    @property
    def _internal_separator(self) -> str:
        return self.separator if self.separates_internal else "."

    @property
    def _internal_suffix(self) -> str:
        return f"{self._internal_separator}internal"


@attrs.frozen
class IdentityPolicy(DefaultPolicy):
    """Keep topic names except heartbeats; `source_alias` is the source that it assumes for every topic."""

    source_alias: str | None = None

    def remote_topic(self, source: str, topic: str) -> str:
        """Return the target's name for a topic of cluster `source`."""
        return super().remote_topic(source, topic) if _looks_like_heartbeat(topic) else topic

    def topic_source(self, topic: str) -> str | None:
        """Return the alias from the settings, whatever the topic."""
        return super().topic_source(topic) if _looks_like_heartbeat(topic) else self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """Return the same name: any topic may be a copy."""
        return super().upstream_topic(topic) if _looks_like_heartbeat(topic) else topic


def is_cycle(policy: DefaultPolicy, topic: str, target: str) -> bool:
    """Return whether a topic has been on cluster `target` before, as far as its name shows."""
    source = policy.topic_source(topic)
    if source is None:
        return False
    if source == target:
        return True
    upstream = policy.upstream_topic(topic)
    return upstream is not None and upstream != topic and is_cycle(policy, upstream, target)


def is_replicated(policy: DefaultPolicy, topic: str, target: str, *, is_wanted: bool) -> bool:
    """Return whether a topic is copied to cluster `target`; `is_wanted` is the topic filter's answer."""
    is_chosen = is_wanted or policy.is_heartbeats(topic)
    return is_chosen and not policy.is_internal(topic) and not is_cycle(policy, topic, target)


def target_partition(policy: DefaultPolicy, source: str, target: str, partition: TopicPartition) -> TopicPartition:
    """Return the target partition of a source partition; a topic copied from the target gets its old name."""
    is_back = policy.topic_source(partition.topic) == target
    name = policy.original_topic(partition.topic) if is_back else policy.remote_topic(source, partition.topic)
    return TopicPartition(name, partition.partition)


def wanted_partitions(
    policy: DefaultPolicy, source: str, source_counts: Mapping[str, int], target_counts: Mapping[str, int]
) -> dict[str, int]:
    """Return the partition count that topics of the target must be created with or raised to, by name and sorted.

    A topic of the target never loses partitions, even if its source was created again with fewer.
    """
    wanted = {}
    for topic, count in sorted(source_counts.items()):
        remote = policy.remote_topic(source, topic)
        if count > target_counts.get(remote, 0):
            wanted[remote] = count
    return wanted


def _looks_like_heartbeat(topic: str) -> bool:
    return topic.endswith(HEARTBEATS)
