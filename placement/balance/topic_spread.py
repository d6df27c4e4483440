"""Measure how each topic spreads over live brokers, beside the best spread of it that can be reached.

What it decides: for each topic, the most replicas and the most leaders on one live broker, the same at best, and how
many would have to move. A cluster can be even while each of its topics is not.

The best is that of placement/balance/reachable.py, for the partitions of this topic alone: under the rack rule, with
nothing new for fenced brokers, and with the factors that its partitions have. So a topic of factor 3 on racks of 2, 2
and 1 brokers has a replica of every partition on the lone broker, and nothing is to be gained there. Moves, and when
they are enough (`…_moves_exact`), are as in placement/balance/measures.py. Each topic is taken by itself: that all are
at their best does not make the cluster even, nor the other way round.

How: where all groups of brokers are alike, the best is that of whole shares. Elsewhere topics with equal counts of
partitions of each class have one best spread, found once. Cost: O(R), R replicas, and O(C G) a path of a flow for each
different topic, of C classes over G groups.

Example: topic "t" with leaders 1, 1, 2 on brokers 1, 2, 3: leader_max 2, leader_best_max 1, leader_moves 1.

A cordoned broker (KIP-1066) keeps or gives what it has of a topic. With more of them than a class of partitions can
tell apart, the best is found without this rule and moves are not called enough.

Left out: bytes, whose sizes a topic's partitions share out unevenly.

Source: ours.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.broker_rows import broker_rows
from broker.cluster import ClusterView, Int32Array, Int64Array
from broker.row_flags import count_in_row
from placement.balance.loads import leaders, partition_bytes
from placement.balance.reachable import Classes, Groups, reach
from placement.balance.reachable_kernel import fill_levels
from placement.balance.topic_kernel import BOUND, RULED, ByteArray, spread_topics
from placement.balance.topic_keys_kernel import number_keys

CELLS_MAX: Final = 1 << 20  # Levels of so many keys times groups are held at once: 32 MiB.
DENSE_MAX: Final = 128  # Up to so many brokers it is faster to look at all of them than to list those of a topic.

Bests: TypeAlias = tuple[Int32Array, Int64Array, ByteArray]
"""The key of each topic, the levels of each key, and whether no rule forbids a move, as `spread_topics` reads them."""

TopicBests: TypeAlias = tuple[Bests, Bests]
"""The best spreads of replicas and of leaders."""

_WHOLE_SHARES: Final[dict[bool, Bests]] = {
    free: (np.empty(0, dtype=np.int32), np.empty((0, 4, 0), dtype=np.int64), np.array([free], dtype=np.uint8))
    for free in (False, True)
}


@attrs.frozen(eq=False, kw_only=True)
class TopicSpread:
    """Hold the table of topics in columns, row i being topic `topics[i]`; counts are int64[topics].

    What is said of leaders is None where leaders are not known, `size_bytes` where sizes are not; `min_insync_replicas`
    has None for topics whose setting is not shown.
    """

    topics: tuple[str, ...]
    partition_count: Int64Array
    replication_factor: Int64Array
    min_insync_replicas: tuple[int | None, ...]
    replica_count: Int64Array
    size_bytes: Int64Array | None
    broker_count: Int64Array
    replica_max: Int64Array
    replica_best_max: Int64Array
    replica_moves: Int64Array
    replica_moves_exact: NDArray[np.bool_]
    leader_max: Int64Array | None
    leader_best_max: Int64Array | None
    leader_moves: Int64Array | None
    leader_moves_exact: NDArray[np.bool_] | None


@attrs.frozen(eq=False)
class TopicRows:
    """Hold the partitions of topics, one topic after another.

    `replicas` int32[P, W] are positions of brokers, -1 for none; `leader` int32[P] too, or int32[0] where the first
    replica on a live broker leads; `ends` int64[T] are the rows after each topic's last; `size_bytes` int64[T] the size
    of one replica.
    """

    replicas: Int32Array
    leader: Int32Array
    ends: Int64Array
    size_bytes: Int64Array


@attrs.frozen(eq=False)
class TopicClasses:
    """Hold how many partitions of each class topics have, in entries, one topic after another.

    `ends` int64[T] are the entries after each topic's last; an entry is `counts` int32[E] partitions of one class,
    `class_of` int32[E], of which live brokers lead `led` int32[E].
    """

    classes: Classes
    ends: Int64Array
    class_of: Int32Array
    counts: Int32Array
    led: Int32Array

    @classmethod
    def of_rows(cls, classes: Classes, ends: Int64Array, led: NDArray[np.bool_]) -> TopicClasses:
        """Return the classes of topics whose partitions, made `classes` of, end at `ends`."""
        assert classes.of_row is not None
        return cls(classes, ends, classes.of_row, np.ones(led.size, dtype=np.int32), led.astype(np.int32))

    @classmethod
    def of_topics(cls, classes: Classes, counts: Int32Array) -> TopicClasses:
        """Return the classes of topics whose partitions are all led and alike: `classes` has a row for each topic."""
        assert classes.of_row is not None
        return cls(classes, np.arange(1, counts.size + 1), classes.of_row, counts, counts)


def topic_spread(view: ClusterView, *, assume_preferred: bool = False) -> TopicSpread:
    """Return how each topic's listed replicas and leaders spread over brokers; `assume_preferred` as in `loads`."""
    table, count, ids = view.partitions, len(view.topics), view.broker_ids
    order = None if (np.diff(table.topic_index) >= 0).all() else np.argsort(table.topic_index, kind="stable")
    counts = np.bincount(table.topic_index, minlength=count).astype(np.int64)
    groups = Groups.of_view(view)
    replicas = _sorted(view.replica_rows, order)
    leader = leaders(table, assume_preferred=assume_preferred)
    who = np.full(table.count, -1, np.int32)
    if leader is not None:
        who = broker_rows(ids, _sorted(leader, order)).astype(np.int32)
    rows = TopicRows(replicas, who, np.cumsum(counts), np.zeros(count, np.int64))
    loads, found = np.zeros((3, ids.size), np.int64), np.zeros((11, count), np.int64)
    fill_spread(rows, groups, classes_of_topics(rows, groups), loads, found)
    sizes = partition_bytes(table)
    widest = np.zeros(count, dtype=np.int64)
    np.maximum.at(widest, table.topic_index, count_in_row(table.replicas >= 0))
    return TopicSpread(
        topics=tuple(topic.name for topic in view.topics),
        partition_count=counts,
        replication_factor=widest,
        min_insync_replicas=tuple(topic.min_insync_replicas for topic in view.topics),
        replica_count=found[0],
        size_bytes=None if sizes is None else _sum_by(table.topic_index, sizes, count),
        broker_count=found[1],
        replica_max=found[2],
        replica_best_max=found[3],
        replica_moves=found[4],
        replica_moves_exact=found[5] > 0,
        leader_max=None if leader is None else found[7],
        leader_best_max=None if leader is None else found[8],
        leader_moves=None if leader is None else found[9],
        leader_moves_exact=None if leader is None else found[10] > 0,
    )


