"""Define a problem of exchanges: partitions, the brokers that may hold them, and bounds on loads.

Constraints: brokers are positions 0..B-1. A partition of class c is held by factor[c] brokers, of each group between
must[c, g] and room[c, g], besides those of `stays`, which is fixed. Its former brokers cost nothing, others 1, and only
brokers that may receive can be others, of partitions of a class with fresh[c]. A broker's load is the partitions it
holds plus what it holds besides (`base`).
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.errors import RefusedError
from broker.row_flags import any_in_row, count_each, count_in_row


@attrs.frozen(eq=False, kw_only=True)
class Problem:
    """Hold a problem of P partitions, B brokers, G groups, C classes and T topics; brokers are positions.

    `before` int32[P, W], -1 pads; `kind` int32[P], -1 where nothing may change; `leader` int32[P], -1 for none;
    `stays` int32[P, V] brokers that hold the partition in any case, -1 pads anywhere; `fresh` bool[C];
    `factor` int64[C]; `must` and `room` int64[C, G]; `group` int64[B], -1 for a broker that may hold nothing;
    `receives` bool[B]; `base` int64[B]. `topic` int32[P] and `topic_low`, `topic_high` int64[T, B] bound what a broker
    holds of one topic; without such bounds all partitions are of topic 0. Loads are even by `share` int64[B], the
    capacities of brokers; None for equal ones.
    """

    before: Int32Array
    kind: Int32Array
    leader: Int32Array
    factor: Int64Array
    must: Int64Array
    room: Int64Array
    group: Int64Array
    receives: NDArray[np.bool_]
    base: Int64Array
    topic: Int32Array
    stays: Int32Array
    fresh: NDArray[np.bool_]
    topic_low: Int64Array | None = None
    topic_high: Int64Array | None = None
    share: Int64Array | None = None

    @classmethod
    def of_rows(cls, rows: Any, *, group: Any, **other: Any) -> Problem:
        """Return the problem of partitions that keep their number of replicas, by default without a rule."""
        before = np.ascontiguousarray(rows, dtype=np.int32)
        groups = np.asarray(group, dtype=np.int64)
        count, group_count = before.shape[0], int(groups.max(initial=0)) + 1
        factor, kind = np.unique(count_in_row(before >= 0), return_inverse=True)
        given: dict[str, Any] = {
            "before": before,
            "kind": kind.astype(np.int32),
            "leader": np.full(count, -1, dtype=np.int32),
            "factor": factor.astype(np.int64),
            "must": np.zeros((factor.size, group_count), dtype=np.int64),
            "room": np.full((factor.size, group_count), groups.size, dtype=np.int64),
            "group": groups,
            "receives": np.ones(groups.size, dtype=np.bool_),
            "base": np.zeros(groups.size, dtype=np.int64),
            "topic": np.zeros(count, dtype=np.int32),
            "stays": np.empty((count, 0), dtype=np.int32),
        }
        given |= other
        return cls(**({"fresh": np.ones(given["factor"].size, dtype=np.bool_)} | given))

    def __attrs_post_init__(self) -> None:
        named = self.leader >= 0
        assert bool(any_in_row(self.before == self.leader[:, None])[named].all()), "a leader holds its partition"

    def taken(self, rows: Int64Array, **other: Any) -> Problem:
        """Return the problem of the partitions at `rows`, in that order."""
        columns = {name: getattr(self, name)[rows] for name in ("before", "kind", "leader", "topic", "stays")}
        return attrs.evolve(self, **(columns | other))

    @property
    def live(self) -> NDArray[np.bool_]:
        """Return which brokers may hold a replica, bool[B]."""
        return np.asarray(self.group >= 0)

    @property
    def total(self) -> int:
        """Return the sum of all loads."""
        wanted = self.factor[self.kind[self.kind >= 0]].sum()
        return int(wanted + self.base[self.live].sum())


@attrs.frozen(eq=False, kw_only=True)
class Bounds:
    """Bound the load of each broker, `low` and `high` int64[B], and of blocks of brokers.

    `block` int64[B] is -1 for brokers that may hold nothing; `totals` int64[K] is what a block holds.
    """

    low: Int64Array
    high: Int64Array
    block: Int64Array
    totals: Int64Array

    @classmethod
    def even(cls, block: Int64Array, totals: Int64Array, share: Int64Array | None = None) -> Bounds:
        """Return the floors and the ceilings of the mean of each block, or of what brokers have by their shares."""
        members = count_each(block, totals.size)
        held = block >= 0
        if share is not None:
            return cls._by_share(block, totals, share)
        floors = totals // np.maximum(members, 1)
        ceilings = -(-totals // np.maximum(members, 1))
        return cls(
            low=np.where(held, floors[block], 0), high=np.where(held, ceilings[block], 0), block=block, totals=totals
        )

    @classmethod
    def _by_share(cls, block: Int64Array, totals: Int64Array, share: Int64Array) -> Bounds:
        whole = [0] * totals.size
        for number, part in zip(block.tolist(), share.tolist(), strict=True):
            if number >= 0:
                whole[number] += part
        low, high = np.zeros_like(block), np.zeros_like(block)
        for place in np.flatnonzero(block >= 0).tolist():
            number = int(block[place])
            product = int(totals[number]) * int(share[place])
            low[place], high[place] = product // whole[number], -(-product // whole[number])
        return cls(low=low, high=high, block=block, totals=totals)


@attrs.frozen(eq=False, kw_only=True)
class Solution:
    """Hold a solution: `now` int32[P, V], packed, -1 pads, former replicas in any order; and what proves it.

    `move_price` and `leader_price` int64[B], and with bounds by topic `topic_move_price` and `topic_leader_price`
    int64[T, B]: what a unit costs at a broker, less being better.
    """

    now: Int32Array
    low: Int64Array
    high: Int64Array
    block: Int64Array
    totals: Int64Array
    move_price: Int64Array
    leader_price: Int64Array
    topic_move_price: Int64Array | None = None
    topic_leader_price: Int64Array | None = None


class InfeasibleError(RefusedError):
    """No solution lies within the bounds."""
