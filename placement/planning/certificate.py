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

from broker.cluster import Int64Array
from broker.row_flags import count_each
from placement.planning.question import FAR, Question


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


def adds_up(question: Question, proof: Proof) -> bool:
    """Return whether costs and prices are small enough to be added up in 64 bits for a partition."""
    parts = [proof.price] if proof.topics is None else [proof.price, proof.topics.price]
    dearest = max(max(abs(int(one.min(initial=0))), int(one.max(initial=0))) for one in parts)
    largest = 1 if question.weights is None else max(int(question.weights.max(initial=0)), 1)
    return (dearest + proof.weight + 2) * largest * int(question.wanted.max(initial=0)) < FAR


def lower_bound(question: Question, proof: Proof) -> int:
    """Return what any placement within the bounds costs at least; 0 for prices too great to be added up."""
    if not adds_up(question, proof):
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
    live = question.live
    members = count_each(proof.block, proof.totals.size)
    floors = proof.totals // np.maximum(members, 1)
    faults = faults_of_blocks(question, proof, members, in_order=not (np.diff(floors) > 0).any())
    if (members == 0).any() or not np.array_equal(proof.block >= 0, live):
        return faults
    ceilings = -(-proof.totals // members)
    low, high = proof.even_low, proof.even_high
    for name, even, wanted in (("floor", low, floors), ("ceiling", high, ceilings)):
        if not np.array_equal(even[live], wanted[proof.block[live]]):
            faults.append(f"an even load is not the {name} of its block's mean")
    if not proof.is_even:
        low, high = np.minimum(before, low), np.maximum(before, high)
    if not (np.array_equal(proof.low[live], low[live]) and np.array_equal(proof.high[live], high[live])):
        faults.append("bounds are neither even nor as uneven as the loads were")
    return faults


def faults_of_blocks(question: Question, proof: Proof, shares: Int64Array, *, in_order: bool) -> list[str]:
    """Return what is wrong with the blocks of brokers, of which each has a share, int64[K]."""
    if not np.array_equal(proof.block >= 0, question.live):
        return ["a block holds a broker that may hold nothing, or a broker is in no block"]
    if (shares == 0).any():
        return ["a block has no broker"]
    if int(proof.totals.sum()) != question.total:
        return [f"blocks hold {int(proof.totals.sum())}, but {question.total} are to be placed"]
    faults = [] if in_order else ["blocks are not in the order of their loads"]
    if proof.topics is not None and question.weights is None:
        return faults  # The least of a block is then not that of each partition by itself.
    for last in range(proof.totals.size - 1):
        least = least_within(question, (proof.block >= 0) & (proof.block <= last))
        if least != int(proof.totals[: last + 1].sum()):
            faults.append(f"blocks 0 to {last} can hold {least}, not {int(proof.totals[: last + 1].sum())}")
    return faults


def least_within(question: Question, inside: NDArray[np.bool_]) -> int:
    """Return the least load that any placement leaves on the brokers `inside`, bool[B]."""
    return question.least(inside.astype(np.int64), fresh=0, lead=0) + int(question.base[inside].sum())


def uneven_topics(question: Question, proof: TopicProof) -> list[int]:
    """Return the topics whose bounds are not the most even ones that each topic by itself can reach.

    Brokers with equal bounds form a block, the fullest first. Blocks 1..j must hold the least that any placement of the
    topic puts on them, and bounds must be the floors and ceilings of the means that follow: so no placement has a
    smaller maximum, nor a greater minimum.
    """
    live, found = np.flatnonzero(question.live), []
    for topic, rows in _by_topic(question):
        names = ("rows", "wanted", "own", "stays", "fresh", "leader", "topic")
        parts = {name: getattr(question, name)[rows] for name in names}
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