def classes_of_topics(rows: TopicRows, groups: Groups) -> TopicClasses | None:
    """Return the classes of these partitions; None where every topic's best is that of whole shares."""
    if groups.is_even and not (groups.barred_by >= 0).any() and not groups.cordoned.size:
        return None
    led = (rows.leader >= 0) & (groups.of[rows.leader] >= 0)
    classes = Classes.of_rows(rows.replicas, groups, None, None)
    return TopicClasses.of_rows(classes, rows.ends, led)


def fill_spread(
    rows: TopicRows,
    groups: Groups,
    classes: TopicClasses | None,
    brokers: Int64Array,
    topics: Int64Array,
    bests: TopicBests | None = None,
) -> None:
    """Add the load of brokers to int64[3, B] and fill topics int64[11, T], as `spread_topics` does.

    `bests` are those of `best_of_topics`, if they are at hand.
    """
    found = best_of_topics(groups, classes) if bests is None else bests
    if found is None:
        half = rows.ends.size // 2
        for part in (slice(0, half), slice(half, rows.ends.size)):
            filled = np.zeros((topics.shape[0], part.stop - part.start), dtype=np.int64)
            fill_spread(_rows_of(rows, part), groups, _classes_of(classes, part), brokers, filled)
            topics[:, part] = filled
        return
    units = groups.units if groups.cordoned.size else (groups.of, groups.sizes)
    size = groups.of.size
    scratch = np.zeros((5, size), dtype=np.int32), np.zeros((8, max(size, units[1].size)), dtype=np.int64)
    columns = rows.replicas, rows.leader, rows.ends, rows.size_bytes
    spread_topics(columns, units, found, DENSE_MAX, scratch, brokers, topics)


def best_of_topics(groups: Groups, classes: TopicClasses | None) -> TopicBests | None:
    """Return the best spreads of topics, of replicas and of leaders; None where they are too many to hold at once.

    Without `classes` they are those of whole shares.
    """
    ruled = groups.is_ruled
    if classes is None:
        return _WHOLE_SHARES[not ruled], _WHOLE_SHARES[True]
    replicas = _bests(groups, classes, "replicas", free=not ruled)
    leads = None if replicas is None else _bests(groups, classes, "leaders", free=True)
    return None if replicas is None or leads is None else (replicas, leads)


