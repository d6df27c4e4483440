"""Find the heaviest batch of restarts, and search for a schedule of so many batches, compiled.

What it decides: what `restart_check` trusts: the weight that no batch exceeds, and that no schedule has so few batches.

How: `heaviest_batch` tries brokers in order of weight; a branch is cut where the brokers that are left, at most one
from each set of which no two may restart together, cannot outweigh the best. `fill_within` searches depth first: it
takes the broker for which the fewest batches are open, tries each of them, and one new batch, as unused batches are
alike. If it ends without a schedule, there is none.

Cost: exponential in the worst case, so at most `steps_max` comparisons are made.

Source: Babel & Tinhofer's branch and bound with a colouring; Brélaz's DSATUR, here with hyperedges and a largest batch.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with

ByteArray: TypeAlias = NDArray[np.uint8]


def fits(edges: Int32Array, held: Int32Array, budget: Int32Array) -> bool:
    """Return whether a batch that holds `held` of each hyperedge takes a broker of the hyperedges `edges`."""
    full = 0
    for edge in edges:
        full += edge >= 0 and held[edge] >= budget[edge]
    return full == 0


def hold(edges: Int32Array, held: Int32Array, change: int) -> None:
    """Add a broker of the hyperedges `edges` to what a batch holds, or take it away."""
    for edge in edges:
        if edge >= 0:
            held[edge] += change


def cover(
    clash: ByteArray, weights: Int64Array, left: Int32Array, left_count: int, cliques: Int32Array, bound: Int64Array
) -> int:
    """Fill for each candidate how much it and all after it can add at most; return the comparisons made.

    Candidates are covered with cliques, the lightest first: a batch has one broker of each clique at most.
    """
    sizes = np.zeros(left_count, np.int64)
    tops = np.zeros(left_count, np.int64)
    count = steps = 0
    bound[left_count] = 0
    for place in range(left_count - 1, -1, -1):
        broker = left[place]
        into = 0
        while into < count:
            inside = True
            for member in range(sizes[into]):
                steps += 1
                if not clash[broker, cliques[into, member]]:
                    inside = False
                    break
            if inside:
                break
            into += 1
        count = max(count, into + 1)
        cliques[into, sizes[into]] = broker
        sizes[into] += 1
        bound[place] = bound[place + 1] + weights[broker] - tops[into]
        tops[into] = weights[broker]
    return steps


@compiled_with(fits, hold, cover)
def heaviest_batch(
    tables: tuple[ByteArray, Int32Array, Int32Array],
    batch_max: int,
    weights: Int64Array,
    order: Int64Array,
    steps_max: int,
    least: int,
    best: ByteArray,
) -> tuple[int, int]:
    """Fill uint8[N] with the heaviest batch; return its weight, and the comparisons, above `steps_max` if cut off.

    Only batches heavier than `least` are looked for: if there is none, nothing is filled, and the weight is `least`.
    """
    clash, hyperedge_of, budget = tables
    count = order.shape[0]
    deepest = min(batch_max, count)
    left = np.zeros((deepest + 1, count), np.int32)
    left_count = np.zeros(deepest + 1, np.int64)
    bound = np.zeros((deepest + 1, count + 1), np.int64)
    at = np.zeros(deepest + 1, np.int64)
    chosen = np.zeros(deepest + 1, np.int64)
    held = np.zeros(budget.shape[0], np.int32)
    cliques = np.zeros((count, count), np.int32)
    left[0] = order
    left_count[0] = count
    depth, weight, most, steps, fresh = 0, np.int64(0), np.int64(least), 0, True
    while depth >= 0 and steps <= steps_max:
        if fresh:
            steps += cover(clash, weights, left[depth], left_count[depth], cliques, bound[depth])
            at[depth] = 0
        place = at[depth]
        fresh = False
        if depth < deepest and place < left_count[depth]:
            broker = left[depth, place]
            fresh = weight + min(bound[depth, place], (deepest - depth) * weights[broker]) > most
        if not fresh:  # Nothing better is left here.
            depth -= 1
            if depth >= 0:
                weight -= weights[chosen[depth]]
                hold(hyperedge_of[chosen[depth]], held, -1)
            continue
        steps += 1 + left_count[depth] - place
        at[depth] += 1
        chosen[depth] = broker
        weight += weights[broker]
        hold(hyperedge_of[broker], held, 1)
        if weight > most:
            most = weight
            best[:] = 0
            for member in range(depth + 1):
                best[chosen[member]] = 1
        kept = 0
        for other_place in range(place + 1, left_count[depth]):
            other = left[depth, other_place]
            if not clash[broker, other] and fits(hyperedge_of[other], held, budget):
                left[depth + 1, kept] = other
                kept += 1
        depth += 1
        left_count[depth] = kept
    return int(most), steps


def move(
    broker: int, clash: ByteArray, batch: Int64Array, barred: Int32Array, barring: Int32Array, change: int
) -> None:
    """Put a broker into a batch or take it out: its size, batch[0], whom it bars, and how many batches bar each."""
    batch[0] += change
    before = 0 if change > 0 else 1
    for other in range(clash.shape[0]):
        met = clash[broker, other]
        barring[other] += change * (met & (barred[other] == before))
        barred[other] += change * met


@compiled_with(fits, hold, move)
def fill_within(
    tables: tuple[ByteArray, Int32Array, Int32Array],
    batch_max: int,
    batch_count: int,
    steps_max: int,
    batch_of: Int32Array,
) -> int:
    """Fill int32[N] with a schedule of `batch_count` batches or fewer; return 1 if found, 0 if there is none, or -1."""
    clash, hyperedge_of, budget = tables
    count = clash.shape[0]
    barred, barring = np.zeros((batch_count, count), np.int32), np.zeros(count, np.int32)
    only_pairs = budget.shape[0] == 0 and batch_max >= count
    held = np.zeros((batch_count, budget.shape[0]), np.int32)
    size = np.zeros((batch_count, 1), np.int64)
    degree = np.zeros(count, np.int64)
    for broker in range(count):
        degree[broker] = clash[broker].sum() + (hyperedge_of[broker] >= 0).sum()
    batch_of[:] = -1
    chosen = np.zeros(count + 1, np.int64)
    tried = np.full(count + 1, -1, np.int64)
    used = np.zeros(count + 2, np.int64)
    depth, steps, fresh = 0, 0, True
    while 0 <= depth < count and steps <= steps_max:
        if fresh:
            # The broker with the fewest open batches, of equals the one with the most constraints.
            best, best_open = -1, np.int64(0)
            for broker in range(count):
                if batch_of[broker] >= 0:
                    continue
                # Only batches that are in use bar a broker.
                is_open = used[depth] - barring[broker] if only_pairs else np.int64(0)
                for batch in range(0 if only_pairs else used[depth]):
                    if barred[batch, broker] == 0 and size[batch, 0] < batch_max:
                        is_open += fits(hyperedge_of[broker], held[batch], budget)
                steps += 1 if only_pairs else 1 + used[depth]
                if best < 0 or is_open < best_open or (is_open == best_open and degree[broker] > degree[best]):
                    best, best_open = broker, is_open
            chosen[depth] = best
            tried[depth] = -1
        broker, batch = chosen[depth], tried[depth]
        if batch >= 0:
            batch_of[broker] = -1
            move(broker, clash, size[batch], barred[batch], barring, -1)
            hold(hyperedge_of[broker], held[batch], -1)
        batch += 1
        last = min(used[depth] + 1, batch_count)
        while batch < last and not (
            barred[batch, broker] == 0
            and size[batch, 0] < batch_max
            and fits(hyperedge_of[broker], held[batch], budget)
        ):
            batch += 1
        steps += count
        fresh = batch < last
        if not fresh:
            depth -= 1
            continue
        tried[depth] = batch
        batch_of[broker] = batch
        move(broker, clash, size[batch], barred[batch], barring, 1)
        hold(hyperedge_of[broker], held[batch], 1)
        used[depth + 1] = max(used[depth], batch + 1)
        depth += 1
    return 1 if depth == count else 0 if depth < 0 else -1
