"""Prove that a plan reaches the most even loads with the fewest moves, from the input and a price for each broker.

What it decides: whether bounds are the most even that the rules allow, and how much any placement within them costs at
least. Nothing of the solver is used: no flow, no search.

Cost. A new replica costs `weight`; a former leader that is not kept costs 1. With more weight than partitions, the
least cost has the fewest new replicas and, among such placements, the fewest lost leaders. Where loads are bytes
(byte_bounds.py), a replica of s bytes costs s times as much, and its broker's price counts s times; leaders cost
nothing.

The bound. For any prices q and any placement S with loads x within the bounds,

    cost(S) >= sum over p of min over allowed sets s of (cost(s) + sum of q over s) - max over allowed x of q·x

as the left side is the cost plus q·x minus q·x. The maximum over x is the dearest brokers of a block at their upper
bounds and the others at their lower ones. With the prices of the solver both sides are equal: the plan is optimal.
With bounds by topic, w is the price of a topic's replicas at a broker and takes q's place in the minimum; the
maximum of (w - q) over the topic's bounds is taken off as well.

Even bounds. Blocks stand in order, the fullest first. If blocks 1..j hold the least that any placement can put on them
(the minimum above, with cost 0 and price 1 on them), each holds floors and ceilings of its mean, and floors never rise
from block to block, then the loads are majorised by those of every placement: for a convex function the tangents at
the floors prove it.

Example: three partitions on broker 0, broker 1 joins, prices 0 and -1, weight 1: the minimum is 3 times min(0, 1 - 1),
the maximum of q·x with loads 1..2 is -1, so at least one replica moves.

Left out: with bounds by topic, the blocks of brokers are checked to be kept, not to be the most even; bytes are
bounded as if partitions were divisible, and as if no topic had bounds.

Source: linear programming duality; Frank & Murota, Mathematical Programming, 2021, for the order of loads.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import ClusterView, Int32Array, Int64Array
from placement.planning.bound_kernel import FAR, PART_BITS, Prices, Rules, least_cost


@attrs.frozen(kw_only=True, eq=False)
class TopicProof:
    """Hold bounds and prices of each topic's replicas at each broker, int64[T, B]."""

    low: Int64Array
    high: Int64Array
    price: Int64Array


@attrs.frozen(kw_only=True, eq=False)
class Proof:
    """Hold bounds on loads and the prices that prove a cost; arrays are int64[B], positions of brokers.

    `even_low` and `even_high` are the most even loads, by `block` (-1 for brokers without) with `totals` int64[K];
    `low` and `high` are what was asked: the same with `is_even`, else as uneven as the brokers were. `weight` is what a
    new replica costs in `price`.
    """

    low: Int64Array
    high: Int64Array
    even_low: Int64Array
    even_high: Int64Array
    block: Int64Array
    totals: Int64Array
    price: Int64Array
    weight: int
    is_even: bool
    topics: TopicProof | None = None


