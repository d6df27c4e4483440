"""Put brokers into a given number of batches by crossing schedules, compiled.

Constraints: numbers are drawn from a fixed seed; only pairs count, hyperedges and a largest batch are not looked at.

How: two schedules with clashes are mended by tabu search as far as it goes; then each is replaced by a child of both,
which takes the largest batch of one, then of the other, and so on, and is mended in turn. Batches that both share live
on, so that a child begins near what both have right. Every ten generations an earlier best one comes back, so that the
two do not become one. The search ends with a schedule without clashes or after `steps_max` comparisons.

Source: Galinier & Hao, "Hybrid evolutionary algorithms for graph coloring", 1999; Moalic & Gondran's HEAD, "Variations
on memetic algorithms for graph coloring problems", Journal of Heuristics, 2018; Hertz & de Werra's TabuCol, 1987.
"""

from __future__ import annotations

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from placement.outages.restart_search_kernel import ByteArray


def drawn(state: Int64Array, below: int) -> int:
    """Return a number below `below`, and move the generator on (Lehmer's with modulus 2^31 - 1)."""
    state[0] = state[0] * 48_271 % 2_147_483_647
    return int(state[0] % below)


def clashing(batch_of: Int32Array, beside: Int32Array, listed: Int32Array, place_of: Int32Array, broker: int) -> None:
    """Put a broker on the list of those that clash, or take it off; the last entry of `listed` is its length."""
    count = listed[-1]
    clashes = beside[broker, batch_of[broker]] > 0
    if clashes and place_of[broker] < 0:
        listed[count], place_of[broker] = broker, count
        listed[-1] = count + 1
    elif not clashes and place_of[broker] >= 0:
        last = listed[count - 1]
        listed[place_of[broker]], place_of[last] = last, place_of[broker]
        place_of[broker] = -1
        listed[-1] = count - 1


def mend(clash: ByteArray, batch_count: int, turns: int, batch_of: Int32Array, state: Int64Array) -> tuple[int, int]:
    """Mend int32[N] by tabu search; return the clashes that are left, and the comparisons made."""
    count = clash.shape[0]
    beside, barred_until = np.zeros((count, batch_count), np.int32), np.zeros((count, batch_count), np.int64)
    listed, place_of = np.zeros(count + 1, np.int32), np.full(count, -1, np.int32)
    clashes, steps = np.int64(0), 0
    for broker in range(count):
        for other in range(count):
            beside[broker, batch_of[other]] += clash[broker, other]
    for broker in range(count):
        clashes += beside[broker, batch_of[broker]]
        clashing(batch_of, beside, listed, place_of, broker)
    clashes //= 2
    fewest, best_of = clashes, batch_of.copy()
    for turn in range(turns):
        if clashes == 0:
            break
        best, ties, moved, into = np.int64(count * count), 0, -1, -1
        for place in range(listed[-1]):
            broker = listed[place]
            for batch in range(batch_count):
                change = beside[broker, batch] - beside[broker, batch_of[broker]]
                if change > best or batch == batch_of[broker]:
                    continue
                if barred_until[broker, batch] > turn and clashes + change >= fewest:
                    continue
                ties = ties + 1 if change == best else 1
                if ties == 1 or drawn(state, ties) == 0:
                    best, moved, into = change, broker, batch
        steps += listed[-1] * batch_count + count
        if moved < 0:
            continue
        left = batch_of[moved]
        barred_until[moved, left] = turn + 6 * listed[-1] // 10 + drawn(state, 10)
        batch_of[moved] = into
        clashes += best
        for other in range(count):
            if clash[moved, other]:
                beside[other, left] -= 1
                beside[other, into] += 1
                clashing(batch_of, beside, listed, place_of, other)
        clashing(batch_of, beside, listed, place_of, moved)
        if clashes < fewest:
            fewest = clashes
            best_of[:] = batch_of
    batch_of[:] = best_of
    return int(fewest), steps


def cross(one: Int32Array, other: Int32Array, batch_count: int, child: Int32Array, state: Int64Array) -> None:
    """Fill int32[N] with the largest batch of `one`, then the largest left of `other`, and so on; the rest by lot."""
    child[:] = -1
    for batch in range(batch_count):
        parent = one if batch % 2 == 0 else other
        sizes = np.zeros(batch_count, np.int64)
        for broker in range(child.shape[0]):
            sizes[parent[broker]] += child[broker] < 0
        largest = sizes.argmax()
        for broker in range(child.shape[0]):
            if child[broker] < 0 and parent[broker] == largest:
                child[broker] = batch
    for broker in range(child.shape[0]):
        if child[broker] < 0:
            child[broker] = drawn(state, batch_count)


@compiled_with(drawn, clashing, mend, cross)
def fill_by_crossing(clash: ByteArray, batch_count: int, steps_max: int, turns: int, batch_of: Int32Array) -> int:
    """Fill int32[N] with a schedule of `batch_count` batches; return the fewest clashes, 0 if it is found."""
    count = clash.shape[0]
    state = np.ones(1, np.int64)
    parents, children = np.zeros((2, count), np.int32), np.zeros((2, count), np.int32)
    for parent in range(2):
        for broker in range(count):
            parents[parent, broker] = drawn(state, batch_count)
    elite, best_since = parents[0].copy(), parents[0].copy()
    fewest_since, fewest, steps, generation = count * count, count * count, 0, 0
    while steps <= steps_max:
        for each in range(2):
            if generation:
                cross(parents[each], parents[1 - each], batch_count, children[each], state)
            else:
                children[each] = parents[each]
            clashes, made = mend(clash, batch_count, turns, children[each], state)
            steps += made
            if clashes < fewest_since:
                fewest_since, best_since = clashes, children[each].copy()
            fewest = min(fewest, clashes)
            if clashes == 0:
                batch_of[:] = children[each]
                return 0
        parents[:] = children
        generation += 1
        if generation % 10 == 0:
            parents[generation // 10 % 2] = elite
            elite, fewest_since = best_since, count * count
    return int(fewest)
