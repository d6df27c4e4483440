"""Split the units of a cluster, groups of alike brokers, into blocks of equal reachable load, compiled.

What it decides: which brokers can share evenly under the rack rule; placement/balance/reachable.py explains the rule,
the classes and the units, which are called groups here.

How: a set A of groups can hold at most g(A) units: each class gives it the smaller of what it has and what A can take.
Let λ be the units of a block per broker. If a flow from classes to groups fills every group to λ a broker, the block
is even. If not, the groups that no flow can fill are the lower part of a minimum cut: they become a block of their own,
below the others, and both parts are looked at again. What block j holds is g(blocks 0..j) - g(blocks 0..j-1), so every
sum is exact. Flows are whole numbers too: loads are taken times the brokers of the block. Where that would pass an
int64 (bytes), units are halved until it does not, for the flow alone.

Cost: each of at most 2 G flows takes O(C G) a path; C classes and G kinds of groups are a handful in a usual cluster.

Example: groups of 2, 2 and 1 brokers, 10 partitions of factor 3: the group of one is a block with 10 a broker, the
other two are a block with 5.

Left out: which partition moves where.

Source: the decomposition of a submodular set function (Fujishige 1980; Groenevelt 1991).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from broker.cluster import BoolArray, Int32Array, Int64Array
from broker.compiled import compiled_with

FLOW_MAX: Final = 1 << 61


def held_by(supply: np.int64, caps: Int64Array, block: Int64Array, last: int) -> np.int64:
    """Return what one class gives to the groups of blocks 0..last at most."""
    room = np.int64(0)
    for group in range(block.size):
        if block[group] <= last:
            room += min(caps[group], supply)
            if room >= supply:
                return supply
    return room


def fill_first(supply: Int64Array, caps: Int64Array, room: Int64Array, flow: Int64Array) -> None:
    """Assign each class's supply to the groups in order, within the caps; reduce `supply` and `room`."""
    for one in range(caps.shape[0]):
        for group in range(caps.shape[1]):
            units = min(supply[one], caps[one, group], room[group])
            flow[one, group] = units
            supply[one] -= units
            room[group] -= units


def find_path(
    supply: Int64Array, caps: Int64Array, room: Int64Array, flow: Int64Array, from_class: Int64Array, came: Int64Array
) -> int:
    """Return a group with room that a class with supply can reach, by a shortest path; -1 if there is none.

    Fills from_class[group], the class before it on the path, and came[class], the group before it or -1.
    """
    from_class[:] = -1
    came[:] = -2
    queue = np.empty(supply.size, np.int64)
    start = end = 0
    for one in range(supply.size):
        if supply[one] > 0:
            came[one] = -1
            queue[end] = one
            end += 1
    while start < end:
        here = queue[start]
        start += 1
        for group in range(room.size):
            if from_class[group] >= 0 or flow[here, group] >= caps[here, group]:
                continue
            from_class[group] = here
            if room[group] > 0:
                return group
            for other in range(supply.size):
                if came[other] == -2 and flow[other, group] > 0:
                    came[other] = group
                    queue[end] = other
                    end += 1
    return -1


def push(supply: Int64Array, caps: Int64Array, room: Int64Array, flow: Int64Array) -> None:
    """Let as much as possible flow from classes to groups; `supply` and `room` shrink."""
    fill_first(supply, caps, room, flow)
    from_class, came = np.empty(room.size, np.int64), np.empty(supply.size, np.int64)
    while True:
        target = find_path(supply, caps, room, flow, from_class, came)
        if target < 0:
            return
        units = room[target]
        one, group = from_class[target], np.int64(target)
        while came[one] >= 0:
            units = min(units, caps[one, group] - flow[one, group], flow[one, came[one]])
            group = came[one]
            one = from_class[group]
        units = min(units, caps[one, group] - flow[one, group], supply[one])
        supply[one] -= units
        room[target] -= units
        one, group = from_class[target], np.int64(target)
        while came[one] >= 0:
            flow[one, group] += units
            flow[one, came[one]] -= units
            group = came[one]
            one = from_class[group]
        flow[one, group] += units


def unfilled(caps: Int64Array, room: Int64Array, flow: Int64Array) -> BoolArray:
    """Return the groups that no flow can fill: groups with room, and groups sharing a class with one of those."""
    class_count, group_count = caps.shape
    short = room > 0
    changed = True
    while changed:
        changed = False
        for one in range(class_count):
            open_ended = False
            for group in range(group_count):
                if short[group] and flow[one, group] < caps[one, group]:
                    open_ended = True
            if open_ended:
                for group in range(group_count):
                    if not short[group] and flow[one, group] > 0:
                        short[group] = changed = True
    return short