@attrs.frozen(kw_only=True, eq=False)
class Question:
    """Hold what may be placed where: `rows` int32[P, W] positions, -1 pads, and what the rules say of brokers.

    `wanted` int64[P] replicas on live brokers, 0 where nothing changes; `leader` int32[P], -1 where none can be lost;
    `base` int64[B] what brokers hold besides; `topic` int32[P]; `cordoned` bool[B] live brokers that may receive
    nothing, None if there are none. Loads count replicas, or, where `weights` int64[P] are given, bytes: what a replica
    of each partition adds to a load, and to a cost. `base` is then in bytes too.
    """

    rows: Int32Array
    wanted: Int64Array
    leader: Int32Array
    live: NDArray[np.bool_]
    stays: NDArray[np.bool_]
    receives: NDArray[np.bool_]
    rack: Int64Array
    base: Int64Array
    topic: Int32Array
    cordoned: NDArray[np.bool_] | None = None
    weights: Int64Array | None = None

    @classmethod
    def rack_numbers(cls, view: ClusterView) -> Int64Array:
        """Return the number of each broker's rack, a broker without one being a rack of its own."""
        names = {name: number for number, name in enumerate(sorted(view.racks))}
        alone = iter(range(len(names), len(names) + len(view.brokers)))
        return np.array([names[b.rack] if b.rack is not None else next(alone) for b in view.brokers], dtype=np.int64)

    @property
    def total(self) -> int:
        """Return the sum of all loads of live brokers."""
        placed = self.wanted if self.weights is None else self.wanted * self.weights
        return int(placed.sum() + self.base[self.live].sum())

    def rules(self) -> Rules:
        """Return the rules as the kernel takes them."""
        count = int(self.rack.max(initial=-1)) + 1
        open_size = np.bincount(self.rack[self.live], minlength=count).astype(np.int64)
        able = self.live if self.cordoned is None else self.live & ~self.cordoned
        closed = np.bincount(self.rack[able], minlength=count) == 0
        return Rules(self.rack, self.live, self.stays, self.receives, open_size, closed)

    def adds_up(self, proof: Proof) -> bool:
        """Return whether costs and prices are small enough to be added up in 64 bits for a partition."""
        parts = [proof.price] if proof.topics is None else [proof.price, proof.topics.price]
        dearest = max(max(abs(int(one.min(initial=0))), int(one.max(initial=0))) for one in parts)
        largest = 1 if self.weights is None else max(int(self.weights.max(initial=0)), 1)
        return (dearest + proof.weight + 2) * largest * int(self.wanted.max(initial=0)) < FAR

    def least(self, price: Int64Array, *, fresh: int, lead: int, rows: Int64Array | None = None) -> int:
        """Return the least sum of cost and price over all placements of `rows`, by default of all partitions.

        `fresh` is what a new replica costs, `lead` what a lost leader does; with weights each counts as many times as
        the partition has bytes. Less than 0, far below any sum, is returned where a partition has no place.
        """
        rules = self.rules()
        order = np.argsort(price, kind="stable")
        able = order[self.receives[order] & self.live[order]]
        best = np.full(rules.open_size.size, FAR, dtype=np.int64)
        np.minimum.at(best, self.rack[able], price[able])
        groups = np.argsort(best, kind="stable")
        prices = Prices(price, fresh, lead, able, groups[best[groups] < FAR], best)
        chosen = np.flatnonzero(self.wanted).astype(np.int64) if rows is None else rows
        scale = np.ones_like(self.wanted) if self.weights is None else self.weights
        total = np.zeros(2, dtype=np.int64)
        room = np.empty(2 * 256 + rules.open_size.size, dtype=np.int64)
        if not least_cost(rules, prices, self.rows, self.wanted, self.leader, scale, chosen, room, total):
            return -FAR * FAR
        return (int(total[0]) << PART_BITS) + int(total[1])


