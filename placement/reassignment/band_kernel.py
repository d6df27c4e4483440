"""Move whole partitions until every broker's bytes lie within its band, and exchange them for smaller ones, compiled.

What it decides: which replicas a plan moves that makes bytes even; least_band.py states the problem.

How. An exchange between brokers x and y gives a partition of x to y, and perhaps one of y to x. It is worth what it
saves in copied bytes and, before all, in bytes outside the bands. Replicas of a broker are sorted by size; the best
partition to give back has nearly one of a few sizes (such that x or y comes to an end of its band), so only the
partitions next to these sizes are looked at. So an over-full broker gives what brings it just inside its band, and a
replica that moved is exchanged for a smaller one until nothing is saved.

Constraints: every exchange keeps the rules of placement. What an exchange is worth is computed in float64, of bytes
below 2^52.

Example: broker 0 has partitions of 8, 5 and 3 bytes and must lose 4, broker 1 has none: the one of 5 moves.

Left out: exchanges of more than two partitions at a time.

Source: ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from placement.reassignment.exchange_graph import Shape
from placement.reassignment.exchange_kernel import admits, slot_of

SETS_MAX = 16
"""Sets of brokers that one partition can choose from."""

_LOOKED_AT = 6
_PARTNERS_ENOUGH = 4  # Brokers beyond the first are not looked at where an exchange brings one into its band.
_PENALTY = 1024.0
"""What a byte outside a band costs, in bytes copied."""

_PENALTY_OF_BROKER = float(1 << 53)
"""What a broker outside its band costs besides: more than any exchange copies, however few bytes are outside."""


class Loads(NamedTuple):
    """Hold the bytes of brokers and their bands, int64[B], and of partitions, `size` int64[P]."""

    load: Int64Array
    low: Int64Array
    high: Int64Array
    size: Int64Array


class Sorted(NamedTuple):
    """Hold the partitions of each broker, smallest first: `start` int64[B + 1] into `row` int32[N]."""

    start: Int64Array
    row: Int32Array


class Best(NamedTuple):
    """Hold the best exchange so far: `worth` float64[1], and `rows` int64[2], given and taken, -1 for none."""

    worth: np.ndarray
    rows: Int64Array


def outside(loads: Loads, broker: int, load: int) -> int:
    """Return the bytes by which a load lies outside a broker's band."""
    return int(max(load - loads.high[broker], loads.low[broker] - load, 0))


def may_go(shape: Shape, now: Int32Array, row: int, here: int, there: int) -> bool:
    """Return whether a replica on `here` may stand on `there` instead."""
    if slot_of(now, row, there) >= 0 or shape.group[there] < 0:
        return False
    if not shape.receives[there] and slot_of(shape.before, row, there) < 0:
        return False
    column = slot_of(now, row, here)
    return column >= 0 and admits(shape, now, row, column, shape.group[there])


def change_of(shape: Shape, row: int, here: int, there: int) -> int:
    """Return how many more replicas of a partition are new with it on `there` instead of `here`: -1, 0 or 1."""
    was = 1 if slot_of(shape.before, row, here) < 0 else 0
    will = 1 if slot_of(shape.before, row, there) < 0 else 0
    return will - was


def weigh(
    shape: Shape, now: Int32Array, loads: Loads, here: int, there: int, given: int, taken: int, best: Best
) -> None:
    """Note an exchange if it saves more than the best so far."""
    size = loads.size[given]
    back = loads.size[taken] if taken >= 0 else 0
    cost = change_of(shape, given, here, there) * float(size)
    if taken >= 0:
        cost += change_of(shape, taken, there, here) * float(back)
    own, other = outside(loads, here, loads.load[here]), outside(loads, there, loads.load[there])
    was, before = own + other, (1 if own > 0 else 0) + (1 if other > 0 else 0)
    own = outside(loads, here, loads.load[here] - size + back)
    other = outside(loads, there, loads.load[there] + size - back)
    will, after = own + other, (1 if own > 0 else 0) + (1 if other > 0 else 0)
    ended = float(before - after)
    worth = _PENALTY * float(was - will) + _PENALTY_OF_BROKER * ended - cost
    if worth <= best.worth[0]:
        return
    if taken >= 0 and not may_go(shape, now, taken, there, here):
        return
    best.worth[0] = worth
    best.rows[0], best.rows[1] = given, taken


