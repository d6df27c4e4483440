"""Measure how each topic spreads over live brokers, beside the best spread of it that can be reached.

For each topic: the most replicas and the most leaders on one live broker, the same at best (that of reachable.py, for
the partitions of this topic alone), and how many would have to move, as in measures.py. A topic of factor 3 on racks of
2, 2 and 1 brokers has a replica of every partition on the broker that is alone, and nothing is to be gained there. Each
topic is taken by itself: that all are at their best does not make the cluster even, nor the other way round.

How: a matrix of topics and brokers, some topics at a time, in numpy. Where all groups of brokers are alike, the best is
that of whole shares. Elsewhere topics with equal counts of partitions of each class have one best spread, found once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.broker_rows import broker_rows
from broker.cluster import ClusterView, Int32Array, Int64Array
from broker.row_flags import count_in_row
from placement.balance.loads import leaders, partition_bytes
from placement.balance.reachable import BOUND, FREE, Classes, Groups, Rules

CELLS_MAX: Final = 1 << 20  # Topics times brokers that are held at once: some 8 MB a matrix.
BoolArray: TypeAlias = NDArray[np.bool_]


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

    def parts(self, broker_count: int) -> Iterator[tuple[slice, slice]]:
        """Yield topics whose matrices are small enough, and their rows."""
        step = max(1, CELLS_MAX // max(broker_count, 1))
        for start in range(0, self.ends.size, step):
            stop = min(start + step, self.ends.size)
            yield slice(start, stop), slice(int(self.ends[start - 1]) if start else 0, int(self.ends[stop - 1]))


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

    `kinds` int64[K] adds up `FREE` and `BOUND`.
    """

    key_of: Int64Array
    levels: Int64Array
    kinds: Int64Array

    @classmethod
    def of(cls, groups: Groups, topics: TopicClasses, quantity: str) -> Best:
        """Return the best spreads of replicas or leaders: topics of equal counts of each class have one key."""
        rules = Rules.of(groups, topics.classes, quantity)
        weights = topics.led if quantity == "leaders" else topics.counts
        topic = np.repeat(np.arange(topics.ends.size), np.diff(topics.ends, prepend=0))
        code = topic * topics.classes.factors.size + topics.class_of
        codes, place = np.unique(code, return_inverse=True)
        counts = np.zeros(codes.size, dtype=np.int64)
        np.add.at(counts, place.ravel(), weights)
        codes, counts = codes[counts > 0], counts[counts > 0]
        topic, class_of = np.divmod(codes, max(topics.classes.factors.size, 1))
        starts = np.searchsorted(topic, np.arange(topics.ends.size + 1))
        entries = np.column_stack((class_of, counts))
        keys: dict[bytes, int] = {}
        runs = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        key_of = np.array([keys.setdefault(entries[a:b].tobytes(), len(keys)) for a, b in runs], dtype=np.int64)
        firsts = np.unique(key_of, return_index=True)[1]
        sizes = np.diff(starts)[firsts]
        ends = np.cumsum(sizes)
        chosen = np.arange(int(sizes.sum())) + np.repeat(starts[:-1][firsts] - (ends - sizes), sizes)
        levels = rules.levels(groups.unit_sizes, ends, class_of[chosen].astype(np.int32), counts[chosen])
        kinds = np.full(ends.size, BOUND if groups.cordoned.size else 0)
        unfree = np.bincount(np.repeat(np.arange(ends.size), sizes), rules.kinds[class_of[chosen]] & FREE == 0)
        ruled = groups.is_ruled and quantity != "leaders"
        unfree = np.append(unfree, np.zeros(ends.size - unfree.size))
        return cls(key_of, levels, np.asarray(kinds | np.where((unfree > 0) | ruled, 0, FREE), dtype=np.int64))


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
    units = groups.unit_of
    live = np.argsort(units, kind="stable")[np.count_nonzero(units < 0) :]
    starts = np.flatnonzero(np.diff(units[live], prepend=-1))
    for topics, part in rows.parts(groups.of.size):
        for kind, counts in enumerate(_counted(rows, groups, topics, part)):
            found[6 * kind, topics] = counts.sum(axis=0, dtype=np.int32)
            held[kind] += counts.sum(axis=1)
            if kind == 0:
                found[1, topics] = np.minimum(counts, 1).sum(axis=0, dtype=np.int32)
                if size_bytes is not None:
                    held[2] += counts @ size_bytes[topics]
            best = None if bests is None else bests[kind]
            is_free = not groups.is_ruled or (kind == 1 and best is None)
            is_unordered = best is None and is_free and live.size == units.size
            columns = _Units(counts if is_unordered else counts[live], units[live], starts)
            spread = columns.whole(is_free=is_free) if best is None else columns.of(best, topics, is_free=is_free)
            found[2 + 5 * kind : 6 + 5 * kind, topics] = spread
    return found, held


