"""Count what brokers hold of each topic and compare it with the topic's best spread, compiled.

How: one pass over the replicas, topic by topic. Only brokers that hold something of a topic are looked at: the others
lack the floor of their block, which is arithmetic. The figures are those of topic_spread.py; blocks, levels and units
are those of reachable.py, and whole shares are one block.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from placement.balance.reachable import BOUND, FREE

Levels: TypeAlias = tuple[Int64Array, Int64Array, Int64Array]


def gather(
    rows: Int32Array, leader: Int32Array, first: np.int64, end: np.int64, units: Int64Array, held: Int32Array
) -> int:
    """Add the replicas and leaders of these rows to held int32[3, B]; list brokers with any in row 2, return how many.

    Without `leader` the first replica on a live broker leads.
    """
    count = 0
    for place in range(first, end):
        row, leads = np.uint64(place), leader.size == 0
        for column in range(rows.shape[1]):
            position = rows[row, np.uint64(column)]
            if position >= 0:
                broker = np.uint64(position)
                if held[0, broker] == 0 and held[1, broker] == 0:
                    held[2, count] = position
                    count += 1
                held[0, broker] += 1
                if leads and units[broker] >= 0:
                    held[1, broker] += 1
                    leads = False
        if leader.size > 0 and leader[row] >= 0:
            broker = np.uint64(leader[row])
            if held[0, broker] == 0 and held[1, broker] == 0:
                held[2, count] = leader[row]
                count += 1
            held[1, broker] += 1
    return count


def compare(
    here: Int32Array, places: Int32Array, units: Int64Array, sizes: Int64Array, levels: Int64Array, work: Int64Array
) -> tuple[np.int64, bool, np.int64]:
    """Return the least moves to these levels, whether none is needed between units, and what is held beyond them.

    Fills work int64[6, U]: what each unit holds, has above the ceiling and lacks to the floor, then the same of blocks.
    """
    squares = least = moves = beyond = inside = np.int64(0)
    stays = True
    for block in range(sizes.size):
        floor, rest, brokers = levels[1, block], levels[2, block], levels[3, block]
        least += brokers * floor * floor + rest * (2 * floor + 1)
        work[0, block], work[1, block], work[2, block] = 0, 0, sizes[block] * levels[1, levels[0, block]]
        work[3, block], work[4, block], work[5, block] = -(brokers * floor + rest), 0, 0
    for number in range(here.size):
        count = np.int64(here[number])
        if count > 0:
            unit = units[places[number]]
            block = levels[0, unit]
            floor = levels[1, block]
            work[0, unit] += count
            work[1, unit] += max(count - floor - (levels[2, block] > 0), 0)
            work[2, unit] -= min(count, floor)
            squares += count * count
    for unit in range(sizes.size):
        block = levels[0, unit]
        for row in range(3):
            work[3 + row, block] += work[row, unit]
        low = sizes[unit] * levels[1, block]
        stays = stays and low <= work[0, unit] <= low + sizes[unit] * (levels[2, block] > 0)
        inside += max(work[1, unit], work[2, unit])
    for block in range(sizes.size):
        moves += max(work[4, block], work[5, block] + work[3, block])
        beyond += work[3, block]
        stays = stays and work[3, block] == 0
    return (moves if squares > least else np.int64(0)), stays and inside == moves, beyond


def compare_whole(here: Int32Array, floor: np.int64, high: np.int64, live: np.int64) -> np.int64:
    """Return the least moves until each of the `live` brokers has its whole share."""
    excess = lack = np.int64(0)
    low, most = np.int32(floor), np.int32(high)
    for number in range(here.size):
        excess += max(here[number] - most, 0)
        lack += min(here[number], low)
    return max(excess, live * floor - lack)


def take(
    held: Int32Array, count: int, units: Int64Array, size: np.int64, brokers: Int64Array, here: Int32Array
) -> tuple[np.int64, np.int64, np.int64]:
    """Move the counts of the brokers listed to here int32[2, B], 0 for fenced ones, and add them to `brokers`.

    Return the replicas, the brokers with one, and the leaders.
    """
    replicas = holders = leaders = np.int64(0)
    for number in range(count):
        broker = np.uint64(held[2, number])
        held_here, led_here = np.int64(held[0, broker]), np.int64(held[1, broker])
        held[0, broker] = held[1, broker] = 0
        replicas += held_here
        holders += held_here > 0
        leaders += led_here
        brokers[0, broker] += held_here
        brokers[1, broker] += led_here
        brokers[2, broker] += held_here * size
        is_live = units[broker] >= 0
        here[0, number], here[1, number] = held_here * is_live, led_here * is_live
    return replicas, holders, leaders


@compiled_with(gather, take, compare, compare_whole, allocates=False)
def fill_spread(
    partitions: tuple[Int32Array, Int32Array, Int64Array, Int64Array],
    units: tuple[Int64Array, Int64Array],
    bests: tuple[Levels, Levels],
    scratch: tuple[Int32Array, Int64Array],
    brokers: Int64Array,
    topics: Int64Array,
) -> None:
    """Add replicas, leaders and bytes to brokers int64[3, B], and fill topics int64[11, T] as `spread_topics` does.

    `partitions` are replicas, leaders (or int32[0]), the end of each topic's rows, and bytes of a replica of each
    topic; `units` the unit of each broker and the brokers of each unit. `bests`, of replicas and of leaders, are the
    key of each topic, the levels of each key, and its kind; the last kind is that of whole shares, which are best where
    there are no keys, and where what is held is not what the levels share out. `scratch` is int32[5, B] of zeros, and
    int64[10, U], of which the first row is zeros.
    """
    rows, leader, ends, size_bytes = partitions
    unit_of, sizes = units
    held, units_here, whole, work = scratch[0][:3], scratch[0][3:], scratch[1][:4], scratch[1][4:]
    live, first = sizes.sum(), np.int64(0)
    whole[:] = 0
    for topic in range(ends.size):
        count = gather(rows, leader, first, ends[topic], unit_of, held)
        first, places = ends[topic], held[2, :count]
        found = take(held, count, unit_of, size_bytes[topic], brokers, units_here)
        topics[0, topic], topics[1, topic], topics[6, topic] = found
        for kind in range(2):
            key_of, levels, kinds = bests[kind]
            here = units_here[kind, :count]
            shared = best_most = np.int64(0)
            most = np.int32(0)
            for number in range(count):
                shared += here[number]
                most = max(most, here[number])
            best_kind, beyond, moves, stays = kinds[-1], np.int64(1), np.int64(0), True
            if key_of.size > 0:
                best, best_kind = levels[key_of[topic]], kinds[key_of[topic]]
                moves, stays, beyond = compare(here, places, unit_of, sizes, best, work)
                for block in range(sizes.size):
                    best_most = max(best_most, best[1, block] + (best[2, block] > 0))
            if beyond != 0:
                best_kind, floor, rest = kinds[-1], shared // max(live, 1), shared % max(live, 1)
                best_most = floor + (rest > 0)
                moves = compare_whole(here, floor, best_most, live)
                if moves > 0 and best_kind & FREE == 0:
                    whole[1, 0], whole[2, 0], whole[3, 0] = floor, rest, live
                    stays = compare(here, places, unit_of, sizes, whole, work)[1]
            is_exact = moves == 0 or (best_kind & BOUND == 0 and (best_kind & FREE > 0 or stays))
            row = 2 + 5 * kind
            topics[row, topic], topics[row + 1, topic] = most, best_most
            topics[row + 2, topic], topics[row + 3, topic] = moves, is_exact