def first_of_size(loads: Loads, held: Sorted, broker: int, size: int) -> int:
    """Return the place in `held.row` of a broker's first partition of at least `size` bytes, or the end of its part."""
    low, high = held.start[broker], held.start[broker + 1]
    while low < high:
        middle = (low + high) // 2
        if loads.size[held.row[middle]] < size:
            low = middle + 1
        else:
            high = middle
    return int(low)


def find_exchange(
    shape: Shape, now: Int32Array, loads: Loads, held: Sorted, here: int, there: int, returning: bool, best: Best
) -> None:
    """Find the best exchange that gives a partition of `here` to `there`.

    With `returning` only replicas go that were on `there` before.
    """
    over = loads.load[here] - loads.high[here]
    spare = loads.load[here] - loads.low[here]
    room = loads.high[there] - loads.load[there]
    lack = loads.low[there] - loads.load[there]
    first, last = held.start[there], held.start[there + 1]
    count = held.start[here + 1] - held.start[here]
    step = max(1, count // 400)
    for place in range(held.start[here], held.start[here + 1], 1 if returning else step):
        row = held.row[place]
        if returning and (slot_of(shape.before, row, there) < 0 or slot_of(shape.before, row, here) >= 0):
            continue
        if not may_go(shape, now, row, here, there):
            continue
        weigh(shape, now, loads, here, there, row, -1, best)
        size = loads.size[row]
        for end in range(4):
            wanted = size - (over if end == 0 else spare if end == 1 else room if end == 2 else lack)
            if wanted <= 0 and end != 3:
                continue
            nearest = first_of_size(loads, held, there, wanted)
            for other in range(max(first, nearest - _LOOKED_AT), min(last, nearest + _LOOKED_AT)):
                taken = held.row[other]
                if slot_of(now, taken, there) >= 0 and slot_of(now, taken, here) < 0:
                    weigh(shape, now, loads, here, there, row, taken, best)


def move(now: Int32Array, loads: Loads, row: int, here: int, there: int) -> None:
    """Put a replica on another broker."""
    now[row, slot_of(now, row, here)] = there
    loads.load[here] -= loads.size[row]
    loads.load[there] += loads.size[row]


def carry_out(now: Int32Array, loads: Loads, here: int, there: int, best: Best) -> None:
    """Carry out the best exchange found."""
    move(now, loads, best.rows[0], here, there)
    if best.rows[1] >= 0:
        move(now, loads, best.rows[1], there, here)


def clear(best: Best) -> None:
    """Forget the best exchange."""
    best.worth[0] = 0.5
    best.rows[0] = best.rows[1] = -1


@compiled_with(allocates=False)
def round_sizes(
    before: Int32Array, kind: Int32Array, sizes: Int64Array, unit: int, count: Int64Array, error: Int64Array
) -> None:
    """Fill `count` int64[P] with sizes in units, rounded so that the sums of brokers stay near theirs.

    `error` int64[B] begins at 0 and ends with the bytes by which each broker's sum is too great.
    """
    for row in range(sizes.size):
        if kind[row] < 0:
            count[row] = 0
            continue
        floor = sizes[row] // unit
        rest = sizes[row] - floor * unit
        balance = 0
        holders = 0
        for column in range(before.shape[1]):
            broker = before[row, column]
            if broker >= 0:
                holders += 1
                balance += error[broker]
        # Up adds unit - rest to each holder, down takes rest away: the lesser sum of squares.
        is_up = 2 * balance + holders * (unit - 2 * rest) < 0 if holders > 0 else 2 * rest >= unit
        is_up = is_up and rest > 0
        count[row] = floor + (1 if is_up else 0)
        for column in range(before.shape[1]):
            broker = before[row, column]
            if broker >= 0:
                error[broker] += unit - rest if is_up else -rest


@compiled_with(admits, slot_of, allocates=False)
def choose_sets(
    shape: Shape,
    parts: Int32Array,
    start: Int64Array,
    order: Int64Array,
    size: Int64Array,
    now: Int32Array,
    error: np.ndarray,
    chosen: Int64Array,
) -> None:
    """Choose for each partition, in `order`, one of the sets of brokers that its parts have.

    `parts` int32[N, V] are the brokers of each part, sorted; `start` int64[P + 1] tells whose they are. Each set is
    chosen that keeps brokers nearest to the bytes that the parts gave them; `error` float64[B] is what they have more.
    """
    width = parts.shape[1]
    for turn in range(order.size):
        row = order[turn]
        first, last = start[row], start[row + 1]
        if first == last:
            continue
        share = size[row] / (last - first)
        for part in range(first, last):
            for column in range(width):
                if parts[part, column] >= 0:
                    error[parts[part, column]] -= share
        sets = 0
        best, least = first, np.inf
        for part in range(first, last):
            is_new = sets < SETS_MAX
            for one in range(sets):
                same = True
                for column in range(width):
                    same = same and parts[chosen[one], column] == parts[part, column]
                is_new = is_new and not same
            if not is_new:
                continue
            chosen[sets] = part
            sets += 1
            cost = 0.0
            for column in range(width):
                broker = parts[part, column]
                if broker >= 0:
                    cost += 2 * error[broker] * size[row] + float(size[row]) * size[row]
            if cost < least:
                best, least = part, cost
        place = 0
        for column in range(width):
            broker = parts[best, column]
            if broker >= 0:
                now[row, place] = broker
                place += 1
                error[broker] += size[row]
        for column in range(place, now.shape[1]):
            now[row, column] = -1


@compiled_with(admits, slot_of, allocates=False)
def fill_missing(
    shape: Shape, now: Int32Array, order: Int64Array, loads: Loads, middle: Int64Array, price: Int64Array
) -> int:
    """Give a broker to each missing replica, the cheapest and then the emptiest; return the row without a place.

    It is -1 where each has one. A broker's emptiness is its load beside `middle`, int64[B].
    """
    for turn in range(order.size):
        row = order[turn]
        kind = shape.kind[row]
        if kind < 0:
            continue
        while True:
            column = slot_of(now, row, -1)
            if column < 0 or column >= shape.factor[kind]:
                break
            best = -1
            for broker in range(shape.group.size):
                group = shape.group[broker]
                if group < 0 or slot_of(now, row, broker) >= 0:
                    continue
                former = slot_of(shape.before, row, broker) >= 0
                if not former and not shape.receives[broker]:
                    continue
                cost = price[broker] + (0 if former else 1)
                if best >= 0:
                    other = price[best] + (0 if slot_of(shape.before, row, best) >= 0 else 1)
                    if cost > other or (
                        cost == other and loads.load[broker] - middle[broker] >= loads.load[best] - middle[best]
                    ):
                        continue
                if admits(shape, now, row, -1, group):
                    best = broker
            if best < 0:
                return int(row)
            now[row, column] = best
            loads.load[best] += loads.size[row]
    return -1


@compiled_with(allocates=False)
def sort_held(now: Int32Array, ascending: Int64Array, held: Sorted) -> None:
    """List the partitions of each broker; `ascending` are all rows by size."""
    for broker in range(held.start.size):
        held.start[broker] = 0
    brokers = held.start.size - 1
    for turn in range(ascending.size):
        for column in range(now.shape[1]):
            broker = now[ascending[turn], column]
            if broker >= 0:
                held.start[broker + 1] += 1
    for broker in range(brokers):
        held.start[broker + 1] += held.start[broker]
    for turn in range(ascending.size):
        row = ascending[turn]
        for column in range(now.shape[1]):
            broker = now[row, column]
            if broker >= 0:
                held.row[held.start[broker]] = row
                held.start[broker] += 1
    for broker in range(brokers, 0, -1):
        held.start[broker] = held.start[broker - 1]
    held.start[0] = 0


@compiled_with(
    admits,
    slot_of,
    outside,
    may_go,
    change_of,
    weigh,
    first_of_size,
    find_exchange,
    move,
    carry_out,
    clear,
    allocates=False,
)
def repair(shape: Shape, now: Int32Array, loads: Loads, held: Sorted, best: Best, tried: Int64Array) -> int:
    """Exchange partitions of brokers outside their bands with others; return how many exchanges were made.

    `tried` int64[B] is room to note the brokers looked at.
    """
    made = 0
    brokers = loads.load.size
    for broker in range(brokers):
        if shape.group[broker] < 0:
            continue
        for _ in range(64):
            out = outside(loads, broker, loads.load[broker])
            if out == 0:
                break
            over = loads.load[broker] > loads.high[broker]
            clear(best)
            found = -1
            worth = 0.5
            tried[:] = 0
            # The brokers with the most room (or the most to spare): of the same group, then of all.
            for turn in range(24):
                other, most = -1, np.int64(-(1 << 62))
                for one in range(brokers):
                    if tried[one] or one == broker or shape.group[one] < 0:
                        continue
                    if turn < 12 and shape.group[one] != shape.group[broker]:
                        continue
                    room = loads.high[one] - loads.load[one] if over else loads.load[one] - loads.low[one]
                    if room > most:
                        other, most = one, room
                if other < 0:
                    continue
                tried[other] = 1
                here, there = (broker, other) if over else (other, broker)
                find_exchange(shape, now, loads, held, here, there, False, best)
                if best.worth[0] > worth:
                    worth, found = best.worth[0], other
                if turn >= _PARTNERS_ENOUGH and worth > _PENALTY_OF_BROKER / 2:
                    break
            if found < 0:
                break
            here, there = (broker, found) if over else (found, broker)
            carry_out(now, loads, here, there, best)
            made += 1
    return made


@compiled_with(
    admits,
    slot_of,
    outside,
    may_go,
    change_of,
    weigh,
    first_of_size,
    find_exchange,
    move,
    carry_out,
    clear,
    allocates=False,
)
def trim(shape: Shape, now: Int32Array, loads: Loads, held: Sorted, best: Best, tried: Int64Array, least: int) -> float:
    """Take moved replicas back, or exchange them for smaller ones, between pairs of brokers; return the bytes saved.

    Pairs with less than `least` bytes of room are left alone.
    """
    saved = 0.0
    brokers = loads.load.size
    for here in range(brokers):
        if shape.group[here] < 0:
            continue
        tried[:] = 0
        for place in range(held.start[here], held.start[here + 1]):
            row = held.row[place]
            if slot_of(now, row, here) < 0 or slot_of(shape.before, row, here) >= 0:
                continue
            for column in range(shape.before.shape[1]):
                there = shape.before[row, column]
                if there < 0 or tried[there] or shape.group[there] < 0 or slot_of(now, row, there) >= 0:
                    continue
                tried[there] = 1
                for _ in range(16):
                    room = min(loads.high[there] - loads.load[there], loads.load[here] - loads.low[here])
                    if room < least:
                        break
                    clear(best)
                    find_exchange(shape, now, loads, held, here, there, True, best)
                    if best.rows[0] < 0:
                        break
                    saved += best.worth[0]
                    carry_out(now, loads, here, there, best)
    return saved
