"""Find the heaviest batch of restarts, and search for a schedule of so many batches, compiled.

What it decides: what `restart_check` trusts: the weight that no batch exceeds, and that no schedule has so few batches.

How: `heaviest_batch` tries brokers in order of weight; a branch is cut where the brokers that are left, at most one
from each set of which no two may restart together, cannot outweigh the best. Sets are bits of words. `fill_within`
searches depth first: it takes the broker for which the fewest batches are open, tries each of them, and one new batch,
as unused batches are alike. If it ends without a schedule, there is none.

Cost: exponential in the worst case, so at most `steps_max` comparisons are made.

Source: Babel & Tinhofer's branch and bound with a colouring; Brélaz's DSATUR, here with hyperedges and a largest batch.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with

ByteArray: TypeAlias = NDArray[np.uint8]
WordArray: TypeAlias = NDArray[np.uint64]

_DE_BRUIJN: Final = np.uint64(0x03F79D71B4CB0A89)
_PLACE_OF: Final = np.array(
    [int(0x03F79D71B4CB0A89 << place & 0xFFFFFFFFFFFFFFFF) >> 58 for place in range(64)], dtype=np.int64
).argsort()
"""The place of a bit, by the six highest bits of its product with a de Bruijn sequence."""


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


def lowest(word: np.uint64) -> int:
    """Return the place of the lowest bit of a word that is not 0."""
    return int(_PLACE_OF[(word & (~word + np.uint64(1))) * _DE_BRUIJN >> np.uint64(58)])


def include(words: WordArray, place: int) -> None:
    """Add an element to a set of bits."""
    words[place // 64] |= np.uint64(1) << np.uint64(place % 64)


def fill_sets(clash: ByteArray, broker_of: Int64Array, clash_of: WordArray) -> None:
    """Fill for each candidate the set of the candidates that it clashes with."""
    for one in range(broker_of.shape[0]):
        for other in range(broker_of.shape[0]):
            if clash[broker_of[one], broker_of[other]]:
                include(clash_of[one], other)


def cover(
    clash_of: WordArray, weights: Int64Array, left: WordArray, uncovered: WordArray, inside: WordArray, adds: Int64Array
) -> int:
    """Fill for each candidate of the set `left` how much it can add beside lighter ones; return the words touched.

    Candidates are covered with cliques, the lightest first: a batch has one broker of each clique at most. Bits of sets
    are candidates, the lightest first.
    """
    uncovered[:] = left
    words, steps, first = left.shape[0], 0, 0
    while first < words:
        if not uncovered[first]:
            first += 1
            continue
        inside[:] = uncovered
        heaviest_inside, word = np.int64(0), first
        while word < words:
            if not inside[word]:
                word += 1
                continue
            bit = lowest(inside[word])
            candidate = 64 * word + bit
            uncovered[word] &= ~(np.uint64(1) << np.uint64(bit))
            adds[candidate] = weights[candidate] - heaviest_inside
            heaviest_inside = weights[candidate]
            for other in range(word, words):
                inside[other] &= clash_of[candidate, other]
            steps += words - word
    return steps


@compiled_with(fits, hold, lowest, include, fill_sets, cover)
def heaviest_batch(
    tables: tuple[ByteArray, Int32Array, Int32Array],
    batch_max: int,
    weights: Int64Array,
    order: Int64Array,
    steps_max: int,
    least: int,
    best: ByteArray,
) -> tuple[int, int]:
    """Fill uint8[N] with the heaviest batch; return its weight, and the words touched, above `steps_max` if cut off.

    `order` are the brokers to look at, the heaviest first. Only batches heavier than `least` are looked for: if there
    is none, nothing is filled, and the weight is `least`.
    """
    clash, hyperedge_of, budget = tables
    count = order.shape[0]
    words = (count + 63) // 64
    only_pairs = budget.shape[0] == 0
    broker_of = order[::-1].copy()
    weight_of = weights[broker_of]
    clash_of = np.zeros((count, words), np.uint64)
    fill_sets(clash, broker_of, clash_of)
    deepest = min(batch_max, count)
    left = np.zeros((deepest + 1, words), np.uint64)
    listed = np.zeros((deepest + 1, count), np.int32)
    left_count = np.zeros(deepest + 1, np.int64)
    bound = np.zeros((deepest + 1, count + 1), np.int64)
    at, chosen = np.zeros(deepest + 1, np.int64), np.zeros(deepest + 1, np.int64)
    held = np.zeros(budget.shape[0], np.int32)
    uncovered, inside, adds = np.zeros(words, np.uint64), np.zeros(words, np.uint64), np.zeros(count, np.int64)
    for candidate in range(count):
        include(left[0], candidate)
    listed[0], left_count[0] = np.arange(count), count
    depth, weight, most, steps, fresh = 0, np.int64(0), np.int64(least), 0, True
    while depth >= 0 and steps <= steps_max:
        if fresh:
            steps += 1 + cover(clash_of, weight_of, left[depth], uncovered, inside, adds)
            for place in range(left_count[depth]):
                bound[depth, place + 1] = bound[depth, place] + adds[listed[depth, place]]
            at[depth] = left_count[depth]
        place = at[depth]
        fresh = False
        if depth < deepest and place > 0:
            candidate = listed[depth, place - 1]
            fresh = weight + min(bound[depth, place], (deepest - depth) * weight_of[candidate]) > most
        if not fresh:  # Nothing better is left here.
            depth -= 1
            if depth >= 0:
                weight -= weight_of[chosen[depth]]
                if not only_pairs:
                    hold(hyperedge_of[broker_of[chosen[depth]]], held, -1)
            continue
        at[depth] -= 1
        chosen[depth] = candidate
        weight += weight_of[candidate]
        if not only_pairs:
            hold(hyperedge_of[broker_of[candidate]], held, 1)
        if weight > most:
            most = weight
            best[:] = 0
            for member in range(depth + 1):
                best[broker_of[chosen[member]]] = 1
        kept = 0
        left[depth + 1] = 0
        for other_place in range(place - 1):
            other = listed[depth, other_place]
            met = clash_of[candidate, other // 64] >> np.uint64(other % 64) & np.uint64(1)
            if not met and (only_pairs or fits(hyperedge_of[broker_of[other]], held, budget)):
                listed[depth + 1, kept] = other
                include(left[depth + 1], other)
                kept += 1
        steps += 1 + place
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
