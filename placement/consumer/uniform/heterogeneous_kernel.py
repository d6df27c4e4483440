"""Compute the heterogeneous uniform assignment on arrays, for sound claims.

Gives what `placement.consumer.uniform.heterogeneous` gives, which says why, for groups in which every subscribed topic
exists and no subscriber claims a partition that does not exist or that is claimed once more.

How:
Owners and sizes are arrays. The two levels of a topic are seven numbers, as in `placement.consumer.uniform.levels`.
What a subscriber can give of a topic is a chain through its partitions, the last of them first.

Cost: rounds x (partitions + subscriptions). Source: as its readable twin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled, compiled_with
from placement.consumer.assignment import NOBODY
from placement.consumer.group import NO_METADATA, Group
from placement.consumer.ragged import Ragged, grouped, inverse
from placement.consumer.subscribers import subscribers_of
from placement.consumer.topic_ids import topic_ids
from placement.consumer.uniform.heterogeneous import ROUND_COUNT_MAX

LOW_END: Final = 0
LOW_LEVEL: Final = 1
NEXT_LOW: Final = 2
HIGH_START: Final = 3
HIGH_END: Final = 4
HIGH_LEVEL: Final = 5
NEXT_HIGH: Final = 6
LEVEL_FIELD_COUNT: Final = 7
"""The fields of `placement.consumer.uniform.levels.Levels`, as places in an array."""


def assign_sound(group: Group) -> Ragged | None:
    """Return each member's partitions by id; None where the readable twin is to answer, or to refuse."""
    if (group.partition_counts[group.subscribed.values] == NO_METADATA).any():
        return None
    order, counts = group.member_hash_order, group.partition_counts
    owners = np.full(group.partition_count, NOBODY, np.int32)
    sizes = np.zeros(len(order), np.int64)
    wanted, claimed = group.subscribed, group.owned_topics
    if not take_claims(
        order,
        wanted.starts,
        wanted.values,
        claimed.starts,
        claimed.values,
        group.owned_numbers,
        counts,
        group.partition_starts,
        owners,
        sizes,
    ):
        return None
    sharing = subscribers_of(group, order)
    places = inverse(order)[sharing.values]
    topics = _topics_in_order(counts, sharing.lengths, topic_ids(group))
    share_out(topics, group.partition_starts, sharing.starts, places, ROUND_COUNT_MAX, owners, sizes)
    # Nobody is -1, and so stands behind the last member.
    return grouped(np.append(order, NOBODY)[owners], len(order))


def _topics_in_order(counts: Int32Array, sharer_counts: Int64Array, ids: Sequence[bytes]) -> Int64Array:
    """Return the topics that anybody subscribes to, int64, as `Shares.topics_in_order`."""
    shared = np.flatnonzero(sharer_counts)
    halves = np.frombuffer(b"".join(ids), ">i8").reshape(-1, 2)[shared]
    sharers = sharer_counts[shared]
    return shared[np.lexsort((halves[:, 1], halves[:, 0], sharers, -(counts[shared] / sharers)))]


@compiled
def take_claims(
    order: Int64Array,
    wanted_starts: Int64Array,
    wanted: Int32Array,
    claimed_starts: Int64Array,
    claimed: Int32Array,
    numbers: Int32Array,
    counts: Int32Array,
    partition_starts: Int64Array,
    owners: Int32Array,
    sizes: Int64Array,
) -> bool:
    """Fill `owners` int32[P] and `sizes` int64[M] with what members of `order` keep; return whether claims are sound.

    Rows of `wanted` are the topics of each member, rows of `claimed` and `numbers` its partitions; `counts` are those
    of the topics.
    """
    reader = np.full(len(counts), -1, np.int64)
    for place in range(len(order)):
        member = order[place]
        for topic in wanted[wanted_starts[member] : wanted_starts[member + 1]]:
            reader[topic] = place
        for claim in range(claimed_starts[member], claimed_starts[member + 1]):
            topic, number = claimed[claim], numbers[claim]
            if reader[topic] != place:
                continue
            if number < 0 or number >= counts[topic]:
                return False
            partition = partition_starts[topic] + number
            if owners[partition] >= 0:
                return False
            owners[partition] = place
            sizes[place] += 1
    return True


def _begin_levels(subscribers: Int64Array, sizes: Int64Array, level: Int64Array) -> Int64Array:
    """Return a topic's subscribers by (size, place), and set `level` to the levels before any partition moves."""
    keys = np.sort(sizes[subscribers] * len(sizes) + subscribers)
    members = keys % len(sizes)
    level[LOW_END], level[LOW_LEVEL], level[NEXT_LOW] = 0, sizes[members[0]] - 1, 0
    level[HIGH_START], level[HIGH_END] = len(members), len(members)
    level[HIGH_LEVEL], level[NEXT_HIGH] = sizes[members[-1]] + 1, len(members) - 1
    return members


