"""Order what members hold as the group coordinator's maps and sets are walked.

What it decides: in which order the homogeneous uniform assignor meets a member's partitions, and so which of them it
takes away when the member holds too many. The order in which they are listed does not matter.

How:
The coordinator keeps a member's partitions in a HashMap from topic ids to HashSets of numbers, both filled from the
record of its target assignment. The topics of that record stand in the order in which partitions were first
given: that of the set of subscribed topics (`topic_order`), with topics that are no longer subscribed behind them.
Numbers are put in ascending. A set made from n numbers has a table for n, so that a number beyond the table comes
before smaller ones. Bins of more than eight keys are rare, and left to `broker.java.hash_table`.

Cost: partitions; and n log n for the n topics of each member.

Example: of a topic a member holds 0, 1 and 16: in a table of 16 bins, 16 is met right after 0:

    >>> walked_numbers([0, 1, 16])
    [0, 16, 1]

Left out: traces of earlier assignments in the order of one bin.

Source: org.apache.kafka.coordinator.group.modern.Assignment.fromRecord and modern.TopicIds, 4.3; java.util.HashMap,
Java 17.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled
from broker.java.hash_order import string_places, uuid_hashes, uuid_key, uuid_places
from broker.java.hash_table import TABLE_SIZE_MIN, HashTable
from broker.java.tree_bin import TreeKey
from placement.consumer.group import Group


def topic_order(group: Group, ids: Sequence[bytes]) -> Int64Array:
    """Return the topics of a homogeneous group, int64, in the order in which the coordinator's set of `ids` is walked.

    A member's names are sent in ascending order, kept in a HashSet, and looked up for the HashSet of ids.
    """
    # Topics of a group stand in Java's order.
    named = np.unique(group.subscribed.row(0))
    first = named[string_places([group.topics[topic] for topic in named.tolist()], copied=True)].astype(np.int64)
    return first[uuid_places([ids[topic] for topic in first.tolist()], copied=True)]


def walk_order(group: Group, topics: Int64Array, ids: Sequence[bytes]) -> Int64Array:
    """Return the places of the claims, int64, row by row, each row in the order in which Kafka meets its partitions.

    Each member's claims are sorted by (topic, number), each once; `topics` are those subscribed, in the order of
    `topic_order`; `ids` are those of all topics.
    """
    claimed, numbers = group.owned_topics, group.owned_numbers
    ranks = len(topics) + np.arange(len(group.topics), dtype=np.int64)
    ranks[topics] = np.arange(len(topics))
    spread = uuid_hashes(ids)
    spread ^= spread >> np.uint32(16)
    order = np.empty(len(numbers), np.int64)
    crowded = np.zeros(len(group.members), np.bool_)
    walk_rows(claimed.starts, claimed.values, numbers, ranks, spread, order, crowded)
    for member in np.flatnonzero(crowded).tolist():
        begin, end = claimed.starts[member : member + 2].tolist()
        row = claimed.values[begin:end].tolist(), numbers[begin:end].tolist()
        order[begin:end] = begin + np.array(readable_row(*row, ranks.tolist(), ids, spread.view(np.int32).tolist()))
    return order


def readable_row(
    topics: Sequence[int], numbers: Sequence[int], ranks: Sequence[int], ids: Sequence[bytes], spread: Sequence[int]
) -> list[int]:
    """Return the places of one member's partitions, sorted by (topic, number), in the order of the walk.

    `ranks`, `ids` and `spread`, signed hashes of the ids, are those of all topics.
    """
    held: dict[int, list[int]] = {}
    places = {}
    for place, (topic, number) in enumerate(zip(topics, numbers, strict=True)):
        held.setdefault(topic, []).append(number)
        places[topic, number] = place
    keys: dict[TreeKey, int] = {
        (spread[topic], True, uuid_key(ids[topic])): topic for topic in sorted(held, key=ranks.__getitem__)
    }
    table = HashTable()
    for key in keys:
        table.add(key)
    return [places[keys[key], number] for key in table for number in walked_numbers(held[keys[key]])]


def walked_numbers(numbers: Sequence[int]) -> list[int]:
    """Return ascending, distinct numbers in the order in which `new HashSet<>(numbers)` iterates them."""
    asked = max(TABLE_SIZE_MIN, len(numbers) * 4 // 3 + 1)
    table = HashTable(1 << (asked - 1).bit_length())
    for number in numbers:
        table.add((number ^ number >> 16, True, b""))
    # A number below 2^31 comes back from its spread hash as it came.
    return [spread ^ spread >> 16 for spread, _, _ in table]


@compiled
def walk_rows(
    starts: Int64Array,
    topics: Int32Array,
    numbers: Int32Array,
    ranks: Int64Array,
    spread: NDArray[np.uint32],
    order: Int64Array,
    crowded: NDArray[np.bool_],
) -> None:
    """Fill `order` int64[N] with the places of the partitions, row by row, each in the order of the walk.

    Rows are sorted by (topic, number); `ranks` and `spread` are those of all topics. `crowded` bool[rows] marks rows
    with a bin of more than eight keys, which stay unfilled. The readable twin is `readable_row` for each row.
    """
    for row in range(len(starts) - 1):
        begin, end = starts[row], starts[row + 1]
        firsts = np.empty(end - begin + 1, np.int64)
        count = 0
        for place in range(begin, end):
            if place == begin or topics[place] != topics[place - 1]:
                firsts[count] = place
                count += 1
        firsts[count] = end
        by_rank = np.argsort(ranks[topics[firsts[:count]]])
        hashes = spread[topics[firsts[:count]]][by_rank]
        # A map grows as topics are put in; each of its tables must have had short bins only.
        size = 16
        while True:
            bins = np.zeros(size, np.int64)
            for place in range(min(count, size * 3 // 4 + 1)):
                bins[hashes[place] & np.uint32(size - 1)] += 1
            if bins.max() > 8:
                crowded[row] = True
                break
            if count * 4 <= size * 3:
                break
            size *= 2
        if crowded[row]:
            continue
        filled = begin
        ends = bins.cumsum()
        turns = np.empty(count, np.int64)
        for place in range(count - 1, -1, -1):
            bin_index = hashes[place] & np.uint32(size - 1)
            ends[bin_index] -= 1
            turns[ends[bin_index]] = by_rank[place]
        for turn in turns:
            first, last = firsts[turn], firsts[turn + 1]
            size = 16
            while size < (last - first) * 4 // 3 + 1:
                size *= 2
            if numbers[last - 1] < size:
                for place in range(first, last):
                    order[filled] = place
                    filled += 1
                continue
            bins = np.zeros(size + 1, np.int64)
            for place in range(first, last):
                bins[((numbers[place] ^ (numbers[place] >> 16)) & (size - 1)) + 1] += 1
            if bins.max() > 8:
                crowded[row] = True
                break
            bins = filled + bins.cumsum()
            for place in range(first, last):
                bin_index = (numbers[place] ^ (numbers[place] >> 16)) & (size - 1)
                order[bins[bin_index]] = place
                bins[bin_index] += 1
            filled += last - first