def first_without_place(question: Question) -> int:
    """Return the first row that no set of brokers may hold, -1 if each has one. Cost: O(log P) passes."""
    rows = np.flatnonzero(question.wanted).astype(np.int64)
    none = np.zeros(question.live.size, dtype=np.int64)
    if question.least(none, fresh=1, lead=0) >= 0:
        return -1
    while rows.size > 1:
        half = rows[: rows.size // 2]
        rows = half if question.least(none, fresh=1, lead=0, rows=half) < 0 else rows[half.size :]
    return int(rows[0])


def lower_bound(question: Question, proof: Proof) -> int:
    """Return what any placement within the bounds costs at least; 0 for prices too great to be added up."""
    if not question.adds_up(proof):
        return 0
    fresh, lead = proof.weight, int(question.weights is None)
    losable = lead * int(np.count_nonzero((question.leader >= 0) & (question.wanted > 0)))
    dearest = _dearest_loads(question, proof)
    if proof.topics is None or question.weights is not None:
        return question.least(proof.price, fresh=fresh, lead=lead) + losable - dearest
    least = 0
    for topic, rows in _by_topic(question):
        least += question.least(proof.topics.price[topic], fresh=fresh, lead=lead, rows=rows)
    over = proof.topics.price - proof.price
    over = np.where(question.live, over, 0)
    inside = np.where(over > 0, over * proof.topics.high, over * proof.topics.low)
    used = np.zeros(over.shape[0], dtype=np.bool_)
    used[question.topic[question.wanted > 0]] = True
    return least + losable - int(inside[used].sum()) - dearest


def _by_topic(question: Question) -> Iterator[tuple[int, Int64Array]]:
    """Yield each topic with partitions that may change, and their rows."""
    rows = np.flatnonzero(question.wanted)
    order = rows[np.argsort(question.topic[rows], kind="stable")]
    topics, starts = np.unique(question.topic[order], return_index=True)
    if not topics.size:
        return
    yield from zip(topics.tolist(), np.split(order, starts[1:]), strict=True)


def _dearest_loads(question: Question, proof: Proof) -> int:
    """Return the greatest q·x over loads x within the bounds; what brokers hold besides is no part of x."""
    blocks = [np.flatnonzero(question.live)]
    totals = [question.total]
    if proof.is_even and question.weights is None:
        blocks = [np.flatnonzero(proof.block == number) for number in range(proof.totals.size)]
        totals = proof.totals.tolist()
    dearest = 0
    for members, total in zip(blocks, totals, strict=True):
        order = members[np.argsort(-proof.price[members], kind="stable")]
        low, high = proof.low[order], proof.high[order]
        spare = total - int(low.sum())
        more = np.clip(spare - np.concatenate([[0], np.cumsum(high - low)[:-1]]), 0, high - low)
        loads = (low + more - question.base[order]).tolist()
        dearest += sum(price * load for price, load in zip(proof.price[order].tolist(), loads, strict=True))
    return dearest


def faults_of_bounds(question: Question, proof: Proof, before: Int64Array) -> list[str]:
    """Return what is wrong with the bounds; `before` int64[B] are the loads before the plan."""
    faults = []
    live = question.live
    if not np.array_equal(proof.block >= 0, live):
        faults.append("a block holds a broker that may hold nothing, or a broker is in no block")
        return faults
    if int(proof.totals.sum()) != question.total:
        faults.append(f"blocks hold {int(proof.totals.sum())}, but {question.total} are to be placed")
    members = np.bincount(proof.block[live], minlength=proof.totals.size)
    if (members == 0).any():
        return [*faults, "a block has no broker"]
    floors = proof.totals // members
    ceilings = -(-proof.totals // members)
    if not (np.array_equal(proof.even_low[live], floors[proof.block[live]])):
        faults.append("an even load is not the floor of its block's mean")
    if not (np.array_equal(proof.even_high[live], ceilings[proof.block[live]])):
        faults.append("an even load is not the ceiling of its block's mean")
    if (np.diff(floors) > 0).any():
        faults.append("blocks are not in the order of their loads")
    low, high = proof.even_low, proof.even_high
    if not proof.is_even:
        low, high = np.minimum(before, low), np.maximum(before, high)
    if not (np.array_equal(proof.low[live], low[live]) and np.array_equal(proof.high[live], high[live])):
        faults.append("bounds are neither even nor as uneven as the loads were")
    if proof.topics is not None:  # The least of a block is then not that of each partition by itself.
        return faults
    for last in range(proof.totals.size - 1):
        inside = (proof.block >= 0) & (proof.block <= last)
        least = question.least(inside.astype(np.int64), fresh=0, lead=0) + int(question.base[inside].sum())
        if least != int(proof.totals[: last + 1].sum()):
            faults.append(f"blocks 0 to {last} can hold {least}, less than {int(proof.totals[: last + 1].sum())}")
    return faults


def uneven_topics(question: Question, proof: TopicProof) -> list[int]:
    """Return the topics whose bounds are not the most even ones that each topic by itself can reach.

    Brokers with equal bounds form a block, the fullest first. Blocks 1..j must hold the least that any placement of the
    topic puts on them, and bounds must be the floors and ceilings of the means that follow: so no placement has a
    smaller maximum, nor a greater minimum.
    """
    live, found = np.flatnonzero(question.live), []
    for topic, rows in _by_topic(question):
        parts = {name: getattr(question, name)[rows] for name in ("rows", "wanted", "leader", "topic")}
        alone = attrs.evolve(question, **parts, weights=None)
        low, high = proof.low[topic], proof.high[topic]
        order = live[np.lexsort((high[live], low[live]))[::-1]]
        ends = np.flatnonzero((np.diff(low[order]) != 0) | (np.diff(high[order]) != 0)) + 1
        inside, before = np.zeros(question.live.size, dtype=np.int64), 0
        for members in np.split(order, ends):
            inside[members] = 1
            least = alone.least(inside, fresh=0, lead=0)
            floor, rest = divmod(least - before, members.size)
            if int(low[members[0]]) != floor or int(high[members[0]]) != floor + (rest > 0):
                found.append(topic)
                break
            before = least
    return found