def _counted(rows: TopicRows, groups: Groups, topics: slice, part: slice) -> Iterator[Int32Array]:
    """Yield the replicas, then the leaders of these topics on each broker, int32[B, T]."""
    count, replicas = np.int32(topics.stop - topics.start), rows.replicas[part]
    topic = np.repeat(np.arange(count, dtype=np.int32), np.diff(rows.ends[topics], prepend=part.start))
    shape = groups.of.size, int(count)

    def counted(brokers: Int32Array, of_topic: Int32Array) -> Int32Array:
        codes, is_held = brokers * count + of_topic, brokers >= 0
        codes = codes if is_held.all() else codes[is_held]
        return np.bincount(codes, minlength=shape[0] * shape[1]).astype(np.int32).reshape(shape)

    yield counted(replicas.ravel(), np.repeat(topic, replicas.shape[1]))
    if rows.leader is not None:
        yield counted(rows.leader[part], topic)
    elif groups.of.min(initial=0) >= 0 and replicas.size:
        yield counted(replicas[:, 0], topic)
    else:  # A column of -1 leads where no replica is on a live broker.
        padded = np.append(replicas, np.full((topic.size, 1), -1, replicas.dtype), axis=1)
        leads = np.append(groups.of >= 0, np.False_)[padded]
        leads[:, -1] = True
        yield counted(padded[np.arange(topic.size), leads.argmax(axis=1)], topic)


@attrs.frozen(eq=False)
class _Units:
    """Hold what live brokers hold of topics, int32[L, T], in order of their units int64[L], which begin at `starts`."""

    held: Int32Array
    unit: Int64Array
    starts: Int64Array

    def _sums(self, values: Int32Array) -> Int64Array:
        """Return the sums of each unit that has brokers."""
        if not self.starts.size:
            return np.zeros((0, values.shape[1]), dtype=np.int64)
        return np.asarray(np.add.reduceat(values, self.starts, axis=0, dtype=np.int64))

    def whole(self, *, is_free: bool) -> Int64Array:
        """Return int64[4, T] beside whole shares: most on one broker, at best, moves, 1 if they are enough."""
        held, count = self.held, np.int32(self.unit.size)
        floor, rest = np.divmod(held.sum(axis=0, dtype=np.int32), max(count, np.int32(1)))
        high = floor + (rest > 0)
        excess = np.maximum(held, high).sum(axis=0, dtype=np.int32) - count * high
        lack = count * floor - np.minimum(held, floor).sum(axis=0, dtype=np.int32)
        moves = np.maximum(excess, lack)
        exact = moves == 0
        if is_free:
            exact[:] = True
        elif not exact.all():
            exact |= self._stay_inside(floor, high, moves)
        return np.stack((held.max(axis=0, initial=0), high, moves, exact))

    def of(self, best: Best, topics: slice, *, is_free: bool) -> Int64Array:
        """Return the same beside the best spreads; beside whole shares where these are of other units than are held."""
        key = best.key_of[topics]
        levels, kinds = best.levels[key].astype(np.int32), best.kinds[key]
        present, sizes = self.unit[self.starts], np.diff(self.starts, append=self.unit.size)
        block, floor, rest, brokers = (np.ascontiguousarray(levels[:, row].T) for row in range(4))
        block = block[present]
        low = np.take_along_axis(floor, block, axis=0)
        high = low + (np.take_along_axis(rest, block, axis=0) > 0)
        low_each, high_each = np.repeat(low, sizes, axis=0), np.repeat(high, sizes, axis=0)
        excess = self._sums(np.maximum(self.held - high_each, 0))
        lack = self._sums(np.maximum(low_each - self.held, 0))
        held = self._sums(self.held)
        code = (block * key.size + np.arange(key.size)).ravel()

        def by_block(values: Int64Array) -> Int64Array:
            return np.bincount(code, values.ravel(), minlength=floor.size).astype(np.int64).reshape(floor.shape)

        surplus = by_block(held) - floor * brokers - rest
        moves = np.maximum(by_block(excess), by_block(lack) + surplus).sum(axis=0)
        least = (brokers * floor * floor + rest * (2 * floor + 1)).sum(axis=0)
        moves = np.where((self.held * self.held).sum(axis=0) > least, moves, 0)
        inside = np.maximum(excess, lack).sum(axis=0) == moves
        fits = (sizes[:, None] * low <= held) & (held <= sizes[:, None] * high)
        stays = ~surplus.any(axis=0) & inside & fits.all(axis=0)
        exact = (moves == 0) | ((kinds & BOUND == 0) & ((kinds & FREE > 0) | stays))
        most = (floor + (rest > 0)).max(axis=0, initial=0)
        found = np.stack((self.held.max(axis=0, initial=0), most, moves, exact))
        others = surplus.sum(axis=0) != 0
        if others.any():
            found[:, others] = _Units(self.held[:, others], self.unit, self.starts).whole(is_free=is_free)
        return found

    def _stay_inside(self, low: Int32Array, high: Int32Array, moves: Int64Array) -> BoolArray:
        """Return whether so many moves are enough without one between units, if all have this floor and ceiling."""
        sizes, held = np.diff(self.starts, append=self.unit.size)[:, None], self._sums(self.held)
        above = self._sums(np.maximum(self.held - high, 0))
        below = self._sums(np.maximum(low - self.held, 0))
        inside = np.maximum(above, below).sum(axis=0) == moves
        return np.asarray(inside & ((sizes * low <= held) & (held <= sizes * high)).all(axis=0))


def _sorted(column: Int32Array, order: Int64Array | None) -> Int32Array:
    return column if order is None else column[order]


def _sum_by(groups: Int32Array, values: Int64Array, group_count: int) -> Int64Array:
    sums = np.zeros(group_count, dtype=np.int64)
    np.add.at(sums, groups, values)
    return sums
