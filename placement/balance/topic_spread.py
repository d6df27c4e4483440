"""Measure the spread of each topic over live brokers, and the best reachable spread (reachable.py) of its partitions.

A kernel (topic_kernel.py) counts topic by topic. Where all groups of brokers are alike, the best is that of whole
shares. Elsewhere topics with equal counts of partitions of each class have one best spread, found once.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs
import numpy as np

from broker.broker_rows import broker_rows
from broker.cluster import BoolArray, ClusterView, Int32Array, Int64Array
from broker.row_flags import count_in_row
from placement.balance.loads import leaders, partition_bytes, summed_by
from placement.balance.reachable import BOUND, FREE, Classes, Groups, Rules
from placement.balance.topic_kernel import Levels, fill_spread


@attrs.frozen(eq=False, kw_only=True)
class TopicSpread:
    """Hold the table of topics in columns, row i being topic `topics[i]`; counts are int64[topics].

    Columns of leaders are None where leaders are not known, `size_bytes` where sizes are not; `min_insync_replicas`
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
    replica_moves_exact: BoolArray
    leader_max: Int64Array | None
    leader_best_max: Int64Array | None
    leader_moves: Int64Array | None
    leader_moves_exact: BoolArray | None


@attrs.frozen(eq=False)
class TopicRows:
    """Hold the partitions of topics, one topic after another.

    `replicas` int32[P, W] are positions of brokers, -1 for none; `leader` int32[P] too, or None where the first replica
    on a live broker leads; `ends` int64[T] are the rows after each topic's last.
    """

    replicas: Int32Array
    leader: Int32Array | None
    ends: Int64Array


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
    def of_rows(cls, classes: Classes, ends: Int64Array, led: BoolArray) -> TopicClasses:
        """Return the classes of topics whose partitions, made `classes` of, end at `ends`."""
        return cls(classes, ends, classes.of_row, np.ones(led.size, dtype=np.int32), led.astype(np.int32))

    @classmethod
    def of_topics(cls, classes: Classes, counts: Int32Array) -> TopicClasses:
        """Return the classes of topics whose partitions are all led and alike: `classes` has a row for each topic."""
        return cls(classes, np.arange(1, counts.size + 1), classes.of_row, counts, counts)


@attrs.frozen(eq=False)
class Best:
    """Hold the best spreads of one quantity: levels int64[K, 4, U] of `Rules.levels` for the key of each topic.

    `kinds` int64[K + 1] adds up `FREE` and `BOUND`; the last is that of whole shares.
    """

    key_of: Int64Array
    levels: Int64Array
    kinds: Int64Array

    def columns(self) -> Levels:
        """Return the columns as the kernel reads them."""
        return self.key_of, self.levels, self.kinds

    @classmethod
    def of(cls, groups: Groups, topics: TopicClasses, quantity: str) -> Best:
        """Return the best spreads of replicas or leaders: topics of equal counts of each class have one key."""
        rules = Rules.of(groups, topics.classes, quantity)
        weights = topics.led if quantity == "leaders" else topics.counts
        topic = np.repeat(np.arange(topics.ends.size), np.diff(topics.ends, prepend=0))
        code = topic * topics.classes.factors.size + topics.class_of
        codes, place = np.unique(code, return_inverse=True)
        counts = summed_by(place.ravel(), weights, codes.size)
        codes, counts = codes[counts > 0], counts[counts > 0]
        topic, class_of = np.divmod(codes, max(topics.classes.factors.size, 1))
        starts = np.searchsorted(topic, np.arange(topics.ends.size + 1))
        key_of, sizes = np.zeros(topics.ends.size, dtype=np.int64), np.diff(starts)
        pairs = np.unique(class_of * (counts.max(initial=0) + 1) + counts, return_inverse=True)[1]
        for place in range(int(sizes.max(initial=0))):
            some = np.flatnonzero(sizes > place)
            longer = np.unique(key_of[some] * pairs.size + pairs[starts[some] + place], return_inverse=True)[1]
            key_of[some] = key_of.max() + 1 + longer
        _, firsts, key_of = np.unique(key_of, return_index=True, return_inverse=True)
        sizes = sizes[firsts]
        ends = np.cumsum(sizes)
        chosen = np.arange(int(sizes.sum())) + np.repeat(starts[:-1][firsts] - (ends - sizes), sizes)
        levels = rules.levels(groups.unit_sizes, ends, class_of[chosen].astype(np.int32), counts[chosen])
        is_unfree = rules.kinds[class_of[chosen]] & FREE == 0
        unfree = np.bincount(np.repeat(np.arange(ends.size), sizes), is_unfree, minlength=ends.size)
        ruled = groups.is_ruled and quantity != "leaders"
        kinds = np.full(ends.size + 1, BOUND if groups.cordoned.size else 0)
        kinds[:-1] |= np.where((unfree > 0) | ruled, 0, FREE)
        kinds[-1] = 0 if groups.is_ruled else FREE
        return cls(key_of, levels, kinds)


