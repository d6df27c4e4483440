"""Order the partitions of each member as the group coordinator's HashMap and HashSets iterate.

The coordinator keeps a member's partitions in a HashMap from topic ids to HashSets of numbers, both filled from the
record of its target assignment. A set made from n numbers has a table for n, so that a number beyond the table comes
before smaller ones; keys of one bin stand in the order in which they were put in; a bin of more than eight is a tree,
and its member's row is walked by records.py. Where the record is not known, its topics stand in the order of the set of
subscribed topics (`topic_order`), and numbers ascend.

Source: org.apache.kafka.coordinator.group.modern.Assignment.fromRecord and modern.TopicIds, 4.3.1 and 4.4.0;
java.util.HashMap, Java 17.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.java.hash_order import string_places, uuid_hashes, uuid_key, uuid_places
from broker.java.hash_table import TABLE_SIZE_MIN
from broker.java.tree_bin import TreeKey
from placement.consumer.group import Group
from placement.consumer.ragged import inverse
from placement.consumer.uniform.records import listed_record, walked

LIST_KEY_COUNT_MAX: Final = 8  # HashMap.TREEIFY_THRESHOLD: a bin of more keys is a tree, or its table grows.


def topic_order(group: Group, ids: Sequence[bytes]) -> Int64Array:
    """Return the topics of a homogeneous group, int64, in the order in which the coordinator's set of `ids` is walked.

    A member's names are sent in ascending order, kept in a HashSet, and looked up for the HashSet of ids.
    """
    # Topics of a group stand in Java's order.
    named = np.unique(group.subscribed.row(0))
    first = named[string_places([group.topics[topic] for topic in named.tolist()], copied=True)].astype(np.int64)
    return first[uuid_places([ids[topic] for topic in first.tolist()], copied=True)]


def topic_ranks(group: Group, topics: Int64Array) -> Int64Array:
    """Return int64[T]: the place of each topic in `topics`, and behind them the others."""
    ranks = len(topics) + np.arange(len(group.topics), dtype=np.int64)
    ranks[topics] = np.arange(len(topics))
    return ranks


def topic_keys(ids: Sequence[bytes]) -> list[TreeKey]:
    """Return the key of each topic in Java's tables."""
    return [(code, True, uuid_key(uuid)) for code, uuid in zip(_spread(ids).view(np.int32).tolist(), ids, strict=True)]


def _spread(ids: Sequence[bytes]) -> NDArray[np.uint32]:
    codes = uuid_hashes(ids)
    codes ^= codes >> np.uint32(16)
    return codes


def walk_order(group: Group, topics: Int64Array, ids: Sequence[bytes]) -> Int64Array:
    """Return the places of the claims, int64, row by row, each row in the order in which Kafka meets its partitions.

    The claims are as `distinct_claims` returns them; `topics` are those subscribed, in the order of `topic_order`;
    `ids` are those of all topics.
    """
    numbers, ranks = group.owned_numbers, topic_ranks(group, topics)
    members, topics_of = group.owned_topics.rows, group.owned_topics.values
    member_count = len(group.members)
    # A run is a topic of a member.
    _, heads, run = np.unique(
        members.astype(np.int64) * len(group.topics) + topics_of, return_index=True, return_inverse=True
    )
    owners, held = members[heads], topics_of[heads]
    turns = np.where(np.isin(owners, list(group.recorded)), heads, ranks[held])
    hashes = _spread(ids)[held].astype(np.int64)
    topic_bins, crowded = _topic_bins(owners, turns, hashes, np.bincount(owners, minlength=member_count))
    tables = _powers(np.bincount(run) * 4 // 3 + 1)
    number_bins = (numbers ^ numbers >> 16) & (tables[run] - 1)
    codes = inverse(np.lexsort((turns, topic_bins, owners)))[run] << 32 | number_bins
    order = np.argsort(codes, kind="stable")  # In a bin numbers stand as they are listed.
    crowded[members[_in_long_runs(codes[order], order)]] = True
    if crowded.any():
        _walk_crowded(group, np.flatnonzero(crowded), ranks.tolist(), topic_keys(ids), order)
    return order


def _walk_crowded(
    group: Group, crowded: Int64Array, ranks: Sequence[int], keys: Sequence[TreeKey], order: Int64Array
) -> None:
    """Put the rows of members who have a crowded bin into `order`."""
    starts, topics = group.owned_topics.starts, group.owned_topics.values
    for member in crowded.tolist():
        begin, end = starts[member : member + 2].tolist()
        listed = list(zip(topics[begin:end].tolist(), group.owned_numbers[begin:end].tolist(), strict=True))
        place_of = {one: begin + place for place, one in enumerate(listed)}
        record = listed if member in group.recorded else listed_record(listed, ranks)
        order[begin:end] = [place_of[one] for one in walked(record, keys)]


def _topic_bins(
    owners: Int32Array, ranks: Int64Array, hashes: Int64Array, counts: Int64Array
) -> tuple[Int64Array, NDArray[np.bool_]]:
    """Return the bin of each run in its member's HashMap; and bool[M], whose map had a crowded bin as it grew."""
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
    """Return those of `places` whose sorted codes occur so often that the bin is crowded."""
    changes = np.ones(len(codes), np.bool_)
    changes[1:] = np.diff(codes) != 0
    number = np.cumsum(changes) - 1
    return np.asarray(places[np.bincount(number)[number] > LIST_KEY_COUNT_MAX])
