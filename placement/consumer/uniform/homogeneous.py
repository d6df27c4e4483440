"""Compute the uniform assignment when all members subscribe to the same topics.

Constraints: with N partitions and C members, N mod C members have N div C + 1 partitions, and the others N div C.
A member passes its turn to have one more when it holds no more than N div C, as long as enough members are left that
could.

How: a member keeps what it holds of the topics subscribed, up to its quota, in the order of
`placement.consumer.uniform.holdings`, which is asked only where a member holds more; the rest is revoked. Partitions
that nobody held, topics in the order of Java's set and numbers ascending, and behind them the revoked ones go to the
members that have room, each filled up before the next.

Cost: partitions.

Example: t of 5; a holds 0 to 4, b nothing, b comes first in Java's order: a keeps 0, 1 and 2, b gets 3 and 4.

Source: UniformHomogeneousAssignmentBuilder, 4.0 to 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled
from placement.consumer.assignment import NOBODY
from placement.consumer.errors import PartitionAssignorError
from placement.consumer.group import NO_METADATA, Group
from placement.consumer.ragged import Ragged, inverse
from placement.consumer.topic_ids import id_text
from placement.consumer.uniform.holdings import walk_order

REVOKED: Final = -2
"""The owner of a partition that its former owner has to let go, while nobody else has it."""


def assign_homogeneous(group: Group, topics: Int64Array, ids: Sequence[bytes]) -> Ragged:
    """Return each member's partitions, those kept first, by id; raise PartitionAssignorError as Kafka does.

    `topics` int64 are those subscribed, each once, in the order of Java's set; `ids` are those of all topics.
    """
    missing = topics[group.partition_counts[topics] == NO_METADATA]
    if missing.size:
        text = id_text(ids[int(missing[0])])
        raise PartitionAssignorError(
            f"Members are subscribed to topic {text} which doesn't exist in the topic metadata."
        )
    if not len(group.owned_numbers):
        limits = _quotas(int(group.partition_counts[topics].sum()), np.zeros(len(group.members), np.int64))
        by_turn = Ragged(np.concatenate([[0], limits.cumsum()]), _partitions(group, topics))
        return by_turn.take(inverse(group.member_hash_order))
    subscribed = np.zeros(len(group.topics), np.bool_)
    subscribed[topics] = True
    found = _assign_owned(group, topics, ids, subscribed)
    return _assign_claims(group, topics, ids, subscribed) if found is None else found


def _assign_owned(
    group: Group, topics: Int64Array, ids: Sequence[bytes], subscribed: NDArray[np.bool_]
) -> Ragged | None:
    """Return each member's partitions; None where partitions are claimed that do not exist, or by several members."""
    owners, sizes = np.full(group.partition_count, NOBODY, np.int32), np.zeros(len(group.members), np.int64)
    claimed, counts, starts = group.owned_topics, group.partition_counts, group.partition_starts
    if not own(claimed.starts, claimed.values, group.owned_numbers, counts, starts, subscribed, owners, sizes):
        return None
    turns = inverse(group.member_hash_order)
    limits = _quotas(int(counts[topics].sum()), sizes[group.member_hash_order])[turns]
    revoked = np.empty(0, np.int32)
    if (sizes > limits).any():
        claims = distinct_claims(group, sizes > limits)
        held = subscribed[claims.owned_topics.values]
        places = _revoked(claims, topics, ids, held, limits, turns)
        revoked = claims.ids_of(claims.owned_topics.values[places], claims.owned_numbers[places])
        owners[revoked] = REVOKED
    ends = np.concatenate([[0], limits.cumsum()])
    values = np.empty(ends[-1], np.int32)
    hand_out(group.member_hash_order, topics, starts, subscribed, owners, revoked, ends, values)
    return Ragged(ends, values)


@compiled
def own(
    claim_starts: Int64Array,
    topics: Int32Array,
    numbers: Int32Array,
    counts: Int32Array,
    partition_starts: Int64Array,
    subscribed: NDArray[np.bool_],
    owners: Int32Array,
    sizes: Int64Array,
) -> bool:
    """Fill `owners` int32[P] with each partition's claimant, `sizes` int64[M] with each member's subscribed claims.

    Return False when two members claim a partition, or it does not exist: then neither means anything.
    """
    for member in range(sizes.size):
        for claim in range(claim_starts[member], claim_starts[member + 1]):
            topic, number = topics[claim], numbers[claim]
            if number < 0 or number >= counts[topic]:
                return False
            partition = partition_starts[topic] + number
            if owners[partition] == NOBODY:
                owners[partition] = member
                sizes[member] += subscribed[topic]
            elif owners[partition] != member:
                return False
    return True