TopicBests: TypeAlias = tuple[Best, Best | None]
"""The best spreads of replicas and of leaders; of leaders None for whole shares."""


def topic_spread(view: ClusterView, *, assume_preferred: bool = False) -> TopicSpread:
    """Return how each topic's listed replicas and leaders spread over brokers; `assume_preferred` as in `loads`."""
    table, count, ids = view.partitions, len(view.topics), view.broker_ids
    order = None if (np.diff(table.topic_index) >= 0).all() else np.argsort(table.topic_index, kind="stable")
    counts = np.bincount(table.topic_index, minlength=count).astype(np.int64)
    groups = Groups.of_view(view)
    leader = leaders(table, assume_preferred=assume_preferred)
    who = np.full(table.count, -1, np.int32)
    if leader is not None:
        who = broker_rows(ids, _sorted(leader, order)).astype(np.int32)
    rows = TopicRows(_sorted(view.replica_rows, order), who, np.cumsum(counts))
    found, _ = spread_topics(rows, groups, best_of_topics(groups, classes_of_topics(rows, groups)))
    sizes = partition_bytes(table)
    widest = np.zeros(count, dtype=np.int64)
    np.maximum.at(widest, table.topic_index, count_in_row(table.replicas >= 0))
    return TopicSpread(
        topics=tuple(topic.name for topic in view.topics),
        partition_count=counts,
        replication_factor=widest,
        min_insync_replicas=tuple(topic.min_insync_replicas for topic in view.topics),
        replica_count=found[0],
        size_bytes=None if sizes is None else summed_by(table.topic_index, sizes, count),
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
    if groups.is_even or rows.leader is None:
        return None
    led = (rows.leader >= 0) & (groups.of[rows.leader] >= 0)
    return TopicClasses.of_rows(Classes.of_rows(rows.replicas, groups, None, None), rows.ends, led)


def best_of_topics(groups: Groups, classes: TopicClasses | None) -> TopicBests | None:
    """Return the best spreads of replicas and of leaders, None where they are those of whole shares."""
    if classes is None:
        return None
    is_open = not classes.classes.barred.any() and not groups.cordoned.size
    leads = None if is_open else Best.of(groups, classes, "leaders")
    return Best.of(groups, classes, "replicas"), leads


def spread_topics(
    rows: TopicRows,
    groups: Groups,
    bests: TopicBests | None,
    size_bytes: Int64Array | None = None,
) -> tuple[Int64Array, Int64Array]:
    """Return int64[11, T] of each topic, and the replicas, leaders and bytes of each broker, int64[3, B].

    Of a topic: replicas, brokers that hold one; most replicas on one live broker, at best, moves, 1 if they are enough;
    partitions led; and those four of leaders. `bests` are those of `best_of_topics`; `size_bytes` int64[T] is the size
    of one replica.
    """
    found = np.zeros((11, rows.ends.size), dtype=np.int64)
    held = np.zeros((3, groups.of.size), dtype=np.int64)
    unit_count = groups.unit_sizes.size
    whole = np.empty(0, dtype=np.int64), np.empty((0, 4, unit_count), dtype=np.int64)
    beside_whole = *whole, np.array([0 if groups.is_ruled else FREE])
    best, lead = (None, None) if bests is None else bests
    fill_spread(
        (
            np.ascontiguousarray(rows.replicas),
            np.empty(0, dtype=np.int32) if rows.leader is None else np.ascontiguousarray(rows.leader),
            rows.ends,
            np.zeros(rows.ends.size, dtype=np.int64) if size_bytes is None else size_bytes,
        ),
        (groups.unit_of, groups.unit_sizes),
        (
            beside_whole if best is None else best.columns(),
            (*whole, np.array([FREE])) if lead is None else lead.columns(),
        ),
        (np.zeros((5, groups.of.size), dtype=np.int32), np.zeros((10, unit_count), dtype=np.int64)),
        held,
        found,
    )
    return found, held


def _sorted(column: Int32Array, order: Int64Array | None) -> Int32Array:
    return column if order is None else column[order]
