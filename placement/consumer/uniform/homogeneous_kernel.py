"""Compute the homogeneous uniform assignment on arrays, for sound claims.

Gives what `placement.consumer.uniform.homogeneous` gives, which says why, for groups in which every partition that
is claimed exists and is claimed by one member. Each member's partitions come by id, those kept before the others.

How:
Only of members that hold more than their quota does it matter in which order their partitions are met. After most
rebalances there are none, and nothing is ordered (`placement.consumer.uniform.holdings`).

Cost: partitions. Source: as its readable twin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled
from broker.releases import Release
from placement.consumer.assignment import NOBODY
from placement.consumer.group import NO_METADATA, Group
from placement.consumer.ragged import Ragged
from placement.consumer.uniform.holdings import walked
from placement.consumer.uniform.homogeneous import quotas

REVOKED: Final = -2
"""The owner of a partition that its former owner has to let go, while nobody else has it."""


def assign_sound_equal(group: Group, topics: Int64Array, ids: Sequence[bytes], *, release: Release) -> Ragged | None:
    """Return each member's partitions; None where the readable twin is to answer, or to refuse.

    `topics` int64 are those subscribed, each once, in the order of Java's set; `ids` are those of all topics.
    """
    counts = group.partition_counts
    if (counts[topics] == NO_METADATA).any():
        return None
    subscribed = np.zeros(len(counts), np.bool_)
    subscribed[topics] = True
    order, claimed, starts = group.member_hash_order, group.owned_topics, group.partition_starts
    owners = np.full(group.partition_count, NOBODY, np.int32)
    sizes = np.zeros(len(order), np.int64)
    if not own_claims(claimed.starts, claimed.values, group.owned_numbers, counts, starts, subscribed, owners, sizes):
        return None
    limits = np.empty(len(order), np.int64)
    limits[order] = quotas(int(counts[topics].sum()), sizes[order], release=release)
    revoked = np.empty(int(np.maximum(sizes - limits, 0).sum()), np.int32)
    if len(revoked):
        by_walk = walked(group, topics, ids)
        claimed, numbers = by_walk.owned_topics, by_walk.owned_numbers
        revoke(order, claimed.starts, claimed.values, numbers, starts, subscribed, limits, owners, revoked)
    ends = np.concatenate([[0], limits.cumsum()])
    values = np.empty(ends[-1], np.int32)
    fill_members(order, topics, starts, subscribed, owners, revoked, ends, values)
    return Ragged(ends, values)


@compiled
def own_claims(
    claim_starts: Int64Array,
    topics: Int32Array,
    numbers: Int32Array,
    counts: Int32Array,
    partition_starts: Int64Array,
    subscribed: NDArray[np.bool_],
    owners: Int32Array,
    sizes: Int64Array,
) -> bool:
    """Fill `owners` int32[P] with who claims what, `sizes` int64[M] with the number of subscribed ones.

    Return False when two members claim a partition, or it does not exist: then neither means anything.
    """
    for member in range(len(sizes)):
        for claim in range(claim_starts[member], claim_starts[member + 1]):
            topic, number = topics[claim], numbers[claim]
            if number < 0 or number >= counts[topic]:
                return False
            owner = owners[partition_starts[topic] + number]
            if owner == NOBODY:
                owners[partition_starts[topic] + number] = member
                sizes[member] += subscribed[topic]
            elif owner != member:
                return False
    return True


@compiled
def revoke(
    order: Int64Array,
    claim_starts: Int64Array,
    topics: Int32Array,
    numbers: Int32Array,
    partition_starts: Int64Array,
    subscribed: NDArray[np.bool_],
    limits: Int64Array,
    owners: Int32Array,
    revoked: Int32Array,
) -> None:
    """Fill `revoked` with the partitions that members hold beyond their limits, members in `order`.

    Claims stand in the order in which they are met. The owner of a revoked partition is REVOKED afterwards: it is
    not one of the free partitions, which are assigned before it.
    """
    count = 0
    for member in order:
        kept = 0
        for claim in range(claim_starts[member], claim_starts[member + 1]):
            if subscribed[topics[claim]]:
                kept += 1
                if kept > limits[member]:
                    partition = partition_starts[topics[claim]] + numbers[claim]
                    owners[partition] = REVOKED
                    revoked[count] = partition
                    count += 1


@compiled
def fill_members(
    order: Int64Array,
    topics: Int64Array,
    partition_starts: Int64Array,
    subscribed: NDArray[np.bool_],
    owners: Int32Array,
    revoked: Int32Array,
    starts: Int64Array,
    values: Int32Array,
) -> None:
    """Fill `values` with the partitions of each member from `starts` int64[M + 1] on: kept ones, then new ones.

    Free partitions of `topics`, and behind them those `revoked`, go to the members in `order`, each filled up before
    the next.
    """
    ends = starts[:-1].copy()
    for topic in range(len(subscribed)):
        if subscribed[topic]:
            for partition in range(partition_starts[topic], partition_starts[topic + 1]):
                if owners[partition] >= 0:
                    values[ends[owners[partition]]] = partition
                    ends[owners[partition]] += 1
    turn = 0
    for place in range(len(topics) + 1):
        # Behind the last topic, those revoked.
        begin, end = 0, len(revoked)
        if place < len(topics):
            begin, end = partition_starts[topics[place]], partition_starts[topics[place] + 1]
        for index in range(begin, end):
            partition = index if place < len(topics) else revoked[index]
            if place < len(topics) and owners[partition] != NOBODY:
                continue
            while ends[order[turn]] == starts[order[turn] + 1]:
                turn += 1
            values[ends[order[turn]]] = partition
            ends[order[turn]] += 1
