"""Answer as a commit between two releases of Kafka did, where no release answers so.

Some golden vectors were printed by commit 1eb7644 of October 2024, when 4.0 was being made. Its uniform assignor shares
out the partition more as 3.9 does in groups of equal subscriptions, walks assignments in the order in which the vectors
list them, and has the algorithm of 4.0 for all other groups.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from broker.entropy import RandomSource
from broker.java.hash_order import uuid_places
from broker.releases import Release
from placement.consumer.assignment import GroupAssignment
from placement.consumer.group import Group
from placement.consumer.subscribers import same_sets
from placement.consumer.topic_ids import topic_ids
from placement.consumer.uniform.assignor import UniformAssignor
from placement.consumer.uniform.homogeneous import assign_homogeneous

COMMIT: Final = "1eb7644349cb07139d6a3c1ad1986979647cac99"
"""What the `source` of such vectors names."""


@attrs.frozen
class UniformBetweenReleases:
    """The uniform assignor of that commit."""

    def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
        """Return each member's partitions, as `UniformAssignor.assign`."""
        if not len(group.subscribed.values) or not same_sets(group):
            return UniformAssignor(Release("4.0")).assign(group, entropy)
        first = group.subscribed.row(int(group.member_hash_order[0])).astype(np.int64)
        ids = topic_ids(group)
        topics = first[uuid_places([ids[topic] for topic in first.tolist()], copied=True)]
        return GroupAssignment(group, assign_homogeneous(group, topics, release=Release("3.9")))
