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

Source: UniformHeterogeneousAssignmentBuilder and its MemberAssignmentBalancer, 4.0 to 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from placement.consumer.assignment import NOBODY
from placement.consumer.errors import PartitionAssignorError, PartitionIndexError
from placement.consumer.group import NO_METADATA, Group
from placement.consumer.ragged import Ragged, grouped, inverse, ranges
from placement.consumer.subscribers import subscribers_of
from placement.consumer.topic_ids import id_text

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


def assign_heterogeneous(group: Group, ids: Sequence[bytes]) -> tuple[Ragged, Int64Array]:
    """Return each member's partitions by id, and the topics in the order in which they were assigned.

    `ids` are those of all topics. Raises PartitionAssignorError and PartitionIndexError as Kafka throws.
    """
    order, counts = group.member_hash_order, group.partition_counts
    missing = group.subscribed.take(order).values
    missing = missing[counts[missing] == NO_METADATA]
    if missing.size:
        what = f"Members are subscribed to topic {id_text(ids[missing[0]])} which doesn't exist in the topic metadata."
        raise PartitionAssignorError(what)
    owners, sizes, extras, first_extras = _take_claims(group, order)
    sharing = subscribers_of(group, order)
    places = inverse(order)[sharing.values]
    topics = _topics_in_order(counts, sharing.lengths, ids)
    share_out(
        topics, group.partition_starts, sharing.starts, places, ROUND_COUNT_MAX, owners, sizes, extras, first_extras
    )
    # Nobody is -1, and so stands behind the last member.
    rows = grouped(np.append(order, NOBODY)[owners], len(order))
    return (_with_extras(rows, order, extras, first_extras) if len(extras) > 1 else rows), topics


def _with_extras(rows: Ragged, order: Int64Array, extras: Int64Array, first_extras: Int32Array) -> Ragged:
    """Return the rows with the partitions that other claimants than their owners still have."""
    lists = [set(row) for row in rows.lists()]
    for partition in np.flatnonzero(first_extras != NOBODY).tolist():
        extra = int(first_extras[partition])
        while extra != NOBODY:
            if extras[extra, 0] != NOBODY:
                lists[order[extras[extra, 0]]].add(partition)
            extra = int(extras[extra, 1])
    return Ragged.of(sorted(row) for row in lists)


def _topics_in_order(counts: Int32Array, sharer_counts: Int64Array, ids: Sequence[bytes]) -> Int64Array:
    """Return the topics that anybody subscribes to, int64, in the order in which Kafka assigns them."""
    shared = np.flatnonzero(sharer_counts)
    halves = np.frombuffer(b"".join(ids), ">i8").reshape(-1, 2)[shared]
    sharers = sharer_counts[shared]
    return shared[np.lexsort((halves[:, 1], halves[:, 0], sharers, -(counts[shared] / sharers)))]


def _take_claims(group: Group, order: Int64Array) -> tuple[Int32Array, Int64Array, Int64Array, Int32Array]:
    """Return `owners` int32[P] and `sizes` int64[M] of what members keep, as places in `order`, and former claimants.

    `extras` int64[N, 2] are claimants of a partition that a later one has, each with the next of the same partition,
    and a last row that is none; `first_extras` int32[P] is the first. Raises PartitionIndexError as Kafka throws.
    """
    claims = group.owned_topics
    taken = claims.take(order)
    numbers = group.owned_numbers[ranges(claims.starts[:-1][order], claims.lengths[order])]
    topics, places, wanted = taken.values, taken.rows, group.subscribed
    topic_count = len(group.topics)
    kept = np.isin(order[places] * topic_count + topics, wanted.rows.astype(np.int64) * topic_count + wanted.values)
    topics, places, numbers = topics[kept], places[kept], numbers[kept]
    counts = group.partition_counts[topics]
    strange = np.flatnonzero((numbers < 0) | (numbers >= counts))
    if strange.size:
        raise PartitionIndexError(f"Index {numbers[strange[0]]} out of bounds for length {counts[strange[0]]}")
    codes = np.unique(places.astype(np.int64) * group.partition_count + group.partition_starts[topics] + numbers)
    place_of, partitions = np.divmod(codes, max(group.partition_count, 1))
    owners = np.full(group.partition_count, NOBODY, np.int32)
    owners[partitions] = place_of  # Of several claimants the last.
    extras, first_extras = [], np.full(group.partition_count, NOBODY, np.int32)
    for claim in np.flatnonzero(owners[partitions] != place_of).tolist():
        partition = int(partitions[claim])
        extras.append((int(place_of[claim]), int(first_extras[partition])))
        first_extras[partition] = len(extras) - 1
    extras.append((NOBODY, NOBODY))
    return owners, np.bincount(place_of, minlength=len(order)), np.array(extras, np.int64), first_extras


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
