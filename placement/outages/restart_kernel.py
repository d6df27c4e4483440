"""Put brokers into batches: in a given order, and by repairing a schedule of too few batches, compiled.

Fed with the batches of a schedule, one after the other, `fill_first_fit` never needs more batches than that schedule
has, so trying orders of batches only improves.

Source: Culberson's iterated greedy, here with hyperedges and a largest batch; Hertz & de Werra's TabuCol, 1987.
"""

from __future__ import annotations

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled
from placement.outages.restart_check import ByteArray


@compiled
def fill_first_fit(
    tables: tuple[ByteArray, Int32Array, Int32Array], batch_max: int, order: Int64Array, batch_of: Int32Array
) -> int:
    """Fill int32[N], the batch of each broker; return the number of batches. Cost: O(N^2 + N batches hyperedges)."""
    clash, hyperedge_of, budget = tables
    count = order.shape[0]
    barred = np.zeros((count, count), np.int32)
    held = np.zeros((count, budget.shape[0]), np.int32)
    size = np.zeros(count, np.int64)
    batches = 0
    for place in range(count):
        broker = order[place]
        batch = 0
        while batch < batches:
            fits = barred[batch, broker] == 0 and size[batch] < batch_max
            if fits:
                for edge in hyperedge_of[broker]:
                    if edge >= 0 and held[batch, edge] >= budget[edge]:
                        fits = False
                        break
            if fits:
                break
            batch += 1
        batches = max(batches, batch + 1)
        batch_of[broker] = batch
        size[batch] += 1
        for other in range(count):
            barred[batch, other] += clash[broker, other]
        for edge in hyperedge_of[broker]:
            if edge >= 0:
                held[batch, edge] += 1
    return batches


@compiled
def fill_by_tabu(weight: Int32Array, batch_count: int, steps_max: int, batch_of: Int32Array) -> int:
    """Repair int32[N], a schedule with clashes, by tabu search; return the weight of the clashes that are left.

    `weight` int32[N, N] is what it costs to have two brokers in one batch. Each turn moves a broker that clashes to the
    batch where that costs least, and bars it from going back for a while. Only pairs count: hyperedges and a largest
    batch are not looked at. The schedule that is left is the best of all turns.
    """
    count = weight.shape[0]
    beside = np.zeros((count, batch_count), np.int64)
    barred_until = np.zeros((count, batch_count), np.int64)
    for broker in range(count):
        for other in range(count):
            beside[broker, batch_of[other]] += weight[broker, other]
    clashes = np.int64(0)
    for broker in range(count):
        clashes += beside[broker, batch_of[broker]]
    clashes //= 2
    fewest = clashes
    best_of = batch_of.copy()
    state = np.int64(1)
    turn = steps = 0
    while clashes > 0 and steps <= steps_max:
        turn += 1
        best, ties, moved, into, moving = np.int64(1) << 62, 0, -1, -1, 0
        for broker in range(count):
            here = beside[broker, batch_of[broker]]
            if here == 0:
                continue
            moving += 1
            steps += batch_count
            for batch in range(batch_count):
                if batch == batch_of[broker]:
                    continue
                change = beside[broker, batch] - here
                if barred_until[broker, batch] > turn and clashes + change >= fewest:
                    continue
                if change < best:
                    best, ties, moved, into = change, 1, broker, batch
                elif change == best:
                    ties += 1
                    state = state * 48271 % 2147483647
                    if state % ties == 0:
                        moved, into = broker, batch
        steps += count
        if moved < 0:
            continue
        left = batch_of[moved]
        for other in range(count):
            beside[other, left] -= weight[moved, other]
            beside[other, into] += weight[moved, other]
        batch_of[moved] = into
        clashes += best
        if clashes < fewest:
            fewest = clashes
            best_of[:] = batch_of
        state = state * 48271 % 2147483647
        barred_until[moved, left] = turn + 6 * moving // 10 + state % 10
    batch_of[:] = best_of
    return int(fewest)
