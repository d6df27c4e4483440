"""The server's range assignor: of each topic, the first members get the first partitions.

Goals: members hold the same partition numbers of topics with as many partitions; per topic, they differ by one at most.

Constraints: each partition of a subscribed topic goes to one of its subscribers; prior assignments are not looked
at; racks neither, unlike on the client side. A topic that does not exist is an error here.

How: the ranges are those of `placement.consumer.client_range`, members in the same order, static ones first.

Example: t0 and t1 of 3 partitions, members c0 and c1: c0 gets 0 and 1 of both, c1 gets 2 of both.

Source: org.apache.kafka.coordinator.group.assignor.RangeAssignor, commit 1eb7644 (2024-10); KIP-848.
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
    """Kafka's `range` on the server side."""

    def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
        """Return each member's partitions; raises PartitionAssignorError when a subscribed topic does not exist."""
        subscribers = subscribers_of(group, group.static_first)
        if ((subscribers.lengths > 0) & (group.partition_counts == NO_METADATA)).any():
            raise PartitionAssignorError("Member is subscribed to a non-existent topic")
        topics = np.flatnonzero(subscribers.lengths).astype(np.int64)
        return GroupAssignment(group, range_rows(group, subscribers, topics))
