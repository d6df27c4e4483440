"""Assign ranges as the server's RangeAssignor: of each topic, the first members get the first partitions.

Constraints: each partition of a subscribed topic goes to one of its subscribers; prior assignments are not looked
at; racks neither, unlike on the client side. A topic that does not exist is an error here.

Example:

    >>> from broker.entropy import SplitMix64
    >>> from placement.consumer.group import Group, Member, Topic
    >>> members = [Member(id="c0", topics=("t0", "t1")), Member(id="c1", topics=("t0", "t1"))]
    >>> group = Group.of(members, [Topic(name="t0", partition_count=3), Topic(name="t1", partition_count=3)])
    >>> assignment = ServerRangeAssignor().assign(group, SplitMix64(0))
    >>> [str(one) for one in assignment.of("c0")]
    ['t0-0', 't0-1', 't1-0', 't1-1']
    >>> [str(one) for one in assignment.of("c1")]
    ['t0-2', 't1-2']

Source: org.apache.kafka.coordinator.group.assignor.RangeAssignor, 4.3.1; KIP-848.
"""

from __future__ import annotations

import attrs
import numpy as np

from broker.entropy import RandomSource
from placement.consumer.assignment import GroupAssignment
from placement.consumer.client_range import range_rows
from placement.consumer.errors import PartitionAssignorError
from placement.consumer.group import NO_METADATA, Group
from placement.consumer.subscribers import subscribers_of


@attrs.frozen
class ServerRangeAssignor:
    """Assign as Kafka's server-side `range` assignor does."""

    def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
        """Return each member's partitions; raise PartitionAssignorError when a subscribed topic does not exist."""
        subscribers = subscribers_of(group, group.static_first)
        if ((subscribers.lengths > 0) & (group.partition_counts == NO_METADATA)).any():
            raise PartitionAssignorError("Member is subscribed to a non-existent topic")
        topics = np.flatnonzero(subscribers.lengths).astype(np.int64)
        return GroupAssignment(group, range_rows(group, subscribers, topics))
