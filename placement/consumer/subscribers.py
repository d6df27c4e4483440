"""Look up each topic's subscribers in a given order, and whether all members subscribe to the same topics.

Source: Kafka's AbstractPartitionAssignor and SubscriptionType, 4.3.1.
"""

from __future__ import annotations

import numpy as np

from broker.cluster import Int64Array
from placement.consumer.group import Group
from placement.consumer.ragged import Ragged, grouped


def subscribers_of(group: Group, order: Int64Array) -> Ragged:
    """Return each topic's subscribers, each once, in the order of `order` int64[M], indexes of members."""
    topic_count = len(group.topics)
    if group.same_lists:
        topics = group.subscribed.row(0)
        subscribed = np.bincount(topics, minlength=topic_count) > 0
        starts = np.concatenate([[0], (subscribed * len(order)).cumsum()]).astype(np.int64)
        return Ragged(starts, np.tile(order.astype(np.int32), int(subscribed.sum())))
    taken = group.subscribed.take(order)
    by_topic = grouped(taken.values, topic_count)
    members = order.astype(np.int32)[taken.rows[by_topic.values]]
    # A member that names a topic twice stands twice in a row, and then next to itself.
    repeated = np.zeros(len(members), np.bool_)
    repeated[1:] = members[1:] == members[:-1]
    repeated[by_topic.starts[:-1][by_topic.lengths > 0]] = False
    return Ragged(by_topic.starts, members).where(~repeated)


def same_sets(group: Group) -> bool:
    """Return whether all members subscribe to the same topics: Kafka's homogeneous group."""
    if group.same_lists:
        return True
    sets = {frozenset(row) for row in group.subscribed.lists()}
    return len(sets) <= 1
