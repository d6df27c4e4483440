"""Run moves as soon as their brokers have free slots, compiled: list scheduling on the links of brokers.

What it decides: when each move starts and ends, if every broker carries at most `slots` moves in and as many out.

How: every broker has two links, in and out; a move takes one slot at the link of its source and of each target. Each
link has a queue of its waiting moves in the order given. At the beginning every move is tried; when slots become free,
the queues of their links are walked, and whatever has a slot at all its links starts.

An entry of a queue knows one other link of its move, so most of the moves that cannot start are passed over without a
look at the move itself; a move that starts is taken out of all its queues.

Cost: O(M log M) for M moves, and a few nanoseconds for each move passed over. At links that are all busy that is a
large part of a queue.

Example: two moves of 3 and 2 seconds from one broker with one slot: 0 to 3 and 3 to 5.

Left out: links shared by the moves that run; each move has a slot's rate for itself.

Source: R. Graham 1969, list scheduling.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from placement.reassignment.moves import FloatArray


class Queues(NamedTuple):
    """Hold the waiting moves of each link: entries of `move` int32[E], from `first` int64[links] on along `later`.

    `later` and `earlier` int64[E] are -1 at the ends; `beside` int32[E] is another link of the same move; `entry`
    int64[M, L] is where a move stands in the queue of each of its links, -1 pads.
    """

    move: Int32Array
    beside: Int32Array
    first: Int64Array
    later: Int64Array
    earlier: Int64Array
    entry: Int64Array

    @classmethod
    def of(cls, links: Int32Array, order: Int64Array, link_count: int) -> Queues:
        """Return the queues of moves with `links` int32[M, L], -1 pads and the last one never, in `order` int64[M]."""
        width = links.shape[1]
        flat = links[order].ravel()
        held = np.flatnonzero(flat >= 0)
        held = held[np.argsort(flat[held], kind="stable")]
        link, move = flat[held], order[held // width].astype(np.int32)
        entry = np.full(links.shape, -1, dtype=np.int64)
        numbers = np.arange(held.size)
        entry[move, held % width] = numbers
        starts = np.ones(held.size + 1, dtype=np.bool_)
        starts[1:-1] = link[1:] != link[:-1]
        first = np.full(link_count, -1, dtype=np.int64)
        first[link[starts[:-1]]] = numbers[starts[:-1]]
        last = links[:, -1][move]
        some = links[np.arange(links.shape[0]), np.argmax(links >= 0, axis=1)][move]
        return cls(
            move=move,
            beside=np.where(held % width == width - 1, some, last).astype(np.int32),
            first=first,
            later=np.where(starts[1:], -1, numbers + 1),
            earlier=np.where(starts[:-1], -1, numbers - 1),
            entry=entry,
        )


def heap_push(heap: Int64Array, keys: FloatArray, size: int, item: int) -> None:
    """Add an item to a binary heap of `size` items; the least key, then the least item, is first."""
    place = size
    heap[place] = item
    while place > 0:
        above = (place - 1) >> 1
        one, two = heap[place], heap[above]
        if keys[one] > keys[two] or (keys[one] == keys[two] and one > two):
            break
        heap[place], heap[above] = two, one
        place = above


def heap_pop(heap: Int64Array, keys: FloatArray, size: int) -> int:
    """Remove and return the first item of a heap of `size` items."""
    first = heap[0]
    heap[0] = heap[size - 1]
    place, count = 0, size - 1
    while True:
        least = place
        for below in (2 * place + 1, 2 * place + 2):
            if below < count:
                one, two = heap[below], heap[least]
                if keys[one] < keys[two] or (keys[one] == keys[two] and one < two):
                    least = below
        if least == place:
            return int(first)
        heap[place], heap[least] = heap[least], heap[place]
        place = least


def fits(links: Int32Array, move: int, free: Int64Array) -> bool:
    """Return whether every link of a move has a free slot."""
    for column in range(links.shape[1]):
        link = links[move, column]
        if link >= 0 and free[link] <= 0:
            return False
    return True


def take(links: Int32Array, queues: Queues, move: int, free: Int64Array) -> None:
    """Take a slot at each link of a move, and the move out of their queues."""
    for column in range(links.shape[1]):
        link = links[move, column]
        if link < 0:
            continue
        free[link] -= 1
        entry = queues.entry[move, column]
        later, earlier = queues.later[entry], queues.earlier[entry]
        if later >= 0:
            queues.earlier[later] = earlier
        if earlier >= 0:
            queues.later[earlier] = later
        else:
            queues.first[link] = later


@compiled_with(heap_push, heap_pop, fits, take)
def roll(
    links: Int32Array, seconds: FloatArray, order: Int64Array, slots: int, queues: Queues
) -> tuple[FloatArray, FloatArray]:
    """Return when each move starts and ends, float64[M] both.

    `links` int32[M, L] are the links of each move, -1 pads; `order` int64[M] says which goes first; `queues` are the
    links' own, which empty.
    """
    count = links.shape[0]
    start, end = np.full(count, -1.0), np.full(count, -1.0)
    free = np.full(queues.first.size, slots, dtype=np.int64)
    running, running_size = np.empty(count, dtype=np.int64), 0
    for place in range(count):
        move = order[place]
        if fits(links, move, free):
            take(links, queues, move, free)
            start[move], end[move] = 0.0, seconds[move]
            heap_push(running, end, running_size, move)
            running_size += 1
    freed = np.empty(queues.first.size, dtype=np.int64)
    is_freed = np.zeros(queues.first.size, dtype=np.bool_)
    while running_size > 0:
        now = end[running[0]]
        freed_count = 0
        while running_size > 0 and end[running[0]] == now:
            done = heap_pop(running, end, running_size)
            running_size -= 1
            for column in range(links.shape[1]):
                link = links[done, column]
                if link < 0:
                    continue
                free[link] += 1
                if not is_freed[link]:
                    is_freed[link] = True
                    freed[freed_count] = link
                    freed_count += 1
        for place in range(freed_count):
            link = freed[place]
            is_freed[link] = False
            entry = queues.first[link]
            while entry >= 0 and free[link] > 0:
                move, after = queues.move[entry], queues.later[entry]
                if free[queues.beside[entry]] > 0 and fits(links, move, free):
                    take(links, queues, move, free)
                    start[move], end[move] = now, now + seconds[move]
                    heap_push(running, end, running_size, move)
                    running_size += 1
                entry = after
    return start, end
