"""Order the partitions of each member as the group coordinator's HashMap and HashSets iterate.

What it decides: in which order the homogeneous uniform assignor meets a member's partitions, and so which of them it
takes away when the member holds too many. The order in which they are listed does not matter.

How: the coordinator keeps a member's partitions in a HashMap from topic ids to HashSets of numbers, both filled from
the record of its target assignment. The topics of that record stand in the order of the set of subscribed topics
(`topic_order`), with topics that are no longer subscribed behind them; numbers are put in ascending. A set made from n
numbers has a table for n, so that a number beyond the table comes before smaller ones. Keys of one bin stand in the
order in which they were put in, also after the table has grown; a bin of more than eight is a tree, and its member's
row is walked by `broker.java.hash_table`. Left out: traces of earlier assignments in the order of one bin.

    >>> walked_numbers([0, 1, 16])
    [0, 16, 1]

Source: org.apache.kafka.coordinator.group.modern.Assignment.fromRecord and modern.TopicIds, 4.3; java.util.HashMap,
Java 17.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.java.hash_order import string_places, uuid_hashes, uuid_key, uuid_places
from broker.java.hash_table import TABLE_SIZE_MIN, HashTable
from broker.java.tree_bin import TreeKey
from placement.consumer.group import Group
from placement.consumer.ragged import inverse

LIST_KEY_COUNT_MAX: Final = 8  # HashMap.TREEIFY_THRESHOLD: a bin of more keys is a tree, or its table grows.


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
    members, topics_of = claimed.rows, claimed.values
    ranks = len(topics) + np.arange(len(group.topics), dtype=np.int64)
    ranks[topics] = np.arange(len(topics))
    spread = uuid_hashes(ids)
    spread ^= spread >> np.uint32(16)
    begins = np.ones(len(numbers), np.bool_)
    begins[1:] = (np.diff(topics_of) != 0) | (np.diff(members) != 0)
    heads, run = np.flatnonzero(begins), np.cumsum(begins) - 1  # A run is a topic of a member.
    owners, held = members[heads], topics_of[heads]
    topic_counts = np.bincount(owners, minlength=len(group.members))
    topic_bins, crowded = _topic_bins(owners, ranks[held], spread[held].astype(np.int64), topic_counts)
    tables = _powers(np.diff(heads, append=len(numbers)) * 4 // 3 + 1)
    number_bins = (numbers ^ numbers >> 16) & (tables[run] - 1)
    codes = inverse(np.lexsort((ranks[held], topic_bins, owners)))[run] << 32 | number_bins
    order = np.argsort(codes, kind="stable")  # In a bin numbers ascend already.
    crowded[members[_in_long_runs(codes[order], order)]] = True
    for member in np.flatnonzero(crowded).tolist():
        begin, end = claimed.starts[member : member + 2].tolist()
        row = topics_of[begin:end].tolist(), numbers[begin:end].tolist()
        order[begin:end] = begin + np.array(_walked_row(*row, ranks.tolist(), ids, spread.view(np.int32).tolist()))
    return order


def _topic_bins(
    owners: Int32Array, ranks: Int64Array, hashes: Int64Array, counts: Int64Array
) -> tuple[Int64Array, NDArray[np.bool_]]:
    """Return the bin of each run in its member's HashMap; and bool[M], whose map had a bin of over eight as it grew."""
    crowded = np.zeros(len(counts), np.bool_)
    by_rank = np.lexsort((ranks, owners))
    place = np.empty(len(owners), np.int64)
    place[by_rank] = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    tables = _powers(-(-counts * 4 // 3))
    size = TABLE_SIZE_MIN
    while size <= tables.max(initial=0):
        codes = owners.astype(np.int64) << 32 | hashes & (size - 1)
        entered = np.flatnonzero(place < size * 3 // 4 + 1)
        entered = entered[np.argsort(codes[entered], kind="stable")]
        crowded[owners[_in_long_runs(codes[entered], entered)]] = True
        size *= 2
    return hashes & (tables[owners] - 1), crowded


def _powers(least: Int64Array) -> Int64Array:
    """Return the table sizes of HashMaps of these capacities: the next powers of two, at least Java's minimum."""
    bits = np.frexp((np.maximum(least, TABLE_SIZE_MIN) - 1).astype(np.float64))[1]
    return np.asarray(np.left_shift(np.int64(1), bits.astype(np.int64)))


def _in_long_runs(codes: Int64Array, places: Int64Array) -> Int64Array:
    """Return those of `places` whose sorted codes occur more than eight times."""
    changes = np.ones(len(codes), np.bool_)
    changes[1:] = np.diff(codes) != 0
    number = np.cumsum(changes) - 1
    return np.asarray(places[np.bincount(number)[number] > LIST_KEY_COUNT_MAX])


def _walked_row(
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
