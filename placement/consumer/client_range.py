"""Assign ranges as Kafka's two RangeAssignors: of each topic, the first members get the first partitions.

Goals, most important first:
1. Members hold the same partition numbers of topics with as many partitions and the same subscribers.
2. Per topic, members differ by one partition at most.
3. On the client, where replicas' and members' racks are known, members read from their own rack (range_racks.py).

How: members are sorted, static ones by instance id before the others by member id. A topic of p partitions and c
subscribers gives p div c to each, and one more to the first p mod c, in contiguous ranges. On the client a member's
list holds the topics in the order of Java's map of topics, and a topic without metadata is skipped; on the server racks
are not looked at, and such a topic is an error. Balance over all topics is no goal: the first members get more.

    >>> from broker.entropy import SplitMix64
    >>> from placement.consumer.group import Member, Topic
    >>> members = [Member(id="a", topics=("t", "u")), Member(id="b", topics=("t", "u"))]
    >>> group = Group.of(members, [Topic(name="t", partition_count=3), Topic(name="u", partition_count=3)])
    >>> assignment = RangeAssignor().assign(group, SplitMix64(0))
    >>> [str(one) for one in assignment.of("a")], [str(one) for one in assignment.of("b")]
    (['t-0', 't-1', 'u-0', 'u-1'], ['t-2', 'u-2'])

Source: org.apache.kafka.clients.consumer.RangeAssignor and org.apache.kafka.coordinator.group.assignor.RangeAssignor,
4.3.1; KIP-881 for racks, KIP-848 for the server.
"""

from __future__ import annotations

import attrs
import numpy as np

from broker.cluster import Int64Array
from broker.entropy import RandomSource
from broker.java.hash_order import string_places
from placement.consumer.assignment import GroupAssignment
from placement.consumer.errors import PartitionAssignorError
from placement.consumer.group import NO_METADATA, Group
from placement.consumer.ragged import Ragged, grouped, ranges, starts_of
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


@attrs.frozen
class ServerRangeAssignor:
    """Assign as Kafka's server-side `range` assignor does."""

    def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
        """Return each member's partitions; raise PartitionAssignorError when a subscribed topic does not exist."""
        subscribers = subscribers_of(group, group.static_first)
        if ((subscribers.lengths > 0) & (group.partition_counts == NO_METADATA)).any():
            raise PartitionAssignorError("Member is subscribed to a non-existent topic")
        return GroupAssignment(group, range_rows(group, subscribers, np.flatnonzero(subscribers.lengths)))


def range_rows(group: Group, subscribers: Ragged, topic_order: Int64Array) -> Ragged:
    """Return each member's partitions when every topic is cut into ranges among its `subscribers`, in their order.

    Topics stand in each row in the order given, and numbers ascend. Cost: partitions + subscriptions, in numpy.
    """
    sharing, firsts = subscribers.take(topic_order), group.partition_starts[topic_order]
    sharers = sharing.lengths
    least, extra = np.divmod(group.partition_starts[topic_order + 1] - firsts, np.maximum(sharers, 1))
    place = np.arange(len(sharing.values)) - np.repeat(sharing.starts[:-1], sharers)
    least, extra = np.repeat(least, sharers), np.repeat(extra, sharers)
    begin = np.repeat(firsts, sharers) + place * least + np.minimum(place, extra)
    by_member = grouped(sharing.values, len(group.members))
    sizes = (least + (place < extra))[by_member.values]
    return Ragged(starts_of(sizes)[by_member.starts], ranges(begin[by_member.values], sizes).astype(np.int32))


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
