"""Assign all partitions in order, dealt to the subscribed members in turn, as RoundRobinAssignor.

    >>> from broker.entropy import SplitMix64
    >>> from placement.consumer.group import Member, Topic
    >>> members = [Member(id="a", topics=("t", "u")), Member(id="b", topics=("t", "u"))]
    >>> group = Group.of(members, [Topic(name="t", partition_count=3), Topic(name="u", partition_count=2)])
    >>> assignment = RoundRobinAssignor().assign(group, SplitMix64(0))
    >>> [str(one) for one in assignment.of("a")], [str(one) for one in assignment.of("b")]
    (['t-0', 't-2', 'u-1'], ['t-1', 'u-0'])

Source: org.apache.kafka.clients.consumer.RoundRobinAssignor, 4.3.1.
"""

from __future__ import annotations

import attrs
import numpy as np

from broker.cluster import Int32Array
from broker.entropy import RandomSource
from placement.consumer.assignment import NOBODY, GroupAssignment
from placement.consumer.errors import EmptyGroupError
from placement.consumer.group import Group
from placement.consumer.ragged import Ragged, inverse
from placement.consumer.subscribers import subscribers_of


@attrs.frozen
class RoundRobinAssignor:
    """Assign as Kafka's `roundrobin` assignor does."""

    def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
        """Return each member's list, sorted; raise EmptyGroupError, as Kafka does, for a group without members."""
        if not group.members:
            raise EmptyGroupError("CircularIterator can only be used on non-empty lists")
        return GroupAssignment.of_owners(group, _dealt(group, subscribers_of(group, group.static_first)))


def _dealt(group: Group, subscribers: Ragged) -> Int32Array:
    """Return int32[P]: the owner of each partition by id."""
    owners = np.full(group.partition_count, NOBODY, np.int32)
    seats = inverse(group.static_first)
    starts = group.partition_starts.tolist()
    seat = 0
    for topic in np.flatnonzero((group.partition_counts > 0) & (subscribers.lengths > 0)).tolist():
        members = subscribers.row(topic)
        begin, end = starts[topic], starts[topic + 1]
        first = np.searchsorted(seats[members], seat)
        owners[begin:end] = members[(first + np.arange(end - begin)) % len(members)]
        seat = int(seats[owners[end - 1]]) + 1
    return owners
