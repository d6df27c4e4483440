"""Run moves as soon as their brokers have free slots, compiled: list scheduling on the links of brokers.

What it decides: when each move starts and ends, if every broker carries at most `slots` moves in and as many out.

How: every broker has two links, in and out; a move takes one slot at the link of its source and of each target. Moves
start in the order given. One that cannot start waits at the first link without a free slot, in that link's own heap;
when a slot becomes free, only the moves that wait there are tried again.

Cost: O(M log M) for M moves, more where moves wait at their links in turn.

Example: two moves of 3 and 2 seconds from one broker with one slot: 0 to 3 and 3 to 5.

Left out: links shared by the moves that run; each move has a slot's rate for itself.

Source: R. Graham 1969, list scheduling.
"""

from __future__ import annotations

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from placement.reassignment.moves import FloatArray


def heap_push(heap: Int64Array, keys: FloatArray, start: int, size: int, item: int) -> None:
    """Add an item to a binary heap of `size` items from `start`; the least key, then the least item, is first."""
    place = size
    heap[start + place] = item
    while place > 0:
        above = (place - 1) >> 1
        one, two = heap[start + place], heap[start + above]
        if keys[one] > keys[two] or (keys[one] == keys[two] and one > two):
            break
        heap[start + place], heap[start + above] = two, one
        place = above


def heap_pop(heap: Int64Array, keys: FloatArray, start: int, size: int) -> int:
    """Remove and return the first item of a heap of `size` items from `start`."""
    first = heap[start]
    heap[start] = heap[start + size - 1]
    place, count = 0, size - 1
    while True:
        least = place
        for below in (2 * place + 1, 2 * place + 2):
            if below < count:
                one, two = heap[start + below], heap[start + least]
                if keys[one] < keys[two] or (keys[one] == keys[two] and one < two):
                    least = below
        if least == place:
            return int(first)
        heap[start + place], heap[start + least] = heap[start + least], heap[start + place]
        place = least


def blocking(links: Int32Array, move: int, free: Int64Array) -> int:
    """Return the first link of a move without a free slot, or -1."""
    for column in range(links.shape[1]):
        link = links[move, column]
        if link >= 0 and free[link] <= 0:
            return int(link)
    return -1


def change_slots(links: Int32Array, move: int, free: Int64Array, by: int) -> None:
    """Add `by` free slots to each link of a move."""
    for column in range(links.shape[1]):
        if links[move, column] >= 0:
            free[links[move, column]] += by


@compiled_with(heap_push, heap_pop, blocking, change_slots)
def roll(
    links: Int32Array, seconds: FloatArray, priority: FloatArray, slots: int, starts_at: Int64Array
) -> tuple[FloatArray, FloatArray]:
    """Return when each move starts and ends, float64[M] both.

    `links` [M, L] are the links of each move, -1 pads; a lower `priority` goes first; `starts_at` [links + 1] are the
    places of the links' heaps, each as long as the link has moves.
    """
    count, link_count = links.shape[0], starts_at.size - 1
    start, end = np.full(count, -1.0), np.full(count, -1.0)
    free = np.full(link_count, slots, dtype=np.int64)
    waiting, waiting_size = np.empty(starts_at[link_count], dtype=np.int64), np.zeros(link_count, dtype=np.int64)
    running, running_size = np.empty(count, dtype=np.int64), 0
    everything = np.empty(count, dtype=np.int64)
    for move in range(count):
        heap_push(everything, priority, 0, move, move)
    freed = np.empty(link_count, dtype=np.int64)
    is_freed = np.zeros(link_count, dtype=np.bool_)
    now, todo = 0.0, count
    while todo > 0 or running_size > 0:
        freed_count = 0
        if todo == 0:
            now = end[running[0]]
            while running_size > 0 and end[running[0]] == now:
                move = heap_pop(running, end, 0, running_size)
                running_size -= 1
                change_slots(links, move, free, 1)
                for column in range(links.shape[1]):
                    link = links[move, column]
                    if link >= 0 and not is_freed[link]:
                        is_freed[link] = True
                        freed[freed_count] = link
                        freed_count += 1
        # At the beginning every move is tried; afterwards those that wait where a slot became free.
        place = 0
        while todo > 0 or place < freed_count:
            if todo > 0:
                move = heap_pop(everything, priority, 0, todo)
                todo -= 1
            else:
                link = freed[place]
                if free[link] <= 0 or waiting_size[link] == 0:
                    is_freed[link] = False
                    place += 1
                    continue
                move = heap_pop(waiting, priority, starts_at[link], waiting_size[link])
                waiting_size[link] -= 1
            blocked = blocking(links, move, free)
            if blocked >= 0:
                heap_push(waiting, priority, starts_at[blocked], waiting_size[blocked], move)
                waiting_size[blocked] += 1
                continue
            change_slots(links, move, free, -1)
            start[move], end[move] = now, now + seconds[move]
            heap_push(running, end, 0, running_size, move)
            running_size += 1
    return start, end
