"""Make the bytes of every broker even within a tolerance, with few bytes copied in few moves, and bound both.

What is certainly impossible is refused with the reason; where the greedy (bytes_kernel.py) and the search after it
(byte_search.py) end outside the bounds, the refusal names the tolerance that the best placement found needs. Blocks of
brokers with one reachable mean are those of exchange.py, over parts of equal bytes. The bound is the best of a few
vectors of prices (certificate.py): 1 at brokers or racks that give, -1 at those that receive, and both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import attrs
import numpy as np

from broker.cluster import ClusterView, Int32Array, Int64Array
from broker.units import format_size
from broker.wording import counted
from placement.planning.byte_bounds import MILLIONTHS, ByteBounds, are_ordered, block_totals, bounds_of
from placement.planning.byte_search import improve
from placement.planning.bytes_kernel import ALLOWED, ENDS, FILLS, Loads, begin, move_in_order
from placement.planning.certificate import Proof, TopicProof, lower_bound
from placement.planning.exchange import solve
from placement.planning.exchange_graph import Shape
from placement.planning.given import bytes_of
from placement.planning.goal import Goal, PlanRefusedError, copy_sizes, shares
from placement.planning.problem import InfeasibleError, Problem
from placement.planning.question import Question, first_without_place
from placement.planning.reassignment import partition_name

_BYTES_MAX: Final = 1 << 60  # Sums of all replicas' bytes: an exbibyte.
_SIZE_MAX: Final = 1 << 52  # A partition's bytes; a float64 still holds them exactly.
_PARTS_PER_BROKER: Final = 500  # Means that differ by less than that are of one block.
_SPARE: Final = 256
_PASSES: Final = (
    (FILLS, FILLS, False),
    (FILLS, ALLOWED, False),
    (ALLOWED, FILLS, False),
    (ENDS, ALLOWED, True),
    (ALLOWED, ENDS, True),
)
"""What a move leaves at its giver and its taker, and whether the smallest partitions come first."""


def solve_bytes(problem: Problem, question: Question, view: ClusterView, goal: Goal) -> tuple[Int32Array, Proof]:
    """Return a placement with the bytes of every broker within its bounds, int32[P, V], and the proof of its bound.

    `question` is in bytes, and asks the same as `problem`; `view` has the added brokers. Raises PlanRefusedError where
    there is no placement, or none is found, and InfeasibleError where a partition has no place.
    """
    share, sizes = shares(view, goal), copy_sizes(view)
    _check_sums(view, question, sizes)
    if first_without_place(question) >= 0:
        raise InfeasibleError("a partition has no place")
    sizes = np.where(problem.kind >= 0, sizes, 0)
    block, totals = _ordered_blocks(question, _blocks(problem, sizes, question.base, share), share)
    before = bytes_of(problem.before, sizes, share.size) + question.base
    bounds = bounds_of(
        question,
        block,
        totals,
        shares=share,
        tolerance=goal.tolerance_millionths,
        before=None if goal.is_even else before,
    )
    _check_bounds(view, goal, question, bounds)
    now, load = place_bytes(problem, sizes, before, bounds.low, bounds.high)
    _check_found(view, goal, question, bounds, load)
    free = Proof(
        low=bounds.low,
        high=bounds.high,
        even_low=bounds.even_low,
        even_high=bounds.even_high,
        block=block,
        totals=totals,
        price=np.zeros_like(bounds.low),
        weight=1,
        is_even=goal.is_even,
    )
    distinct = {price.tobytes(): price for price in _prices(question, bounds, before, load)}
    proofs = [attrs.evolve(free, price=price) for price in distinct.values()]
    best = max(proofs, key=lambda one: lower_bound(question, one))
    if problem.topic_low is not None and problem.topic_high is not None:
        nothing = np.zeros_like(problem.topic_low)
        best = attrs.evolve(best, topics=TopicProof(low=problem.topic_low, high=problem.topic_high, price=nothing))
    return now, best


def place_bytes(
    problem: Problem, sizes: Int64Array, before: Int64Array, low: Int64Array, high: Int64Array
) -> tuple[Int32Array, Int64Array]:
    """Return the brokers of each partition, int32[P, V], and the bytes of each broker, within bounds if that is found.

    `before` int64[B] are the bytes of brokers now. Raises InfeasibleError when a partition has no place.

    >>> problem = Problem.of_rows([[0], [0]], group=[0, 0])
    >>> now, load = place_bytes(problem, np.array([5, 3]), np.array([8, 0]), np.array([2, 2]), np.array([6, 6]))
    >>> now.tolist(), load.tolist()
    ([[0], [1]], [5, 3])
    """
    shape, largest = _shape(problem), np.argsort(-sizes, kind="stable").astype(np.int64)
    largest = largest[problem.kind[largest] >= 0]
    now, loads = _begun(problem, shape, Loads(sizes, before.copy(), low, high, *_topics(problem, low)), largest)
    loads = loads._replace(spare=_outside(loads) // _SPARE)
    for out_rule, in_rule, ascending in _PASSES * 2:
        if not _outside(loads).any():
            break
        giving = loads.load > (low if out_rule == ALLOWED else high)
        order = largest[::-1] if ascending else largest
        held = now[order]
        places, columns = np.nonzero((held >= 0) & np.append(giving, False)[held])
        move_in_order(shape, now, loads, order[places], held[places, columns], out_rule, in_rule)
    improve(problem, now, loads)
    return now, loads.load


def _begun(problem: Problem, shape: Shape, loads: Loads, largest: Int64Array) -> tuple[Int32Array, Loads]:
    """Return the placement to begin with; where topics have bounds it is the one that moves fewest replicas."""
    now = np.full((loads.size.size, int(problem.factor.max(initial=1))), -1, dtype=np.int32)
    if not loads.held.shape[0]:
        if begin(shape, now, loads, largest) >= 0:
            raise InfeasibleError("a partition has no place")
        return now, loads
    now = solve(problem, leaders_last=False).now
    held, topics = now >= 0, np.broadcast_to(problem.topic[:, None], now.shape)
    np.add.at(loads.held, (topics[held], now[held]), 1)
    kept = loads.load - bytes_of(problem.before, loads.size, loads.load.size)
    return now, loads._replace(load=kept + bytes_of(now, loads.size, loads.load.size))


def _topics(problem: Problem, low: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Return no spare bytes, and what is held of each topic, at first nothing, with its bounds."""
    spare = np.zeros_like(low)
    if problem.topic_low is None or problem.topic_high is None:
        none = np.zeros((0, low.size), dtype=np.int64)
        return spare, none, none, none
    return spare, np.zeros_like(problem.topic_low), problem.topic_low, problem.topic_high