def _next_least_loaded(level: Int64Array, members: Int64Array, sizes: Int64Array) -> int:
    if level[NEXT_LOW] >= level[LOW_END]:
        level[LOW_LEVEL] += 1
        while level[LOW_END] < len(members) and sizes[members[level[LOW_END]]] == level[LOW_LEVEL]:
            level[LOW_END] += 1
        level[NEXT_LOW] = 0
    level[NEXT_LOW] += 1
    return int(members[level[NEXT_LOW] - 1])


def _next_most_loaded(level: Int64Array, members: Int64Array, sizes: Int64Array) -> int:
    """Return the subscriber that gives up a partition; -1 when no subscriber can."""
    if level[NEXT_HIGH] < level[HIGH_START]:
        if level[HIGH_END] <= level[HIGH_START] and level[HIGH_START] > 0:
            level[HIGH_LEVEL] = sizes[members[level[HIGH_START] - 1]]
        else:
            level[HIGH_LEVEL] -= 1
        while level[HIGH_START] > 0 and sizes[members[level[HIGH_START] - 1]] == level[HIGH_LEVEL]:
            level[HIGH_START] -= 1
        level[NEXT_HIGH] = level[HIGH_END] - 1
    if level[NEXT_HIGH] < 0:
        return -1
    level[NEXT_HIGH] -= 1
    return int(members[level[NEXT_HIGH] + 1])


def _next_giver(level: Int64Array, members: Int64Array, sizes: Int64Array, last: Int64Array) -> int:
    """Return the next of the most loaded subscribers that has a partition to give; -1 when no subscriber has."""
    giver = _next_most_loaded(level, members, sizes)
    while giver >= 0 and last[giver] < 0:
        place, end = level[NEXT_HIGH] + 1, level[HIGH_END] - 1
        members[place], members[end] = members[end], members[place]
        level[HIGH_END] = end
        giver = _next_most_loaded(level, members, sizes)
    return giver


def _balance_topic(
    begin: int,
    end: int,
    subscribers: Int64Array,
    level: Int64Array,
    last: Int64Array,
    before: Int64Array,
    owners: Int32Array,
    sizes: Int64Array,
) -> bool:
    """Move partitions `begin` to `end` until their subscribers are level; return whether any moved.

    `last` int64[M] and `before` int64[P] are overwritten with the last partition of each subscriber, and with the one
    before each.
    """
    held = sizes[subscribers]
    if held.max() - held.min() <= 1:
        return False
    members = _begin_levels(subscribers, sizes, level)
    last[subscribers] = -1
    for partition in range(begin, end):
        before[partition] = last[owners[partition]]
        last[owners[partition]] = partition
    moved = False
    while level[HIGH_LEVEL] - level[LOW_LEVEL] > 1:
        giver = _next_giver(level, members, sizes, last)
        if giver < 0:
            break
        partition = last[giver]
        last[giver] = before[partition]
        receiver = _next_least_loaded(level, members, sizes)
        if level[HIGH_LEVEL] - level[LOW_LEVEL] <= 1:
            break
        owners[partition] = receiver
        sizes[giver] -= 1
        sizes[receiver] += 1
        moved = True
    return moved


@compiled_with(_begin_levels, _next_least_loaded, _next_most_loaded, _next_giver, _balance_topic)
def share_out(
    topics: Int64Array,
    partition_starts: Int64Array,
    starts: Int64Array,
    places: Int64Array,
    round_count_max: int,
    owners: Int32Array,
    sizes: Int64Array,
) -> None:
    """Complete `owners` int32[P] and `sizes` int64[M]: the free partitions of `topics` in turn, then the rounds.

    Rows of `places` from `starts` int64[T + 1] are each topic's subscribers, ascending.
    """
    level = np.empty(LEVEL_FIELD_COUNT, np.int64)
    for topic in topics:
        begin, end = partition_starts[topic], partition_starts[topic + 1]
        while begin < end and owners[begin] >= 0:
            begin += 1
        if begin < end:
            members = _begin_levels(places[starts[topic] : starts[topic + 1]], sizes, level)
            for partition in range(begin, end):
                if owners[partition] < 0:
                    receiver = _next_least_loaded(level, members, sizes)
                    owners[partition] = receiver
                    sizes[receiver] += 1
    last, before = np.empty(len(sizes), np.int64), np.empty(len(owners), np.int64)
    last_changed = -1
    for _ in range(round_count_max):
        for topic in topics:
            if starts[topic + 1] - starts[topic] < 2:
                continue
            if topic == last_changed:
                return
            begin, end = partition_starts[topic], partition_starts[topic + 1]
            subscribers = places[starts[topic] : starts[topic + 1]]
            if _balance_topic(begin, end, subscribers, level, last, before, owners, sizes) or last_changed < 0:
                last_changed = topic
