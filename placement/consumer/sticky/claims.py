"""Settle contradictory claims on partitions, and choose between the two sticky algorithms.

Members are walked in the order of Java's map. The first to claim a partition has it. A later claimant compares the
generation in its state with the generation in the earlier one's *subscription*: equal, and nobody holds the
partition any more; higher, and it takes the partition over; lower, and it is passed over. Claims on topics that nobody
subscribes to, or without metadata, do not count. Subscriptions are compared with the first that is not empty; empty
ones before it are not looked at. With `corrected`, every member is compared, as sets.

Source: AbstractStickyAssignor.allSubscriptionsEqual, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int64Array
from broker.java.hash_order import string_places
from placement.consumer.group import Group
from placement.consumer.ragged import Ragged
from placement.consumer.subscribers import same_sets


@attrs.frozen(eq=False)
class Claims:
    """Hold the partition ids that each member owns, in the order claimed; `contested` ones have no owner."""

    held: Ragged
    contested: frozenset[int] = frozenset()


def assigned_topics(group: Group) -> NDArray[np.bool_]:
    """Return bool[T]: the topics with metadata and a subscriber, whose partitions are assigned."""
    subscribed = np.zeros(len(group.topics), np.bool_)
    subscribed[group.subscribed.row(0) if group.same_lists else group.subscribed.values] = True
    return subscribed & (group.partition_counts > 0)


def settle(group: Group, *, corrected: bool) -> Claims:
    """Return the settled claims; with `corrected`, claims on missing partitions are dropped first."""
    if not len(group.owned.values):
        return Claims(group.owned)
    claimed, assigned = group.owned, assigned_topics(group)
    if not assigned.all():
        claimed = claimed.where(assigned[group.partition_topics[claimed.values]])
    if corrected:
        claimed = claimed.where(claimed.values < group.partition_count)
    if (np.bincount(claimed.values, minlength=1) <= 1).all():
        return Claims(claimed)
    return _disputed(group, list(claimed.lists()))


def _disputed(group: Group, claimed: Sequence[Sequence[int]]) -> Claims:
    state, subscription = group.generations.tolist(), group.subscription_generations.tolist()
    held: list[list[int]] = [[] for _ in group.members]
    owner: dict[int, int] = {}
    contested: set[int] = set()
    for member in group.member_hash_order.tolist():
        for partition in claimed[member]:
            other = owner.get(partition)
            if other is not None and state[member] < subscription[other]:
                continue
            if other is None:
                held[member].append(partition)
            elif state[member] == subscription[other]:
                contested.add(partition)
                _drop(held[other], partition)
            else:
                # In Java's order: a member that claims a partition twice has it once afterwards.
                held[member].append(partition)
                _drop(held[other], partition)
            owner[partition] = member
    return Claims(Ragged.of(held), frozenset(contested))


def _drop(held: list[int], partition: int) -> None:
    if partition in held:
        held.remove(partition)


def all_equal(group: Group, *, corrected: bool) -> bool:
    """Return whether the assignor considers all members subscribed to the same topics."""
    # Kafka compares the length of a list with the first one's set: who names a topic twice is never equal to another.
    plain = group.same_lists and len(set(group.subscribed.row(0).tolist())) == len(group.subscribed.row(0))
    if corrected or plain:
        return same_sets(group)
    rows = [group.subscribed.row(member).tolist() for member in group.member_hash_order.tolist()]
    reference: set[int] = set()
    for row in rows:
        if not reference:
            reference.update(row)
        elif len(row) != len(reference) or not reference.issuperset(row):
            return False
    return True


def holding_order(group: Group) -> Int64Array:
    """Return int64[M]: the members in the order of the map that Java fills while it iterates the subscriptions."""
    walked = group.member_hash_order
    return walked[string_places([group.members[member] for member in walked.tolist()])]
