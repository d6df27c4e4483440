"""Assign each partition to a random subscriber, as an example of a custom assignor.

A policy of your own is a class with `assign`, as below; check it with `placement.consumer.strategies.check_assignor`;
name it under the entry point `brokerside.assignors`, and the CLI knows it. Topics in order of name, one draw each.
"""

from __future__ import annotations

import attrs
import numpy as np

from broker.entropy import RandomSource
from placement.consumer.assignment import NOBODY, GroupAssignment
from placement.consumer.group import Group
from placement.consumer.subscribers import subscribers_of


@attrs.frozen
class RandomAssignor:
    """Assign partitions at random; the policy considers nothing but subscriptions."""

    def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
        """Return each member's partitions, sorted; never refuse."""
        owners = np.full(group.partition_count, NOBODY, np.int32)
        starts = group.partition_starts.tolist()
        for topic, members in enumerate(subscribers_of(group, np.arange(len(group.members))).lists()):
            for partition in range(starts[topic], starts[topic + 1]) if members else ():
                owners[partition] = members[entropy.next_int_bound(len(members))]
        return GroupAssignment.of_owners(group, owners)
