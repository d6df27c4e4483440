"""Compute the first two steps of the general sticky assignment on arrays, for existing partitions and without racks.

Gives what the first steps of `placement.consumer.sticky.general` give, which says why, for groups in which no claim
is on a partition that does not exist, and where racks are not looked at. Also tells whether a partition could move
afterwards: after most rebalances none can, and the passes need not begin.

Cost: partitions kept, and subscribers per partition assigned. Source: as its readable twin.
"""

from __future__ import annotations

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled
from placement.consumer.assignment import NOBODY
from placement.consumer.group import Group
from placement.consumer.ragged import Ragged, grouped
from placement.consumer.subscribers import subscribers_of


@attrs.frozen(eq=False)
class Filled:
    """Hold each member's partitions before any moves, in Kafka's order: those it keeps, then those it was given.

    `ordered` are all assigned partitions, and `free` those that nobody kept, both as `Holdings.in_order`. `revoked`
    says that somebody had to let go of one, `initial` that nobody kept any, `still` that none can move to a
    subscriber with at least two fewer.
    """

    rows: Ragged
    ordered: Int32Array
    free: Int32Array
    revoked: bool
    initial: bool
    still: bool


def fill_sound(group: Group, held: Ragged) -> Filled:
    """Return who has which partition, when members keep of what they `held` what they subscribe to."""
    members_by_id = np.argsort(group.member_ranks)
    subscribers = subscribers_of(group, members_by_id)
    topics = _topics_in_order(group, subscribers.lengths)
    wanted, topic_count = group.subscribed, len(group.topics)
    keeps = np.isin(
        held.rows.astype(np.int64) * topic_count + group.partition_topics[held.values],
        wanted.rows.astype(np.int64) * topic_count + wanted.values,
    )
    owners = np.full(group.partition_count, NOBODY, np.int32)
    owners[held.values[keeps]] = held.rows[keeps]
    sizes = np.bincount(held.rows[keeps], minlength=len(group.members))
    starts, initial = group.partition_starts, not sizes.any()
    ordered = Ragged(starts, np.arange(group.partition_count, dtype=np.int32)).take(topics).values
    free = ordered[owners[ordered] == NOBODY]
    give_least_loaded(free, group.partition_topics, subscribers.starts, subscribers.values, owners, sizes)
    given = grouped(owners[free], len(group.members))
    return Filled(
        rows=held.where(keeps).then(Ragged(given.starts, free[given.values])),
        ordered=ordered,
        free=free,
        revoked=not keeps.all(),
        initial=initial,
        still=_is_still(group, subscribers, owners, sizes),
    )


def _topics_in_order(group: Group, subscriber_counts: Int64Array) -> Int64Array:
    """Return the topics with subscribers, int64: those that members name least often first, equals by name."""
    # A member that names a topic twice counts twice in Kafka's list of a topic's potential consumers.
    named = np.bincount(group.subscribed.values, minlength=len(group.topics))
    order = np.argsort(named, kind="stable")
    return order[subscriber_counts[order] > 0]


@compiled
def give_least_loaded(
    free: Int32Array,
    partition_topics: Int32Array,
    starts: Int64Array,
    subscribers: Int32Array,
    owners: Int32Array,
    sizes: Int64Array,
) -> None:
    """Give each of `free` to the subscriber of its topic with the least size, the first of several.

    Rows of `subscribers` from `starts` int64[T + 1] are each topic's, by member id.
    """
    for partition in free:
        topic = partition_topics[partition]
        least = subscribers[starts[topic]]
        for member in subscribers[starts[topic] + 1 : starts[topic + 1]]:
            if sizes[member] < sizes[least]:
                least = member
        owners[partition] = least
        sizes[least] += 1


def _is_still(group: Group, subscribers: Ragged, owners: Int32Array, sizes: Int64Array) -> bool:
    """Return whether no partition can move to a subscriber with at least two fewer than its owner has."""
    shared, owned = np.flatnonzero(subscribers.lengths), np.flatnonzero(owners != NOBODY)
    least = np.zeros(len(group.topics), np.int64)
    if shared.size:
        least[shared] = np.minimum.reduceat(sizes[subscribers.values], subscribers.starts[shared])
    return not (sizes[owners[owned]] > least[group.partition_topics[owned]] + 1).any()
