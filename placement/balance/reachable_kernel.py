"""Split the groups of a cluster into blocks of equal reachable load, and count classes of partitions, compiled.

What it decides: which brokers can share evenly under the rack rule; placement/balance/reachable.py explains the rule,
the classes and the groups.

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

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled, compiled_with

BoolArray: TypeAlias = NDArray[np.bool_]

FLOW_MAX: Final = 1 << 61
FACTOR_BITS: Final = 8
BARRED_MAX: Final = 54  # Groups that can be barred, and a factor, in one non-negative int64.


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
    """Let each class give what it can to the groups in their order; `supply` and `room` shrink."""
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
    """Return which groups no flow can fill: they have room, or share a class with one that has."""
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
    """Do what `fill_blocks` says."""
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


def pour_classes(
    classes: Int32Array,
    counts: Int64Array,
    rules: tuple[Int64Array, BoolArray, Int64Array],
    weights: Int64Array,
    block: Int64Array,
    totals: Int64Array,
) -> int:
    """Do what `fill_blocks` says for these classes, counts[i] partitions of classes[i]."""
    factors, barred, sizes = rules
    supply, caps = np.empty(classes.size, np.int64), np.empty((classes.size, sizes.size), np.int64)
    base = np.zeros(sizes.size, np.int64)
    for place in range(classes.size):
        one = classes[place]
        open_count = more = np.int64(0)
        for group in range(sizes.size):
            is_open = np.int64(not barred[one, group])
            open_count += is_open
            more += min(sizes[group] - is_open, factors[one])  # What a partition can add to a group.
        if factors[one] <= open_count:
            supply[place] = factors[one] * counts[place]
        else:
            supply[place] = min(factors[one] - open_count, more) * counts[place]
        for group in range(sizes.size):
            is_open = np.int64(not barred[one, group])
            if factors[one] <= open_count:
                caps[place, group] = is_open * counts[place]
            else:
                caps[place, group] = min(sizes[group] - is_open, factors[one]) * counts[place]
                base[group] += is_open * counts[place]
    return pour(supply, caps, base, weights, block, totals)


@compiled_with(held_by, fill_first, find_path, push, unfilled, is_split, pour, pour_classes)
def fill_blocks(
    classes: Int32Array,
    counts: Int64Array,
    rules: tuple[Int64Array, BoolArray, Int64Array],
    weights: Int64Array,
    block: Int64Array,
    totals: Int64Array,
) -> int:
    """Fill block int64[G], lowest load a broker first, and totals int64[G], the units of each; return their number.

    There are counts[i] partitions of classes[i], or bytes. `rules` are the factor of each class int64[C], the groups
    barred to it bool[C, G], and the live brokers of each group; `weights` int64[G] are what a group counts for.
    """
    return pour_classes(classes, counts, rules, weights, block, totals)


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


@compiled_with(held_by, fill_first, find_path, push, unfilled, is_split, pour, pour_classes, level)
def fill_levels(
    keys: tuple[Int64Array, Int32Array, Int64Array], rules: tuple[Int64Array, BoolArray, Int64Array], levels: Int64Array
) -> None:
    """Fill levels int64[K, 4, G] of each key: the block of each group, then each block's floor, rest and brokers.

    A key is some partitions: `keys` are the end of each key's entries, int64[K], and the class and the partitions of
    each entry. `rules` are those of `fill_blocks`. Blocks that a key has not hold no brokers.
    """
    ends, classes, counts = keys
    sizes = rules[2]
    block, totals = np.empty(sizes.size, np.int64), np.empty(sizes.size, np.int64)
    first = np.int64(0)
    for key in range(ends.size):
        end = ends[key]
        count = pour_classes(classes[first:end], counts[first:end], rules, sizes, block, totals)
        level(block, totals, count, sizes, levels[key])
        first = end


@compiled
def count_classes(
    rows: Int32Array, group_of: Int64Array, bar_of: Int64Array, keys: Int64Array, class_of: Int32Array
) -> int:
    """Number the partitions by class: replicas on live brokers, and barred groups; return the number of classes.

    Rows are positions of brokers, -1 pads. `group_of` int64[B] is -1 for a fenced broker, `bar_of` int64[B] the place
    (0..53) of its rack among those it can bar, or that of a cordoned broker, -1 for none. Fills class_of int32[P] and
    keys[class]: places as bits above the factor's eight. Returns -1 when there are more classes than `keys` has room
    for.
    """
    size = 64
    while size < 4 * keys.size:
        size *= 2
    slots = np.full(size, -1, np.int64)
    count = 0
    for row in range(rows.shape[0]):
        key = np.int64(0)
        for column in range(rows.shape[1]):
            position = rows[row, column]
            if position < 0:
                continue
            if group_of[position] >= 0:
                key += 1
            if bar_of[position] >= 0:
                key |= np.int64(1) << (bar_of[position] + FACTOR_BITS)
        slot = (key * np.int64(0x9E3779B97F4A7C1) >> 20) & (size - 1)
        while slots[slot] >= 0 and keys[slots[slot]] != key:
            slot = (slot + 1) & (size - 1)
        if slots[slot] < 0:
            if count == keys.size:
                return -1
            slots[slot] = count
            keys[count] = key
            count += 1
        class_of[row] = slots[slot]
    return count
