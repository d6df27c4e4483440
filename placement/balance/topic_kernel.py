"""Count how each topic spreads over brokers, beside its optimum, compiled.

What it decides: placement/balance/topic_spread.py says what the figures mean; placement/balance/reachable.py what
classes, groups and blocks are.

How: one pass over the replicas, topic by topic. Of few brokers all are looked at; of many only those with a replica, so
that a topic costs its replicas and the groups: the others lack the floor of their block, which is arithmetic.

Example: replicas 0, 0 and 1 of three brokers: 3 replicas on 2 brokers, most 2, at best 1, 1 move.

Left out: the optimum itself (reachable_kernel.py).

Source: ours.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with

ByteArray: TypeAlias = NDArray[np.uint8]

RULED: Final = 0
"""A rule may forbid a move: so many are enough if none is needed between groups."""
FREE: Final = 1
"""No rule forbids a move."""
BOUND: Final = 2
"""The best spread is a bound, so moves are one too."""


def gather(
    rows: Int32Array, leader: Int32Array, first: np.int64, end: np.int64, of: Int64Array, held: Int32Array
) -> None:
    """Count the replicas and leaders of rows first..end-1 on each broker in held int32[2, B]."""
    for place in range(first, end):
        row = np.uint64(place)
        leaderless = leader.size == 0
        for column in range(rows.shape[1]):
            position = rows[row, np.uint64(column)]
            if position >= 0:
                broker = np.uint64(position)
                held[0, broker] += 1
                if leaderless and of[broker] >= 0:
                    held[1, broker] += 1
                    leaderless = False
        if leader.size > 0 and leader[row] >= 0:
            held[1, np.uint64(leader[row])] += 1


def condense(
    rows: Int32Array,
    leader: Int32Array,
    first: np.int64,
    end: np.int64,
    held: Int32Array,
    units: Int32Array,
    places: Int32Array,
) -> int:
    """Move the counts of brokers that have any from `held` to units int32[2, B], and list them; return their number."""
    count = 0
    for place in range(first, end):
        row = np.uint64(place)
        for column in range(rows.shape[1] + 1):
            if column < rows.shape[1]:
                position = rows[row, np.uint64(column)]
            else:
                position = leader[row] if leader.size > 0 else np.int32(-1)
            if position < 0:
                continue
            broker = np.uint64(position)
            if held[0, broker] > 0 or held[1, broker] > 0:
                units[0, count], units[1, count], places[count] = held[0, broker], held[1, broker], position
                held[0, broker] = held[1, broker] = 0
                count += 1
    return count


def judge_one(units: Int32Array, floor: np.int64, rest: np.int64, brokers: np.int64) -> np.int64:
    """Return the units to move where all live brokers are one block; the units of fenced ones are 0."""
    low, high = np.int32(floor), np.int32(floor + (rest > 0))
    excess = lack = np.int64(0)
    for place in range(units.size):
        excess += max(units[place] - high, 0)
        lack += min(units[place], low)
    return max(excess, brokers * floor - lack)


def judge(units: Int32Array, groups: Int64Array, levels: Int64Array, work: Int64Array) -> np.int64:
    """Return the units to move between blocks; -1 where what is held is not what the levels say.

    Fills work int64[3, G] with each block's units above its ceiling, below its floor, and beyond its own.
    """
    squares = best_squares = np.int64(0)
    for block in range(levels.shape[1]):
        floor, rest, brokers = levels[1, block], levels[2, block], levels[3, block]
        best_squares += brokers * floor * floor + rest * (2 * floor + 1)
        work[0, block], work[1, block], work[2, block] = 0, brokers * floor, -(brokers * floor + rest)
    for place in range(units.size):
        held = np.int64(units[place])
        if held == 0:
            continue
        block = levels[0, groups[place]]
        floor, ceiling = levels[1, block], levels[1, block] + (levels[2, block] > 0)
        work[0, block] += max(held - ceiling, 0)
        work[1, block] -= min(held, floor)
        work[2, block] += held
        squares += held * held
    moves = beyond = np.int64(0)
    for block in range(levels.shape[1]):
        moves += max(work[0, block], work[1, block] + work[2, block])
        beyond += work[2, block]
    if beyond != 0:
        return np.int64(-1)
    return moves if squares > best_squares else np.int64(0)


def is_inside(
    units: Int32Array, groups: Int64Array, sizes: Int64Array, levels: Int64Array, work: Int64Array, moves: np.int64
) -> bool:
    """Return whether so many moves are enough without one between groups; overwrites `work`."""
    for group in range(sizes.size):
        work[0, group], work[1, group], work[2, group] = 0, sizes[group] * levels[1, levels[0, group]], 0
    for place in range(units.size):
        held = np.int64(units[place])
        if held == 0:
            continue
        group = groups[place]
        block = levels[0, group]
        work[0, group] += max(held - levels[1, block] - (levels[2, block] > 0), 0)
        work[1, group] -= min(held, levels[1, block])
        work[2, group] += held
    inside = np.int64(0)
    for group in range(sizes.size):
        block = levels[0, group]
        floor = levels[1, block]
        if not sizes[group] * floor <= work[2, group] <= sizes[group] * (floor + (levels[2, block] > 0)):
            return False
        inside += max(work[0, group], work[1, group])
    return bool(inside == moves)


def measure(
    units: Int32Array,
    groups: tuple[Int64Array, Int64Array, np.int64],
    best: tuple[Int32Array, Int64Array, ByteArray],
    topic: int,
    scratch: tuple[Int64Array, Int64Array],
) -> tuple[np.int64, np.int64, bool]:
    """Return the most units on one broker at best, the units to move, and whether so many are enough.

    `groups` are the group of each of `units`, the live brokers of each group, and those of all.
    """
    key_of, levels, free = best
    even, work = scratch
    if key_of.size > 0:
        key = key_of[topic]
        moves = judge(units, groups[0], levels[key], work)
        if moves >= 0:
            most = np.int64(0)
            surplus = False
            for block in range(levels.shape[2]):
                most = max(most, levels[key, 1, block] + (levels[key, 2, block] > 0))
                surplus = surplus or work[2, block] != 0
            if moves == 0 or free[key] != RULED:
                return most, moves, moves == 0 or free[key] == FREE
            return most, moves, not surplus and is_inside(units, groups[0], groups[1], levels[key], work, moves)
    # The best spread is that of whole shares, as it is where what is held is not what the classes say.
    total, live = np.int64(0), groups[2]
    for place in range(units.size):
        total += units[place]
    if live == 0:
        return np.int64(0), np.int64(0), True
    floor, rest = total // live, total % live
    moves = judge_one(units, floor, rest, live)
    if moves == 0 or free[free.size - 1] == FREE:
        return floor + (rest > 0), moves, True
    even[1, 0], even[2, 0] = floor, rest
    return floor + (rest > 0), moves, is_inside(units, groups[0], groups[1], even, work, moves)


def charge(
    units: Int32Array, place: int, broker: np.uint64, of: Int64Array, size: np.int64, brokers: Int64Array
) -> None:
    """Add the units at `place` to their broker's; a fenced broker's are left out of what follows."""
    brokers[0, broker] += units[0, place]
    brokers[1, broker] += units[1, place]
    brokers[2, broker] += units[0, place] * size
    if of[broker] < 0:
        units[0, place] = units[1, place] = 0


@compiled_with(gather, condense, judge_one, judge, is_inside, measure, charge, allocates=False)
def spread_topics(
    partitions: tuple[Int32Array, Int32Array, Int64Array, Int64Array],
    groups: tuple[Int64Array, Int64Array],
    bests: tuple[tuple[Int32Array, Int64Array, ByteArray], tuple[Int32Array, Int64Array, ByteArray]],
    dense_max: int,
    scratch: tuple[Int32Array, Int64Array],
    brokers: Int64Array,
    topics: Int64Array,
) -> None:
    """Add up the load of each broker and the spread of each topic.

    `partitions` are the replicas int32[P, W], positions of brokers, -1 for none; the leaders int32[P], -1 for none (or
    int32[0]: the first replica on a live broker leads); the end of each topic's rows int64[T]; and the bytes of one
    replica of each topic int64[T]. `groups` are the group of each broker, -1 when it is fenced, and the live brokers of
    each. `bests`, of replicas and of leaders, are the key of each topic, the levels of each key as `fill_levels` makes
    them, and `RULED`, `FREE` or `BOUND`; the last of these is for the best spread of whole shares, which is that of all
    topics where they have no keys. Of more than `dense_max` brokers, only those with a replica are looked at.

    `scratch` is int32[5, B], zeroed, and int64[8, B].

    Adds replicas, leaders and bytes to brokers int64[3, B]; fills topics int64[11, T]: replicas, brokers that hold one;
    most replicas on one live broker, at best, moves, 1 if they are enough; partitions led; and those four of leaders.
    """
    rows, leader, ends, sizes = partitions
    of, live_of = groups
    held, units, places, group_of = scratch[0][:2], scratch[0][2:4], scratch[0][4], scratch[1][0, : of.size]
    even, work = scratch[1][1:5], scratch[1][5:8]
    live = np.int64(0)
    for group in range(live_of.size):
        live += live_of[group]
    for broker in range(of.size):
        group_of[broker] = of[broker]
    first = np.int64(0)
    for topic in range(ends.size):
        end, count = ends[topic], of.size
        if of.size > dense_max:
            gather(rows, leader, first, end, of, held)
            count = condense(rows, leader, first, end, held, units, places)
            for place in range(count):
                group_of[place] = of[np.uint64(places[place])]
        else:
            units[:] = 0
            gather(rows, leader, first, end, of, units)
        first = end
        replicas = holders = led = np.int64(0)
        for place in range(count):
            replicas += units[0, place]
            holders += units[0, place] > 0
            led += units[1, place]
        topics[0, topic], topics[1, topic], topics[6, topic] = replicas, holders, led
        if of.size > dense_max:
            for place in range(count):
                charge(units, place, np.uint64(places[place]), of, sizes[topic], brokers)
        else:
            for place in range(count):
                charge(units, place, np.uint64(place), of, sizes[topic], brokers)
        for kind in range(2):
            row, here = 7 if kind else 2, units[kind, :count]
            most = np.int32(0)
            for place in range(count):
                most = max(most, here[place])
            best_most, moves, exact = measure(here, (group_of, live_of, live), bests[kind], topic, (even, work))
            topics[row, topic], topics[row + 1, topic] = most, best_most
            topics[row + 2, topic], topics[row + 3, topic] = moves, exact
