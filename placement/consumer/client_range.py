"""Assign ranges as the client's RangeAssignor: of each topic, the first members get the first partitions.

Goals, most important first:
1. Members hold the same partition numbers of topics with as many partitions and the same subscribers.
2. Per topic, members differ by one partition at most.
3. Where replicas' and members' racks are known, members read from their own rack (`placement.consumer.range_racks`).

Constraints: each partition of a subscribed topic with metadata goes to one of its subscribers. Prior assignments
are not looked at. Balance over all topics is no goal: the first members get more, topic after topic.

How:
Members are sorted, static ones by instance id before the others by member id. A topic of p partitions and c
subscribers gives p div c to each, and one more to the first p mod c, in contiguous ranges. A member's list holds the
topics in the order of Java's map of topics; after a pass for racks it is sorted.

Cost: partitions + subscriptions.

Example: each topic alone, so that member a gets the odd partition of both:

    >>> from broker.entropy import SplitMix64
    >>> from placement.consumer.group import Member, Topic
    >>> members = [Member(id="a", topics=("t", "u")), Member(id="b", topics=("t", "u"))]
    >>> group = Group.of(members, [Topic(name="t", partition_count=3), Topic(name="u", partition_count=3)])
    >>> assignment = RangeAssignor().assign(group, SplitMix64(0))
    >>> [str(one) for one in assignment.of("a")], [str(one) for one in assignment.of("b")]
    (['t-0', 't-1', 'u-0', 'u-1'], ['t-2', 'u-2'])

Left out: partitions whose numbers have gaps.

Source: org.apache.kafka.clients.consumer.RangeAssignor, 4.3.1; KIP-881 for racks.
"""

from __future__ import annotations

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled
from broker.entropy import RandomSource
from broker.java.hash_order import string_places
from placement.consumer.assignment import GroupAssignment
from placement.consumer.group import Group
from placement.consumer.ragged import Ragged
from placement.consumer.range_racks import assign_with_racks, needs_racks
from placement.consumer.subscribers import subscribers_of


@attrs.frozen
class RangeAssignor:
    """Assign as Kafka's client-side `range` assignor does."""

    def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
        """Return each member's list in Kafka's order; never refuse."""
        subscribers = subscribers_of(group, group.static_first)
        aware = needs_racks(group, subscribers)
        if aware.any():
            return GroupAssignment.of_owners(group, assign_with_racks(group, subscribers, aware))
        return GroupAssignment(group, range_rows(group, subscribers, topic_hash_order(group)))


def range_rows(group: Group, subscribers: Ragged, topic_order: Int64Array) -> Ragged:
    """Return each member's partitions when every topic is cut into ranges among its `subscribers`, in their order.

    Topics stand in each row in the order given, and numbers ascend.
    """
    starts = np.zeros(len(group.members) + 1, np.int64)
    values = np.empty(group.partition_count, np.int32)
    write_ranges(topic_order, group.partition_starts, subscribers.starts, subscribers.values, starts, values)
    return Ragged(starts, values[: starts[-1]])


@compiled
def write_ranges(
    topic_order: Int64Array,
    partition_starts: Int64Array,
    subscriber_starts: Int64Array,
    subscribers: Int32Array,
    starts: Int64Array,
    values: Int32Array,
) -> None:
    """Fill `starts` int64[M + 1], zero at first, and `values` int32[P] with each member's ranges.

    The readable twin is `placement.consumer.range_racks.TopicRange` where no rack is known.
    """
    for counting in (True, False):
        ends = starts[:-1].copy()
        for topic in topic_order:
            partition, end = partition_starts[topic], partition_starts[topic + 1]
            first = subscriber_starts[topic]
            sharers = max(1, subscriber_starts[topic + 1] - first)
            least, extra = (end - partition) // sharers, (end - partition) % sharers
            for place in range(first, subscriber_starts[topic + 1]):
                if partition == end:
                    break
                size = least + (1 if place - first < extra else 0)
                member = subscribers[place]
                if counting:
                    starts[member + 1] += size
                    partition += size
                else:
                    for _ in range(size):
                        values[ends[member]] = partition
                        ends[member] += 1
                        partition += 1
        if counting:
            for member in range(1, len(starts)):
                starts[member] += starts[member - 1]


def topic_hash_order(group: Group) -> Int64Array:
    """Return int64[topics assigned]: the subscribed topics with metadata, in the order of Java's map of topics.

    Java puts them into a set as it walks the members, and from there into a map.
    """
    order = group.member_hash_order[:1] if group.same_lists else group.member_hash_order
    met = dict.fromkeys(topic for member in order.tolist() for topic in group.subscribed.row(member).tolist())
    walked = _walked(group, np.fromiter(met, np.int64))
    return _walked(group, walked[group.partition_counts[walked] > 0])


def _walked(group: Group, topics: Int64Array) -> Int64Array:
    return topics[string_places([group.topics[topic] for topic in topics.tolist()])]
