"""Find the solution that copies the fewest bytes among those with the most even counts.

What it decides: which brokers hold each partition, so that loads lie within given bounds, as few bytes as possible are
copied, and, where the costs leave room for it, as few replicas as possible are new and former leaders lost.

The problem is that of exchange.py with another cost: a new replica of partition p costs

    weight * size(p) + 1        and a former leader that is not kept costs 1,

so with more weight than replicas the bytes come first, and of plans with equal bytes (empty partitions, equal sizes)
the one with the least sum of new replicas and lost leaders is chosen. Where such a weight would make costs too great,
weight is 1 and a new replica costs its size alone: the bytes are still the least.

The prices that come with the solution prove it, as certificate.py says.

Constraints: memory grows with partitions x factor x groups of brokers (racks that a partition may choose from), and is
bounded by `EXCHANGE_COUNT_MAX` exchanges. A path costs time by the square of the brokers: 100,000 partitions on 100
brokers take seconds, 1,000 brokers minutes.

Example: partitions of 5 and 3 bytes on broker 0, which a second broker joins: the smaller one moves.

    >>> import numpy as np
    >>> plain = Problem.of_rows([[0], [0]], group=[0, 0])
    >>> bounds = Bounds.even(np.array([0, 0]), np.array([2]))
    >>> solution, weight = solve_bytes(plain, np.array([5, 3]), bounds)
    >>> solution.now.tolist(), weight
    ([[0], [1]], 1000)

Left out: spread by topic; bounds on bytes, which are no flow.

Source: ours; bytes_kernel.py.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from broker.cluster import Int64Array
from broker.errors import RefusedError
from placement.reassignment.bytes_kernel import (
    DONE,
    FAR,
    FULL,
    Arcs,
    Costs,
    Heaps,
    Paths,
    fill_heaps,
    send_cheapest,
)
from placement.reassignment.exchange import Work
from placement.reassignment.problem import Bounds, InfeasibleError, Problem, Solution

EXCHANGE_COUNT_MAX: Final = 40_000_000  # Entries of 20 bytes in the heaps, all told: 0.8 GB.
_COST_MAX: Final = 1 << 52  # A path of 500 such costs still fits in 61 bits.
_WEIGHT_DIGITS_LEAST: Final = 3


class TooManyExchangesError(RefusedError):
    """A problem has more exchanges than fit in memory."""


def weight_of(problem: Problem, sizes: Int64Array) -> int:
    """Return a power of ten that counts of replicas and leaders stay below, 1 where costs would be too great.

    Raises RefusedError for a partition whose size alone is too great.
    """
    largest = int(sizes[problem.kind >= 0].max(initial=0))
    if largest >= _COST_MAX:
        raise RefusedError(
            f"a partition of {largest:,} bytes is too large to plan by bytes; allowed are {_COST_MAX - 1:,}"
        )
    most = problem.total + problem.kind.size
    weight = int(10 ** max(_WEIGHT_DIGITS_LEAST, len(str(most))))
    return weight if weight * largest + 1 < _COST_MAX else 1


def solve_bytes(problem: Problem, sizes: Int64Array, bounds: Bounds) -> tuple[Solution, int]:
    """Return the solution of fewest bytes within `bounds`, and the weight of a byte; `sizes` int64[P] of one replica.

    Raises InfeasibleError when nothing lies within the bounds, and TooManyExchangesError beyond the memory allowed.
    """
    assert problem.topic_low is None, "no spread by topic"
    weight = weight_of(problem, sizes)
    costs = Costs(weight * sizes + (weight > 1), int(weight > 1))
    work = Work(problem, bounds)
    shape, state = work.shape, work.state
    brokers, nodes = problem.group.size, shape.parent.size
    arcs = Arcs(
        np.full((brokers + 1, brokers), FAR, dtype=np.int64),
        np.full((brokers + 1, brokers), -1, dtype=np.int32),
        np.ones(brokers + 1, dtype=np.bool_),
    )
    rows = np.flatnonzero(problem.kind >= 0)
    order = rows[np.argsort(-costs.fresh[rows], kind="stable")].astype(np.int64)
    most = state.now.shape[1] * (problem.room.shape[1] + problem.before.shape[1])  # Exchanges of one partition.
    capacity = 4 * int(np.count_nonzero(state.now >= 0)) + 4 * most * (nodes + 2)
    while True:
        capacity = min(capacity, EXCHANGE_COUNT_MAX)
        heaps = _empty(capacity, brokers, problem.room.shape[1])
        waiting = int(state.excess[state.excess > 0].sum())
        used = fill_heaps(shape, state.now, costs, heaps, order)
        status = FULL
        if used >= 0:
            arcs.stale[:] = True
            paths = _paths(nodes, brokers, capacity)
            status = send_cheapest(shape, state, costs, heaps, arcs, paths, capacity - used)
        if status == DONE:
            break
        if status != FULL:
            raise InfeasibleError("no placement lies within these bounds")
        is_idle = used < 0 or waiting == int(state.excess[state.excess > 0].sum())
        if is_idle or used > capacity // 2:  # Else the heaps were full of what is no longer true.
            if is_idle and capacity == EXCHANGE_COUNT_MAX:
                raise TooManyExchangesError(
                    f"{order.size} partitions on {brokers} brokers of {problem.room.shape[1]} racks have more than "
                    f"{EXCHANGE_COUNT_MAX} exchanges; plan by replicas"
                )
            capacity *= 2
    solution = work.solution()
    assert int(np.abs(solution.move_price).max(initial=0)) < FAR, "no price is beyond a path's cost"
    return solution, weight


def _empty(capacity: int, brokers: int, groups: int) -> Heaps:
    chain = np.arange(1, capacity + 1, dtype=np.int32)
    chain[-1] = -1
    return Heaps(
        np.empty(capacity, dtype=np.int64),
        np.empty(capacity, dtype=np.int32),
        chain,
        np.empty(capacity, dtype=np.int32),
        np.full((brokers + 1, groups + brokers), -1, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
    )


def _paths(nodes: int, brokers: int, capacity: int) -> Paths:
    cost, arcs, before, by = (np.empty(nodes, dtype=np.int64) for _ in range(4))
    return Paths(
        cost,
        arcs,
        before,
        by,
        np.empty(nodes, dtype=np.bool_),
        np.empty(capacity, dtype=np.int32),
        np.empty(brokers, dtype=np.int64),
    )
