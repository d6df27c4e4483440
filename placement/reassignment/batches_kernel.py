"""Split moves into batches that run one after the other, compiled; placement/reassignment/schedule.py states the goal.

What it decides: the batch of each move. `fill_batches` takes the moves in the order given into the first batch with
room for them. `pack_moves` takes each into the batch that it lengthens least, so that large moves share batches, whose
time is paid once. `colour_moves` serves moves that add one replica each: they are edges between two brokers' links, and
a bipartite graph of greatest degree K can be coloured with K colours (Koenig 1916), one colour a batch.

How `colour_moves` keeps batches even: the moves of a link are sorted by size and cut into groups of K, each group a
vertex of its own. Every colour then has at most one move of each group: a link with d moves has at most ceil(d / K) in
a batch, and the bytes of two batches differ by no more than the largest move.

Cost: `fill_batches` and `pack_moves` O(moves x batches); `colour_moves` O(moves x (K + length of an alternating path)).

Example: three moves of one byte from broker 0 and K = 2: batches of 2 and 1.

Left out: moves with several new replicas in `colour_moves`; colouring hypergraphs is NP-hard.

Source: D. Koenig 1916; de Werra 1971 for equitable colourings.
"""

from __future__ import annotations

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled, compiled_with
from placement.reassignment.moves import FloatArray


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
    """Add a move to a batch's loads, and take its bytes from the room of the brokers that it comes to."""
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


def first_free(used: Int32Array, vertex: int) -> int:
    """Return the first colour that no edge of a vertex has."""
    for colour in range(used.shape[1]):
        if used[vertex, colour] < 0:
            return colour
    return -1


@compiled_with(first_free)
def colour_moves(
    left: Int64Array, right: Int64Array, left_count: int, right_count: int, colour_count: int
) -> Int64Array:
    """Return a colour for each edge (left[e], right[e]) so that no vertex has two edges of one colour, int64[E].

    Every vertex has at most `colour_count` edges.
    """
    colour_of = np.full(left.size, -1, dtype=np.int64)
    at_left = np.full((left_count, colour_count), -1, dtype=np.int32)
    at_right = np.full((right_count, colour_count), -1, dtype=np.int32)
    path = np.empty(2 * min(left_count, right_count) + 2, dtype=np.int64)
    for edge in range(left.size):
        mine, other = first_free(at_left, left[edge]), first_free(at_right, right[edge])
        if at_right[right[edge], mine] >= 0:
            # Swap the two colours along the path that begins at the right end with `mine`; it cannot end at the left
            # end, which has no edge of that colour and could only be reached by one.
            length, vertex, on_right, wanted = 0, right[edge], True, mine
            while True:
                follows = at_right[vertex, wanted] if on_right else at_left[vertex, wanted]
                if follows < 0:
                    break
                path[length] = follows
                length += 1
                vertex = left[follows] if on_right else right[follows]
                on_right = not on_right
                wanted = other if wanted == mine else mine
            for step in range(length):
                at_left[left[path[step]], colour_of[path[step]]] = -1
                at_right[right[path[step]], colour_of[path[step]]] = -1
            for step in range(length):
                swapped = other if colour_of[path[step]] == mine else mine
                colour_of[path[step]] = swapped
                at_left[left[path[step]], swapped] = path[step]
                at_right[right[path[step]], swapped] = path[step]
        colour_of[edge] = mine
        at_left[left[edge], mine] = edge
        at_right[right[edge], mine] = edge
    return colour_of