def _bests(groups: Groups, topics: TopicClasses, quantity: str, *, free: bool) -> Bests | None:
    """Return the best spreads of one quantity; `free` tells whether no rule forbids a move where no group is barred."""
    factors, barred = topics.classes.rule(quantity, groups)
    is_barred: NDArray[np.bool_] = np.asarray(barred.any(axis=1))
    unit_count = groups.sizes.size + groups.cordoned.size
    if not is_barred.any() and (quantity == "leaders" or groups.is_even) and not groups.cordoned.size:
        return _WHOLE_SHARES[free]
    count = topics.ends.size
    key_of = np.empty(count, dtype=np.int32)
    room = min(topics.class_of.size, count * factors.size) + factors.size
    ends, entry_class, entry_count = np.empty(count, np.int64), np.empty(room, np.int32), np.empty(room, np.int64)
    weights = topics.led if quantity == "leaders" else topics.counts
    keys = number_keys(topics.ends, topics.class_of, weights, factors.size, key_of, (ends, entry_class, entry_count))
    if keys * unit_count > CELLS_MAX and count > 1:
        return None
    ends, kinds = ends[:keys], np.full(keys + 1, free, dtype=np.uint8)
    kinds[-1] = not groups.is_ruled
    levels = np.zeros((keys, 4, unit_count), dtype=np.int64)
    if groups.cordoned.size and _tells_cordoned(topics.classes):
        _fill_cordoned(groups, topics.classes, quantity, (ends, entry_class, entry_count), levels)
        kinds[:-1] = RULED
        return key_of, levels, kinds
    of_groups = levels if not groups.cordoned.size else np.zeros((keys, 4, groups.sizes.size), dtype=np.int64)
    fill_levels((ends, entry_class, entry_count), (factors, barred, groups.sizes), of_groups)
    if groups.cordoned.size:
        levels[:, :, : groups.sizes.size] = of_groups
        levels[:, 0, groups.sizes.size :] = levels[:, 0, groups.of[groups.cordoned]]
        kinds[:-1] = BOUND
    elif is_barred.any():
        until = np.append(0, np.cumsum(is_barred[entry_class[: ends[-1] if keys else 0]])).astype(np.int64)
        kinds[:-1] &= np.diff(until[np.append(0, ends)]) == 0
    return key_of, levels, kinds


def _tells_cordoned(classes: Classes) -> bool:
    """Return whether the partitions of each class stand on the same cordoned brokers."""
    on = classes.on_cordoned["replicas"]
    return bool(((on == 0) | (on == classes.replicas[:, None])).all())


def _fill_cordoned(
    groups: Groups,
    classes: Classes,
    quantity: str,
    keys: tuple[Int64Array, Int32Array, Int64Array],
    levels: Int64Array,
) -> None:
    """Fill the levels of each key where brokers are cordoned, one key at a time."""
    ends, entry_class, entry_count = keys
    on = classes.on_cordoned["replicas"] > 0
    first = 0
    for key, end in enumerate(ends.tolist()):
        which, counts = entry_class[first:end], entry_count[first:end]
        there = {quantity: counts[:, None] * on[which]}
        found = reach(
            groups, Classes(classes.factors[which], classes.barred[which], counts, counts, None, there), quantity
        )
        first = end
        if found is None or not found.block.size:
            continue
        levels[key, 0, found.group] = found.block
        brokers = np.bincount(found.block)
        low = np.full(brokers.size, np.iinfo(np.int64).max)
        np.minimum.at(low, found.block, found.target)
        levels[key, 1, : brokers.size], levels[key, 3, : brokers.size] = low, brokers
        np.add.at(levels[key, 2], found.block, found.target - low[found.block])


def _rows_of(rows: TopicRows, part: slice) -> TopicRows:
    first, ends = _cut(rows.ends, part)
    run = slice(first, first + int(ends[-1]) if ends.size else first)
    leader = rows.leader[run] if rows.leader.size else rows.leader
    return TopicRows(rows.replicas[run], leader, ends, rows.size_bytes[part])


def _classes_of(topics: TopicClasses | None, part: slice) -> TopicClasses | None:
    if topics is None:
        return None
    first, ends = _cut(topics.ends, part)
    run = slice(first, first + int(ends[-1]) if ends.size else first)
    return TopicClasses(topics.classes, ends, topics.class_of[run], topics.counts[run], topics.led[run])


def _cut(ends: Int64Array, part: slice) -> tuple[int, Int64Array]:
    """Return where these topics begin, and where each of them ends from there."""
    first = int(ends[part.start - 1]) if part.start else 0
    return first, ends[part] - first


def _sorted(column: Int32Array, order: Int64Array | None) -> Int32Array:
    return column if order is None else column[order]


def _sum_by(groups: Int32Array, values: Int64Array, group_count: int) -> Int64Array:
    sums = np.zeros(group_count, dtype=np.int64)
    np.add.at(sums, groups, values)
    return sums
