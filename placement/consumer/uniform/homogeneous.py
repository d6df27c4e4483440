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

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int64Array
from placement.consumer.assignment import NOBODY
from placement.consumer.errors import PartitionAssignorError
from placement.consumer.group import NO_METADATA, Group
from placement.consumer.ragged import Ragged, grouped, inverse
from placement.consumer.topic_ids import id_text
from placement.consumer.uniform.holdings import walk_order


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
    turns, partition_count = inverse(group.member_hash_order), int(group.partition_counts[topics].sum())
    free = Ragged(group.partition_starts, np.arange(group.partition_count, dtype=np.int32)).take(topics).values
    if not len(group.owned_numbers):
        limits = _quotas(partition_count, np.zeros(len(turns), np.int64))
        return Ragged(np.concatenate([[0], limits.cumsum()]), free).take(turns)
    claims = sorted_claims(group)
    subscribed = np.zeros(len(group.topics), np.bool_)
    subscribed[topics] = True
    held = subscribed[claims.owned_topics.values]
    sizes = np.bincount(claims.owned_topics.rows[held], minlength=len(turns))
    limits = _quotas(partition_count, sizes[group.member_hash_order])[turns]
    partitions = claims.ids_of(claims.owned_topics.values, claims.owned_numbers)
    taken = np.zeros(group.partition_count + group.nonexistent_count, np.bool_)
    taken[partitions[held]] = True
    free = free[~taken[free]]
    if (sizes > limits).any():
        revoked = _revoked(claims, topics, ids, held, limits)
        held[revoked] = False
        by_turn = np.argsort(turns[claims.owned_topics.rows[revoked]], kind="stable")
        free = np.concatenate([free, partitions[revoked[by_turn]]])
    kept = Ragged(claims.owned_topics.starts, partitions).where(held)
    room = (limits - kept.lengths)[group.member_hash_order]
    if len(free) > room.sum():
        raise PartitionAssignorError("Partitions were left unassigned")
    starts = np.concatenate([[0], np.minimum(room.cumsum(), len(free))])
    return kept.then(Ragged(starts, free).take(turns))


def _revoked(
    claims: Group, topics: Int64Array, ids: Sequence[bytes], held: NDArray[np.bool_], limits: Int64Array
) -> Int64Array:
    """Return the claims that members hold beyond their limits, int64, in the order in which they are met."""
    order, starts = walk_order(claims, topics, ids), claims.owned_topics.starts
    before = np.concatenate([[0], held[order].cumsum()])
    rank = before[:-1] - np.repeat(before[starts[:-1]], claims.owned_topics.lengths)
    revoked: Int64Array = order[held[order] & (rank >= np.repeat(limits, claims.owned_topics.lengths))]
    return revoked


def sorted_claims(group: Group) -> Group:
    """Return the group with each member's claims sorted by (topic, number), each once."""
    topics, numbers = group.owned_topics, group.owned_numbers
    is_sound = not group.nonexistent_count and len(group.owned.values) == len(numbers)
    if is_sound and (np.bincount(group.owned.values, minlength=1) <= 1).all():
        owners = np.full(group.partition_count, NOBODY, np.int32)
        owners[group.owned.values] = group.owned.rows
        by_id = grouped(owners, len(group.members))
        values = group.partition_topics[by_id.values]
        return attrs.evolve(
            group, owned_topics=Ragged(by_id.starts, values), owned_numbers=group.partition_numbers[by_id.values]
        )
    members, values = topics.rows, topics.values
    order = np.lexsort((numbers, values, members))
    members, values, numbers = members[order], values[order], numbers[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (np.diff(numbers) != 0) | (np.diff(values) != 0) | (np.diff(members) != 0)
    lengths = np.bincount(members[fresh], minlength=len(group.members))
    once = Ragged(np.concatenate([[0], lengths.cumsum()]), values[fresh])
    return attrs.evolve(group, owned_topics=once, owned_numbers=numbers[fresh])


def _quotas(partition_count: int, held_sizes: Int64Array) -> Int64Array:
    """Return int64[M]: the quota of each member, in the order of Java's map, as `held_sizes` are."""
    least, extra = divmod(partition_count, len(held_sizes))
    quotas = np.full(len(held_sizes), least, np.int64)
    for turn, held_size in enumerate(held_sizes.tolist()):
        if extra > 0 and (held_size > least or len(quotas) - turn <= extra):
            quotas[turn] += 1
            extra -= 1
    return quotas
