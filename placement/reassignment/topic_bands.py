"""Find a placement within bands of bytes in which each topic is spread evenly as well, and prices of topics.

What it decides: which brokers hold each partition where bounds by topic (counts of replicas) and bands (bytes) hold
together. Either alone is a flow, or near one (least_bytes.py, least_band.py); both together are not.

How. Two placements that keep the bounds by topic are begun with: each topic moved by itself with the fewest bytes, and
each topic brought to its bounds with the fewest bytes from the placement within the bands that knows no topics. Whole
partitions are then exchanged, first by what they save and then at random, so that bounds by topic are kept: two of one
topic, or where the brokers' bounds leave room (band_kernel.py). The placement nearer to the bands comes first; the
other is tried too unless it is far outside them, and the better one is taken.

Constraints: a placement may exist where none is found. What it copies has two lower bounds, that of the bands by prices
of brokers, and the sum of what each topic needs by itself, by prices of brokers for that topic; the gap is to the
greater one, and is wide where both bind at once.

Example: topics of sizes 5 and 3, and 4 and 4, on broker 0, which a second broker joins: with bands of 7 to 9 bytes one
partition of each topic moves, and of the first the one of 3.

    >>> import numpy as np
    >>> plain = Problem.of_rows([[0]] * 4, group=[0, 0], topic=np.array([0, 0, 1, 1], dtype=np.int32))
    >>> topics = {"topic_low": np.ones((2, 2), dtype=np.int64), "topic_high": np.ones((2, 2), dtype=np.int64)}
    >>> problem = attrs.evolve(plain, **topics)
    >>> parts = Parts.of(problem, np.array([5, 3, 4, 4]), np.zeros(2, dtype=np.int64))
    >>> nowhere = Found(now=problem.before, loads=np.array([16, 0]), price=np.zeros(2, dtype=np.int64), copied=0)
    >>> found, price = spread_evenly(parts, nowhere, np.array([7, 7]), np.array([9, 9]))
    >>> found.loads.tolist(), found.copied
    ([9, 7], 7)

Left out: one bound from both at once, by prices of bytes and of replicas together.

Source: ours.
"""

from __future__ import annotations

import contextlib
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.reassignment.annealing import annealed
from placement.reassignment.band_kernel import Loads
from placement.reassignment.check_input import bytes_of
from placement.reassignment.least_bytes import solve_bytes
from placement.reassignment.parts import Parts
from placement.reassignment.problem import Bounds, InfeasibleError, Problem
from placement.reassignment.whole_partitions import (
    Found,
    better,
    by_size,
    copied_bytes,
    exchange_whole,
    shape_of,
    spread_of,
)

_ENOUGH: Final = 1.002  # Of the bound: what copies more is annealed again.
_ANNEALED_MAX: Final = 4
_OUTSIDE_MAX: Final = 0.25  # Of the best plan's bytes: a placement that is farther outside the bands is not mended.


def spread_evenly(
    parts: Parts, near: Found, low: Int64Array, high: Int64Array, least: int = 0
) -> tuple[Found, Int64Array]:
    """Return a placement within the bounds by topic, and the prices that prove what it must copy.

    It is within `low` to `high` int64[B] too if such a one is found. `near` is a placement within these that need not
    keep the bounds by topic; `least` bytes are proven. Prices are int64[T, B], of each topic's replicas at brokers.
    Raises InfeasibleError where a topic has no place in its bounds.
    """
    problem, sizes = parts.whole, parts.sizes
    alone, price = by_topics(problem, sizes, problem.before)
    least = max(least, copied_bytes(problem, alone, sizes))
    starts = [_found(parts, alone, near.price)]
    with contextlib.suppress(InfeasibleError):  # What may receive nothing new could have kept what it had.
        starts.append(_found(parts, by_topics(problem, sizes, near.now)[0], near.price))
    starts.sort(key=lambda one: one.outside(low, high))
    best = _exchanged(parts, starts[0], low, high)
    for other in starts[1:]:
        if _is_good(best, low, high, least) or other.outside(low, high) > best.copied * _OUTSIDE_MAX:
            continue
        best = better(best, _exchanged(parts, other, low, high), low, high)
    for turn in range(_ANNEALED_MAX):
        if _is_good(best, low, high, least):
            break
        best = annealed(parts, best, low, high, turn)
    return best, price


def by_topics(problem: Problem, sizes: Int64Array, before: Int32Array) -> tuple[Int32Array, Int64Array]:
    """Return the placement int32[P, V] in which each topic keeps its bounds with the fewest bytes beside `before`.

    The prices int64[T, B] prove that for each topic by itself.
    """
    assert problem.topic_low is not None
    assert problem.topic_high is not None
    now = np.full((before.shape[0], int(problem.factor.max(initial=1))), -1, dtype=np.int32)
    price = np.zeros_like(problem.topic_low)
    order = np.argsort(problem.topic, kind="stable")
    starts = np.searchsorted(problem.topic[order], np.arange(problem.topic_low.shape[0] + 1))
    for topic in range(problem.topic_low.shape[0]):
        rows = order[starts[topic] : starts[topic + 1]]
        rows = rows[problem.kind[rows] >= 0]
        if not rows.size:
            continue
        part = attrs.evolve(
            problem,
            before=np.ascontiguousarray(before[rows]),
            kind=problem.kind[rows],
            leader=np.full(rows.size, -1, dtype=np.int32),
            topic=np.zeros(rows.size, dtype=np.int32),
            topic_low=None,
            topic_high=None,
            base=np.zeros_like(problem.base),
        )
        bounds = Bounds(
            low=problem.topic_low[topic],
            high=problem.topic_high[topic],
            block=np.where(problem.live, 0, -1),
            totals=np.array([part.total], dtype=np.int64),
        )
        found, weight = solve_bytes(part, sizes[rows], bounds)
        now[rows, : found.now.shape[1]] = found.now
        price[topic] = found.move_price // weight
    return now, price


def _found(parts: Parts, now: Int32Array, price: Int64Array) -> Found:
    """Return the placement `now` with its loads in bytes."""
    loads = parts.base + bytes_of(now, parts.sizes, parts.base.size)
    return Found(now=now, loads=loads, price=price, copied=copied_bytes(parts.whole, now, parts.sizes))


def _exchanged(parts: Parts, found: Found, low: Int64Array, high: Int64Array) -> Found:
    """Return the placement with partitions exchanged until bands are kept and nothing is saved any more."""
    problem, sizes = parts.whole, parts.sizes
    shape, _ = shape_of(problem, low, high)
    now, loads = found.now.copy(), Loads(found.loads.copy(), low, high, sizes, spread_of(problem))
    exchange_whole(shape, now, loads, by_size(problem, sizes), problem)
    return _found(parts, now, found.price)


def _is_good(found: Found, low: Int64Array, high: Int64Array, least: int) -> bool:
    """Return whether a placement lies within the bands and copies little more than `least` bytes."""
    return not found.outside(low, high) and found.copied <= least * _ENOUGH
