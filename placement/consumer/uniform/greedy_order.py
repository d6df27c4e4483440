"""Order partitions as the uniform assignor of Kafka 3.9 sorts them, for members of different subscriptions.

What it decides: in which order free partitions find members, and later in which order they may move.

How: by partitions per subscriber, most first; then by subscribers, fewest first; then by number. Kafka sorts what it
walks out of a HashSet of (topic id, number), and its sort is stable: among topics of as many partitions and
subscribers each, that set's order decides. Topics come into it in the order of a HashSet of ids, and these in the order
in which members, as Java's map has them, name them first.

Cost: n log n for n partitions.

Example: t of 4 for {a, b} has 2 partitions per subscriber and u of 3 for {b} has 3, so that all of u comes first.

Left out: what a bin of more than eight partitions has been through. It is a tree in Java; hashes that are equal
there are ordered by the addresses of objects, which nobody can reproduce. `crowded` tells whether there is such a bin.

Source: UniformHeterogeneousAssignmentBuilder.sortTopicIdPartitions and server.common.TopicIdPartition, 3.9.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.java.hash_order import any_crowded, hash_places, string_places, uuid_hashes, uuid_places
from placement.consumer.errors import PartitionAssignorError
from placement.consumer.group import NO_METADATA, Group
from placement.consumer.ragged import Ragged
from placement.consumer.topic_ids import id_text, topic_ids


def named_topics(group: Group, ids: Sequence[bytes]) -> list[list[int]]:
    """Return the topics of each member, each once, as its set is walked; members in the order of Java's map.

    Raises PartitionAssignorError for a topic that does not exist. A member's names are sent in ascending order.
    """
    rows = []
    for member in group.member_hash_order.tolist():
        named = np.unique(group.subscribed.row(member))
        row = named[string_places([group.topics[topic] for topic in named.tolist()], copied=True)].tolist()
        for topic in row:
            if group.partition_counts[topic] == NO_METADATA:
                raise PartitionAssignorError(
                    f"Members are subscribed to topic {id_text(ids[topic])} which doesn't exist in the topic metadata."
                )
        rows.append(row)
    return rows


def sorted_partitions(group: Group, rows: Iterable[Sequence[int]], ids: Sequence[bytes]) -> Int32Array:
    """Return the ids of all partitions of the topics in `rows`, which are those of `named_topics`, sorted."""
    topics = _walked_topics(rows, ids)
    sharers = np.zeros(len(group.topics), np.int64)
    for row in rows:
        sharers[row] += 1
    partitions = Ragged(group.partition_starts, np.arange(group.partition_count, dtype=np.int32)).take(topics).values
    walked = partitions[hash_places(_hashes(group, partitions, ids))]
    of_topic = group.partition_topics[walked]
    shares = group.partition_counts[of_topic] / sharers[of_topic]
    return walked[np.lexsort((group.partition_numbers[walked], sharers[of_topic], -shares))]


def crowded(group: Group) -> bool:
    """Return whether Kafka's set of partitions has a bin of more than eight, so that its order may not be ours."""
    ids = topic_ids(group)
    topics = _walked_topics(named_topics(group, ids), ids)
    partitions = Ragged(group.partition_starts, np.arange(group.partition_count, dtype=np.int32)).take(topics).values
    return any_crowded(_hashes(group, partitions, ids))


def _walked_topics(rows: Iterable[Sequence[int]], ids: Sequence[bytes]) -> Int64Array:
    """Return the topics that anybody subscribes to, int64, in the order of Kafka's set of their ids."""
    topics = np.array(list(dict.fromkeys(topic for row in rows for topic in row)), np.int64)
    return topics[uuid_places([ids[topic] for topic in topics.tolist()])]


def _hashes(group: Group, partitions: Int32Array, ids: Sequence[bytes]) -> NDArray[np.uint32]:
    """Return `TopicIdPartition.hashCode()` of each partition: that of `Objects.hash(id, number)`."""
    prefix = np.uint32(31) * (np.uint32(31) + uuid_hashes(ids))
    return prefix[group.partition_topics[partitions]] + group.partition_numbers[partitions].astype(np.uint32)
