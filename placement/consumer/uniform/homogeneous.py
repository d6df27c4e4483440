"""Compute the uniform assignment when all members subscribe to the same topics.

Constraints: with N partitions and C members, N mod C members have N div C + 1 partitions, and the others N div C.
A member passes its turn to have one more when it holds no more than N div C, as long as enough members are left that
could. In 3.9 the first in the order of Java's map have one more, whatever they hold, so that more moves than need be.

How: a member keeps what it holds of the topics subscribed, up to its quota, in the order of
`placement.consumer.uniform.holdings`; the rest is revoked. Partitions that nobody held, topics in the order of Java's
set and numbers ascending, and behind them the revoked ones go to the members that have room, each filled up before the
next.

Cost: partitions.

Example: t of 5; a holds 0 to 4, b nothing, b comes first in Java's order: a keeps 0, 1 and 2, b gets 3 and 4.

Source: UniformHomogeneousAssignmentBuilder, 3.9 and 4.0 to 4.3.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from broker.cluster import Int64Array
from broker.releases import Release
from placement.consumer.errors import PartitionAssignorError
from placement.consumer.group import NO_METADATA, Group
from placement.consumer.ragged import Ragged, inverse
from placement.consumer.topic_ids import id_text, topic_ids

PASSING_SINCE: Final = Release("4.0")
"""The first release in which members pass their turn to have one more."""


def assign_homogeneous(group: Group, topics: Int64Array, *, release: Release) -> Ragged:
    """Return each member's partitions, those kept first; raise PartitionAssignorError as Kafka does.

    `topics` int64 are those subscribed, each once, in the order of Java's set.
    """
    _check_metadata(group, topics)
    counts = group.partition_counts[topics].astype(np.int64)
    turns = inverse(group.member_hash_order)
    held = _held(group, topics)
    held_sizes = held.lengths[group.member_hash_order]
    limits = quotas(int(counts.sum()), held_sizes, release=release)[turns]
    places = np.arange(len(held.values)) - np.repeat(held.starts[:-1], held.lengths)
    keeps = places < np.repeat(limits, held.lengths)
    kept = held.where(keeps)
    free = Ragged(group.partition_starts, np.arange(group.partition_count, dtype=np.int32)).take(topics).values
    if len(held.values):
        taken = np.zeros(group.partition_count + group.phantom_count, np.bool_)
        taken[group.owned.values] = True
        revoked = held.values[~keeps][np.argsort(turns[held.rows[~keeps]], kind="stable")]
        free = np.concatenate([free[~taken[free]], revoked])
    room = (limits - kept.lengths)[group.member_hash_order]
    if len(free) > room.sum():
        raise PartitionAssignorError("Partitions were left unassigned")
    starts = np.concatenate([[0], np.minimum(room.cumsum(), len(free))])
    return kept.then(Ragged(starts, free).take(turns))


def quotas(partition_count: int, held_sizes: Int64Array, *, release: Release) -> Int64Array:
    """Return int64[M]: the quota of each member, in the order of Java's map, as `held_sizes` are."""
    least, extra = divmod(partition_count, len(held_sizes))
    quotas = np.full(len(held_sizes), least, np.int64)
    if release < PASSING_SINCE:
        quotas[:extra] += 1
        return quotas
    for turn, held_size in enumerate(held_sizes.tolist()):
        if extra > 0 and (held_size > least or len(quotas) - turn <= extra):
            quotas[turn] += 1
            extra -= 1
    return quotas


def _check_metadata(group: Group, topics: Int64Array) -> None:
    missing = topics[group.partition_counts[topics] == NO_METADATA]
    if len(missing):
        text = id_text(topic_ids(group)[int(missing[0])])
        raise PartitionAssignorError(
            f"Members are subscribed to topic {text} which doesn't exist in the topic metadata."
        )


def _held(group: Group, topics: Int64Array) -> Ragged:
    """Return the partitions of these topics that each member holds."""
    subscribed = np.zeros(len(group.topics), np.bool_)
    subscribed[topics] = True
    return group.owned.where(subscribed[group.partition_topics[group.owned.values]])
