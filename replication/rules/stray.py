"""Logs on a broker's disk that belong to nothing any more.

It decides, as a broker starts and has read the metadata, which logs it finds are strays: of a topic that was deleted
while it was down, of one that was deleted and made anew under the same name, or of a partition that was moved away.

Goals, most important first
1. Records of a deleted topic never pass for records of another one of the same name.
2. What belongs to a partition of this broker is never removed.

Constraints: a topic is known by its id; the id is in a file beside the log. Without ids (before 3.1) a name is all
there is, and a log whose topic's name exists is kept.

Worked example: topic "a" with id 1 was deleted and made anew with id 2: the log of "a" with id 1 is a stray.

Left out: that a stray is renamed first and removed later.

Source: Kafka storage LogManager.isStrayKraftReplica, commit 1eb7644 (2024-10); KIP-516, KAFKA-14616.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from broker.ids import BrokerId
from replication.rules.partition import PartitionState
from replication.rules.switches import Rules


@attrs.frozen
class StoredReplica:
    """A log on disk: the name of its topic, and the id that stands beside it."""

    topic: str
    topic_id: int


def is_stray(
    stored: StoredReplica,
    broker: BrokerId,
    topics: Mapping[int, str],
    partitions: Mapping[int, PartitionState],
    rules: Rules,
) -> bool:
    """Return whether a log is a stray; `topics` are the names by id, and each topic has one partition."""
    if rules.topic_id_check:
        state = partitions.get(stored.topic_id)
        return state is None or broker not in state.replicas
    namesakes = [partitions[topic_id] for topic_id, name in topics.items() if name == stored.topic]
    return all(broker not in state.replicas for state in namesakes)