def _shape(problem: Problem) -> Shape:
    """Return the rules as kernels take them, without a graph."""
    none = np.zeros(0, dtype=np.int64)
    return Shape.of(problem, parent=none, first_child=none, child=none, low=none, high=none)


def _outside(loads: Loads) -> Int64Array:
    """Return by how much each broker is outside its bounds, int64[B]; 0 for one that may hold nothing."""
    over = np.maximum(loads.load - loads.high, loads.low - loads.load)
    return np.where(loads.high > 0, np.maximum(over, 0), 0)


def _blocks(problem: Problem, sizes: Int64Array, base: Int64Array, share: Int64Array) -> Int64Array:
    """Return the block of each broker, int64[B], the fullest first, -1 for brokers that may hold nothing."""
    if not base[problem.live].any() and _is_one_block(problem, share):
        return np.where(problem.live, 0, -1)
    order = np.argsort(problem.kind, kind="stable")
    order = order[problem.kind[order] >= 0]
    whole = int((sizes[order] * problem.factor[problem.kind[order]]).sum())
    wanted = _PARTS_PER_BROKER * problem.group.size
    times, unit = -(-wanted // max(whole, 1)), max(whole // wanted, 1)  # One of both is 1.
    ends = (times * np.cumsum(sizes[order]) + unit // 2) // unit
    rows = np.repeat(order, np.diff(ends, prepend=0))
    parts = problem.taken(
        rows,
        leader=np.full(rows.size, -1, dtype=np.int32),
        base=(times * base + unit // 2) // unit,
        topic=np.zeros(rows.size, dtype=np.int32),
        topic_low=None,
        topic_high=None,
        share=None if (share == share[0]).all() else share,
    )
    return solve(parts, leaders_last=False).block


def _is_one_block(problem: Problem, share: Int64Array) -> bool:
    """Return whether every partition, spread over all live brokers by their shares, keeps the rules."""
    live = problem.live
    if not problem.receives[live].all() or not live.any():
        return False
    parts, group = share[live].astype(np.float64), problem.group[live]
    whole = parts.sum()
    of_group = np.bincount(group, weights=parts, minlength=problem.room.shape[1])
    spread = problem.factor[:, None] * of_group / whole
    slack = 1e-9
    fits = (spread >= problem.must - slack) & (spread <= np.maximum(problem.room, 0) + slack)
    return bool(fits.all()) and float(problem.factor.max(initial=0)) * parts.max() <= whole * (1 + slack)


def _ordered_blocks(question: Question, block: Int64Array, share: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the blocks with their exact bytes; blocks that parts put in the wrong order become one."""
    while True:
        count = int(block.max(initial=-1)) + 1
        totals = block_totals(question, block, count)
        whole = np.zeros(count, dtype=np.int64)
        np.add.at(whole, block[block >= 0], share[block >= 0])
        wrong = [n for n in range(count - 1) if not are_ordered(totals[n : n + 2], whole[n : n + 2])]
        if not wrong:
            return block, totals
        block = np.where(block > wrong[0], block - 1, block)


def _prices(question: Question, bounds: ByteBounds, before: Int64Array, after: Int64Array) -> Iterator[Int64Array]:
    """Yield prices of brokers that may bound the bytes that move."""
    live = question.live
    over, under = live & (before > bounds.high), live & (before < bounds.low)
    gained = np.zeros(int(question.rack.max(initial=0)) + 1, dtype=np.int64)
    np.add.at(gained, question.rack, after - before)
    gives, receives = live & (gained < 0)[question.rack], live & (gained > 0)[question.rack]
    yield np.zeros_like(before)
    for signs in (over, gives, live & (over | gives)):
        yield signs.astype(np.int64)
    for signs in (under, receives, live & (under | receives)):
        yield -signs.astype(np.int64)
    yield over.astype(np.int64) - receives
    yield gives.astype(np.int64) - under


def _check_sums(view: ClusterView, question: Question, sizes: Int64Array) -> None:
    largest = int(sizes.max(initial=0))
    if largest >= _SIZE_MAX:
        raise PlanRefusedError(
            f"a partition of {largest:,} bytes is too large to plan by bytes; allowed are {_SIZE_MAX - 1:,}"
        )
    held = np.count_nonzero(view.partitions.replicas >= 0, axis=1) + question.wanted
    total = float((held.astype(np.float64) * sizes).sum())
    if total >= _BYTES_MAX:
        raise PlanRefusedError(
            f"{view.name} has {total:.3g} bytes, too many to plan by bytes; allowed are {_BYTES_MAX:,}"
        )


def _check_bounds(view: ClusterView, goal: Goal, question: Question, bounds: ByteBounds) -> None:
    """Refuse a partition that too few brokers may hold, and bounds without a sum of whole partitions."""
    assert question.weights is not None
    room = np.sort(np.where(question.live, bounds.high - question.base, -1))[::-1]
    rows = np.flatnonzero(question.wanted > 0)
    if not rows.size:
        return
    order = rows[np.argsort(-question.weights[rows], kind="stable")]
    for row in order[: int(np.count_nonzero(question.weights[order] > room[-1]))].tolist():
        size, wanted = int(question.weights[row]), int(question.wanted[row])
        if int(np.count_nonzero(room >= size)) >= wanted:
            continue
        most = int(room[wanted - 1])
        raise PlanRefusedError(
            f"{partition_name(view, row)} has {format_size(size)}, more than any broker may hold: at most "
            f"{format_size(max(most, 0))} of it fit within {_percent(goal)} of the mean on "
            f"{counted(wanted, 'broker')}; exclude its topic, or choose a wider --tolerance"
        )
    empty = question.live & (bounds.low > bounds.high)
    if empty.any():
        place = int(np.argmax(empty))
        raise PlanRefusedError(
            f"no sum of whole partitions lies within {_percent(goal)} of the mean of broker "
            f"{view.brokers[place].id}, {_between(int(bounds.even_low[place]), int(bounds.even_high[place]))}; choose "
            "a wider --tolerance"
        )


def _check_found(view: ClusterView, goal: Goal, question: Question, bounds: ByteBounds, load: Int64Array) -> None:
    outside = question.live & ((load < bounds.low) | (load > bounds.high))
    if not outside.any():
        return
    middle = (bounds.even_low + bounds.even_high) / 2
    off = np.where(bounds.high > 0, np.abs(load - middle), 0)
    place = int(np.argmax(np.where(outside, off / np.maximum(middle, 1), -1)))
    percent = math.ceil(1000 * off[place] / max(middle[place], 1)) / 10
    raise PlanRefusedError(
        f"no placement was found with the bytes of every broker within {_percent(goal)} of its mean; in the best one "
        f"broker {view.brokers[place].id} is {percent:g} % off, so try --tolerance {math.ceil(percent)}, or leave "
        "out --by bytes: then counts become even"
    )


def _percent(goal: Goal) -> str:
    return f"{100 * goal.tolerance_millionths / MILLIONTHS:g} %"


def _between(first: int, second: int) -> str:
    """Return two sizes as text, the smaller first; one where both round to the same text."""
    low, high = (format_size(size) for size in sorted((first, second)))
    return low if low == high else f"{low} to {high}"