@compiled
def hand_out(
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

    Free partitions of `topics`, and behind them those `revoked`, go to the members in `order`.
    """
    ends = starts[:-1].copy()
    for topic in range(subscribed.size):
        if subscribed[topic]:
            for partition in range(partition_starts[topic], partition_starts[topic + 1]):
                if owners[partition] >= 0:
                    values[ends[owners[partition]]] = partition
                    ends[owners[partition]] += 1
    turn = 0
    for place in range(topics.size + 1):
        begin, end = 0, revoked.size
        if place < topics.size:
            begin, end = partition_starts[topics[place]], partition_starts[topics[place] + 1]
        for index in range(begin, end):
            partition = index
            if place == topics.size:
                partition = revoked[index]
            elif owners[index] != NOBODY:
                continue
            while ends[order[turn]] == starts[order[turn] + 1]:
                turn += 1
            values[ends[order[turn]]] = partition
            ends[order[turn]] += 1


def _partitions(group: Group, topics: Int64Array) -> Int32Array:
    """Return the partitions of these topics, topic by topic."""
    return Ragged(group.partition_starts, np.arange(group.partition_count, dtype=np.int32)).take(topics).values


def _assign_claims(group: Group, topics: Int64Array, ids: Sequence[bytes], subscribed: NDArray[np.bool_]) -> Ragged:
    """Return each member's partitions, also where claims overlap or name partitions that do not exist."""
    turns, claims = inverse(group.member_hash_order), distinct_claims(group)
    held = subscribed[claims.owned_topics.values]
    sizes = np.bincount(claims.owned_topics.rows[held], minlength=len(turns))
    limits = _quotas(int(group.partition_counts[topics].sum()), sizes[group.member_hash_order])[turns]
    partitions = claims.ids_of(claims.owned_topics.values, claims.owned_numbers)
    taken = np.zeros(group.partition_count + group.nonexistent_count, np.bool_)
    taken[partitions[held]] = True
    free = _partitions(group, topics)
    free = free[~taken[free]]
    if (sizes > limits).any():
        revoked = _revoked(claims, topics, ids, held, limits, turns)
        held[revoked] = False
        free = np.concatenate([free, partitions[revoked]])
    kept = Ragged(claims.owned_topics.starts, partitions).where(held)
    room = (limits - kept.lengths)[group.member_hash_order]
    if len(free) > room.sum():
        raise PartitionAssignorError("Partitions were left unassigned")
    starts = np.concatenate([[0], np.minimum(room.cumsum(), len(free))])
    return kept.then(Ragged(starts, free).take(turns))


def _revoked(
    claims: Group,
    topics: Int64Array,
    ids: Sequence[bytes],
    held: NDArray[np.bool_],
    limits: Int64Array,
    turns: Int64Array,
) -> Int64Array:
    """Return the places of the claims that members must give up, int64, in the order in which Kafka iterates them."""
    order, starts = walk_order(claims, topics, ids), claims.owned_topics.starts
    before = np.concatenate([[0], held[order].cumsum()])
    rank = before[:-1] - np.repeat(before[starts[:-1]], claims.owned_topics.lengths)
    revoked = order[held[order] & (rank >= np.repeat(limits, claims.owned_topics.lengths))]
    by_turn = np.argsort(turns[claims.owned_topics.rows[revoked]], kind="stable")
    return np.asarray(revoked[by_turn])


def distinct_claims(group: Group, chosen: NDArray[np.bool_] | None = None) -> Group:
    """Return the group with each claim once: those of `recorded` members as listed, others by (topic, number).

    Members who are not `chosen`, bool[M], claim nothing.
    """
    claims, numbers = group.owned_topics, group.owned_numbers
    members = claims.rows
    order = np.lexsort((numbers, claims.values, members))
    steps = np.diff(np.stack([numbers, claims.values, members])[:, order])
    fresh = np.concatenate([np.ones(min(1, len(order)), np.bool_), (steps != 0).any(axis=0)])
    if chosen is not None:
        fresh &= chosen[members[order]]
    order = order[fresh]
    for member in group.recorded:
        begin, end = np.searchsorted(members[order], [member, member + 1])
        order[begin:end].sort()
    lengths = np.bincount(members[order], minlength=len(group.members))
    once = Ragged(np.concatenate([[0], lengths.cumsum()]), claims.values[order])
    return attrs.evolve(group, owned_topics=once, owned_numbers=numbers[order])


def _quotas(partition_count: int, held_sizes: Int64Array) -> Int64Array:
    """Return int64[M]: the quota of each member, in the order of Java's map, as `held_sizes` are."""
    least, extra = divmod(partition_count, len(held_sizes))
    quotas = np.full(len(held_sizes), least, np.int64)
    for turn, held_size in enumerate(held_sizes.tolist()):
        if extra > 0 and (held_size > least or len(quotas) - turn <= extra):
            quotas[turn] += 1
            extra -= 1
    return quotas
