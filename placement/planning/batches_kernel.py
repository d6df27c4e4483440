"""Split moves into batches that run one after the other, compiled, in O(moves x batches); schedule.py states the goal.

>>> links = np.array([[1, 4], [1, 4], [3, 6], [3, 6]], dtype=np.int32)
>>> seconds = np.array([[5.0, 5.0], [3.0, 3.0], [5.0, 5.0], [3.0, 3.0]])
>>> pack_moves(np.array([0, 2, 1, 3]), links, seconds, np.zeros(2), 8, 1).tolist()
[0, 1, 0, 1]
"""

from __future__ import annotations

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled, compiled_with
from placement.planning.moves import FloatArray


def fits(
    move: int,
    source: Int32Array,
    targets: Int32Array,
    sizes: Int64Array,
    load: Int64Array,
    count: Int64Array,
    budget: Int64Array,
    room: Int64Array,
    concurrency: int,
) -> bool:
    """Return whether a batch with these loads takes a move; `load`, `count`, `budget` are [2, B], in and out."""
    copies = 0
    for column in range(targets.shape[1]):
        broker = targets[move, column]
        if broker < 0:
            continue
        copies += 1
        if count[0, broker] >= concurrency or load[0, broker] + sizes[move] > budget[0, broker]:
            return False
        if sizes[move] > room[broker]:
            return False
    origin = source[move]
    return bool(count[1, origin] < concurrency and load[1, origin] + copies * sizes[move] <= budget[1, origin])


def take(
    move: int,
    source: Int32Array,
    targets: Int32Array,
    sizes: Int64Array,
    load: Int64Array,
    count: Int64Array,
    room: Int64Array,
) -> None:
    """Add a move to a batch's loads, and subtract its bytes from the remaining capacity of its target brokers."""
    for column in range(targets.shape[1]):
        broker = targets[move, column]
        if broker >= 0:
            load[0, broker] += sizes[move]
            count[0, broker] += 1
            load[1, source[move]] += sizes[move]
            room[broker] -= sizes[move]
    count[1, source[move]] += 1


@compiled_with(fits, take)
def fill_batches(
    order: Int64Array,
    source: Int32Array,
    targets: Int32Array,
    sizes: Int64Array,
    budget: Int64Array,
    room: Int64Array,
    freed: Int32Array,
    freed_bytes: Int64Array,
    concurrency: int,
    batch_count: int,
) -> Int64Array:
    """Return the batch of each move, int64[M], -1 for those that fit in none; `room` ends as after the last batch.

    `order` are the moves, most urgent first; `freed` [M, V] are brokers that lose `freed_bytes` after a move's batch.
    """
    batch_of = np.full(source.size, -1, dtype=np.int64)
    left = order.copy()
    left_count = left.size
    for batch in range(batch_count):
        load = np.zeros(budget.shape, dtype=np.int64)
        count = np.zeros(budget.shape, dtype=np.int64)
        kept = 0
        for place in range(left_count):
            move = left[place]
            if fits(move, source, targets, sizes, load, count, budget, room, concurrency):
                take(move, source, targets, sizes, load, count, room)
                batch_of[move] = batch
            else:
                left[kept] = move
                kept += 1
        if kept == left_count:
            break
        left_count = kept
        for move in range(source.size):
            if batch_of[move] == batch:
                for column in range(freed.shape[1]):
                    if freed[move, column] >= 0:
                        room[freed[move, column]] += freed_bytes[move, column]
        if left_count == 0:
            break
    return batch_of


@compiled
def pack_moves(
    order: Int64Array, links: Int32Array, seconds: FloatArray, lengths: FloatArray, link_count: int, concurrency: int
) -> Int64Array:
    """Return the batch of each move, int64[M], where each lengthens its batch least; -1 where no batch has a slot.

    `order` are the moves, longest first; `links` int32[M, L] those of each, -1 pads, `seconds` float64[M, L] the time
    at each. `lengths` float64[K] is what each batch takes anyway: up to it, a move costs nothing. Of equals the first
    batch is taken.
    """
    load = np.zeros((lengths.size, link_count), dtype=np.float64)
    count = np.zeros((lengths.size, link_count), dtype=np.int64)
    length = lengths.copy()
    batch_of = np.full(order.size, -1, dtype=np.int64)
    for move in order:
        chosen, least, then = -1, np.inf, 0.0
        for batch in range(lengths.size):
            longest, has_slot = length[batch], True
            for column in range(links.shape[1]):
                link = links[move, column]
                if link >= 0:
                    has_slot = has_slot and count[batch, link] < concurrency
                    longest = max(longest, load[batch, link] + seconds[move, column])
            if has_slot and longest - length[batch] < least:
                chosen, least, then = batch, longest - length[batch], longest
        if chosen < 0:
            continue
        batch_of[move] = chosen
        length[chosen] = then
        for column in range(links.shape[1]):
            link = links[move, column]
            if link >= 0:
                load[chosen, link] += seconds[move, column]
                count[chosen, link] += 1
    return batch_of