def is_split(
    left: Int64Array, part: Int64Array, room: Int64Array, slack: int, members: Int64Array, block: Int64Array
) -> bool:
    """Move the groups that can be filled to the block after that of `members`; return whether some cannot."""
    flow = np.empty(part.shape, np.int64)
    push(left, part, room, flow)
    if room.sum() <= slack:
        return False
    short = unfilled(part, room, flow)
    if short.all():
        return False
    now = block[members[0]]
    for group in range(block.size):
        if block[group] > now:
            block[group] += 1
    for place in range(members.size):
        if not short[place]:
            block[members[place]] = now + 1
    return True


def pour(
    supply: Int64Array, caps: Int64Array, base: Int64Array, weights: Int64Array, block: Int64Array, totals: Int64Array
) -> int:
    """Fill block int64[G], lowest load a broker first, and totals int64[G], the units of each; return their number."""
    block[:] = 0
    count, now = 1, 0
    while now < count:
        members = np.flatnonzero(block == now)
        brokers = weights[members].sum()
        left = np.empty(supply.size, np.int64)
        for one in range(supply.size):
            left[one] = held_by(supply[one], caps[one], block, now) - held_by(supply[one], caps[one], block, now - 1)
        total = base[members].sum() + left.sum()
        totals[now] = total
        shift = 0
        while (total >> shift) > FLOW_MAX // max(brokers, 1):
            shift += 1
        part = np.empty((supply.size, members.size), np.int64)
        room = np.empty(members.size, np.int64)
        for place in range(members.size):
            group = members[place]
            room[place] = max(0, (total >> shift) * weights[group] - (base[group] >> shift) * brokers)
            for one in range(supply.size):
                part[one, place] = min(caps[one, group] >> shift, FLOW_MAX // brokers) * brokers
        for one in range(supply.size):
            left[one] = (left[one] >> shift) * brokers
        # Halved units are rounded down: at most one is lost a class and one a group.
        slack = (supply.size + members.size) * brokers if shift > 0 else 0
        if members.size > 1 and total > 0 and is_split(left, part, room, slack, members, block):
            count += 1
        else:
            now += 1
    return count


def level(block: Int64Array, totals: Int64Array, count: int, weights: Int64Array, levels: Int64Array) -> None:
    """Fill the levels of one key from its blocks, lowest load a broker first; those of the same floor become one."""
    levels[:] = 0
    last = -1
    for one in range(count):
        brokers = np.int64(0)
        for group in range(block.size):
            if block[group] == one:
                brokers += weights[group]
        floor = totals[one] // brokers
        if last < 0 or levels[1, last] != floor:
            last += 1
        levels[1, last] = floor
        levels[2, last] += totals[one] - floor * brokers
        levels[3, last] += brokers
        for group in range(block.size):
            if block[group] == one:
                levels[0, group] = last


@compiled_with(held_by, fill_first, find_path, push, unfilled, is_split, pour, level)
def fill_levels(
    ends: Int64Array,
    classes: Int32Array,
    counts: Int64Array,
    supply: Int64Array,
    caps: Int64Array,
    base: Int64Array,
    weights: Int64Array,
    levels: Int64Array,
) -> None:
    """Fill levels int64[K, 4, U] of each key: the block of each unit, then each block's floor, rest and brokers.

    A key is some partitions, or bytes: the entries up to ends[key], int64[K], counts[e] of classes[e] each. What one
    of a class gives is `supply`, `caps` and `base` of `Rules`; `weights` int64[1 or K, U] are the brokers of a unit, of
    every key or of each. A unit without any is in block 0; `levels` are zeros, and blocks that a key lacks stay so.
    """
    first = np.int64(0)
    for key in range(ends.size):
        end = ends[key]
        brokers = weights[min(key, weights.shape[0] - 1)]
        units = np.flatnonzero(brokers)
        count = units.size
        given, room = np.empty(end - first, np.int64), np.empty((end - first, count), np.int64)
        always = np.zeros(count, np.int64)
        for place in range(end - first):
            one, number = classes[first + place], counts[first + place]
            given[place] = supply[one] * number
            for unit in range(count):
                room[place, unit] = caps[one, units[unit]] * number
                always[unit] += base[one, units[unit]] * number
        first = end
        if count == 0:
            continue
        block, totals, found = np.empty(count, np.int64), np.empty(count, np.int64), np.zeros((4, count), np.int64)
        held = brokers[units]
        level(block, totals, pour(given, room, always, held, block, totals), held, found)
        for unit in range(count):
            levels[key, 0, units[unit]] = found[0, unit]
            for row in range(1, 4):
                levels[key, row, unit] = found[row, unit]
