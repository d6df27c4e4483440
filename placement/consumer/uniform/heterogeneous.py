"""Compute the uniform assignment when members subscribe to different topics.

Goals, most important first: subscribers of a topic differ by one at most; members keep what they hold.

How:
1. Members keep what they hold of topics they subscribe to.
2. Topics are sorted by (partitions per subscriber, descending; subscribers; id). The free partitions of each go to the
   least loaded subscribers.
3. In at most 16 rounds over the topics with several subscribers, in the same order, the last partition of each most
   loaded subscriber goes to a least loaded one until they differ by one at most. It ends when a round
   returns to the topic that was changed last.

Least and most loaded: a topic's subscribers are sorted once, by (partitions held, place in Java's map). From the left,
those of the lowest level get one each, left to right; then the level has risen by one, and whoever stands on it joins.
From the right, those of the highest level give one each, right to left; then the level has sunk. Who has nothing of the
topic to give is swapped to the right end of the range and left out. As in Kafka, the sizes change meanwhile and the
order does not. What a subscriber can give of a topic is a chain through its partitions, the last of them first.

A partition that several members claim stays with all of them: the last is its owner, and may give it away.

Cost: rounds x (partitions + subscriptions).

Example: t of 4 for {a, b}, u of 2 for {b}: u has 2 partitions per subscriber as t has, and fewer subscribers, so b
gets both of u; then t-0, t-1 and t-2 go to a, which begins each level, and t-3 to b.

Source: UniformHeterogeneousAssignmentBuilder and its MemberAssignmentBalancer, 4.0 to 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled, compiled_with
from placement.consumer.assignment import NOBODY
from placement.consumer.errors import PartitionAssignorError, PartitionIndexError
from placement.consumer.group import NO_METADATA, Group
from placement.consumer.ragged import Ragged, grouped, inverse
from placement.consumer.subscribers import subscribers_of
from placement.consumer.topic_ids import id_text, topic_ids

ROUND_COUNT_MAX: Final = 16  # MAX_ITERATION_COUNT: most subscriptions need two, some would go on for very long.

LOW_END: Final = 0
LOW_LEVEL: Final = 1
NEXT_LOW: Final = 2
HIGH_START: Final = 3
HIGH_END: Final = 4
HIGH_LEVEL: Final = 5
NEXT_HIGH: Final = 6
LEVEL_FIELD_COUNT: Final = 7
"""Fields of a topic's two levels, as places in an array.

[0, LOW_END) is the lowest level, [HIGH_START, HIGH_END) the highest; NEXT_LOW and NEXT_HIGH say whose turn it is.
"""


def assign_heterogeneous(group: Group) -> Ragged:
    """Return each member's partitions by id; raise PartitionAssignorError and PartitionIndexError as Kafka throws."""
    ids, order, counts = topic_ids(group), group.member_hash_order, group.partition_counts
    wanted, claimed = group.subscribed, group.owned_topics
    missing = wanted.take(order).values
    missing = missing[counts[missing] == NO_METADATA]
    if missing.size:
        what = f"Members are subscribed to topic {id_text(ids[missing[0]])} which doesn't exist in the topic metadata."
        raise PartitionAssignorError(what)
    owners = np.full(group.partition_count, NOBODY, np.int32)
    sizes = np.zeros(len(order), np.int64)
    extras = np.full((len(claimed.values) + 1, 2), NOBODY, np.int64)
    first_extras = np.full(group.partition_count, NOBODY, np.int32)
    fault, extra_count = take_claims(
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
        extras,
        first_extras,
    )
    if fault >= 0:
        count = counts[claimed.values[fault]]
        raise PartitionIndexError(f"Index {group.owned_numbers[fault]} out of bounds for length {count}")
    sharing = subscribers_of(group, order)
    places = inverse(order)[sharing.values]
    topics = _topics_in_order(counts, sharing.lengths, ids)
    share_out(
        topics, group.partition_starts, sharing.starts, places, ROUND_COUNT_MAX, owners, sizes, extras, first_extras
    )
    # Nobody is -1, and so stands behind the last member.
    rows = grouped(np.append(order, NOBODY)[owners], len(order))
    return _with_extras(rows, order, extras[:extra_count, 0], first_extras, extras[:, 1]) if extra_count else rows


def _with_extras(
    rows: Ragged, order: Int64Array, members: Int64Array, first_extras: Int32Array, following: Int64Array
) -> Ragged:
    """Return the rows with the partitions that other claimants than their owners still have."""
    lists = [set(row) for row in rows.lists()]
    for partition in np.flatnonzero(first_extras != NOBODY).tolist():
        extra = int(first_extras[partition])
        while extra != NOBODY:
            if members[extra] != NOBODY:
                lists[order[members[extra]]].add(partition)
            extra = int(following[extra])
    return Ragged.of(sorted(row) for row in lists)


def _topics_in_order(counts: Int32Array, sharer_counts: Int64Array, ids: Sequence[bytes]) -> Int64Array:
    """Return the topics that anybody subscribes to, int64, in the order in which Kafka assigns them."""
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
    extras: Int64Array,
    first_extras: Int32Array,
) -> tuple[int, int]:
    """Fill `owners` int32[P] and `sizes` int64[M] with what members of `order` keep.

    Return the claim of a partition that does not exist, or -1, and how many `extras` int64[N, 2] there are: former
    claimants, each with the next one of the same partition; `first_extras` int32[P] has the first. Rows of `wanted` are
    the topics of each member, rows of `claimed` and `numbers` its partitions.
    """
    reader = np.full(len(counts), -1, np.int64)
    extra_count = 0
    for place in range(len(order)):
        member = order[place]
        for topic in wanted[wanted_starts[member] : wanted_starts[member + 1]]:
            reader[topic] = place
        for claim in range(claimed_starts[member], claimed_starts[member + 1]):
            topic, number = claimed[claim], numbers[claim]
            if reader[topic] != place:
                continue
            if number < 0 or number >= counts[topic]:
                return claim, extra_count
            partition = partition_starts[topic] + number
            if owners[partition] == place:
                continue
            if owners[partition] >= 0:
                extras[extra_count, 0], extras[extra_count, 1] = owners[partition], first_extras[partition]
                first_extras[partition] = extra_count
                extra_count += 1
            owners[partition] = place
            sizes[place] += 1
    return -1, extra_count


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
    extras: Int64Array,
    first_extras: Int32Array,
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
        # Kafka takes it out of the giver's set, also if another member's claim had put it there before.
        extra = first_extras[partition]
        while extra >= 0:
            if extras[extra, 0] == giver:
                extras[extra, 0] = NOBODY
            extra = extras[extra, 1]
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
    extras: Int64Array,
    first_extras: Int32Array,
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
            moved = _balance_topic(begin, end, subscribers, level, last, before, owners, sizes, extras, first_extras)
            if moved or last_changed < 0:
                last_changed = topic
