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

_LOOKED_AT = 6
_PARTNERS_ENOUGH = 4  # Brokers beyond the first are not looked at where an exchange brings one into its band.
_PENALTY = 1024.0
"""What a byte outside a band costs, in bytes copied."""

_PENALTY_OF_BROKER = float(1 << 53)
"""What a broker outside its band costs besides: more than any exchange copies, however few bytes are outside."""


class Spread(NamedTuple):
    """Hold the bounds by topic: the partitions a broker holds of each topic, and may hold.

    `held`, `low` and `high` are int64[T, B]. `topic` int32[P] is each partition's topic. `start` int64[T * B + 1] into
    `row` int32[N] lists the partitions of each topic on each broker, smallest first. Without bounds by topic T is 0.
    """

    topic: Int32Array
    held: Int64Array
    low: Int64Array
    high: Int64Array
    start: Int64Array
    row: Int32Array


_NO_CELLS = np.zeros((0, 0), dtype=np.int64)
_NO_ROWS = np.zeros(0, dtype=np.int32)
NO_SPREAD = Spread(_NO_ROWS, _NO_CELLS, _NO_CELLS, _NO_CELLS, np.zeros(1, dtype=np.int64), _NO_ROWS)


class Loads(NamedTuple):
    """Hold the bytes of brokers and their bands, int64[B], of partitions, `size` int64[P], and bounds by topic."""

    load: Int64Array
    low: Int64Array
    high: Int64Array
    size: Int64Array
    spread: Spread = NO_SPREAD


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


def keeps_spread(spread: Spread, here: int, there: int, given: int, taken: int) -> bool:
    """Return whether topics keep their bounds on two brokers that exchange partitions; `taken` is -1 for none."""
    if spread.held.shape[0] == 0:
        return True
    topic = spread.topic[given]
    if taken >= 0 and spread.topic[taken] == topic:
        return True
    if spread.held[topic, here] <= spread.low[topic, here] or spread.held[topic, there] >= spread.high[topic, there]:
        return False
    if taken < 0:
        return True
    topic = spread.topic[taken]
    return bool(
        spread.held[topic, there] > spread.low[topic, there] and spread.held[topic, here] < spread.high[topic, here]
    )


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
    if not keeps_spread(loads.spread, here, there, given, taken):
        return
    if taken >= 0 and not may_go(shape, now, taken, there, here):
        return
    best.worth[0] = worth
    best.rows[0], best.rows[1] = given, taken


def first_of_size(loads: Loads, rows: Int32Array, first: int, last: int, size: int) -> int:
    """Return the place from `first` to `last` of the first of `rows` with at least `size` bytes, `last` if none has."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if loads.size[rows[middle]] < size:
            low = middle + 1
        else:
            high = middle
    return int(low)


def look(
    shape: Shape,
    now: Int32Array,
    loads: Loads,
    here: int,
    there: int,
    given: int,
    wanted: int,
    rows: Int32Array,
    first: int,
    last: int,
    best: Best,
) -> None:
    """Weigh the exchanges in which `there` gives back one of `rows` `first` to `last` of about `wanted` bytes."""
    nearest = first_of_size(loads, rows, first, last, wanted)
    for other in range(max(first, nearest - _LOOKED_AT), min(last, nearest + _LOOKED_AT)):
        taken = rows[other]
        if slot_of(now, taken, there) >= 0 and slot_of(now, taken, here) < 0:
            weigh(shape, now, loads, here, there, given, taken, best)


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
    spread = loads.spread
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
            look(shape, now, loads, here, there, row, wanted, held.row, first, last, best)
            if spread.held.shape[0] > 0:  # Those of the same topic keep the bounds by topic.
                cell = np.int64(spread.topic[row]) * loads.load.size + there
                start, end_of = spread.start[cell], spread.start[cell + 1]
                look(shape, now, loads, here, there, row, wanted, spread.row, start, end_of, best)


def move(now: Int32Array, loads: Loads, row: int, here: int, there: int) -> None:
    """Put a replica on another broker."""
    now[row, slot_of(now, row, here)] = there
    loads.load[here] -= loads.size[row]
    loads.load[there] += loads.size[row]
    if loads.spread.held.shape[0] > 0:
        loads.spread.held[loads.spread.topic[row], here] -= 1
        loads.spread.held[loads.spread.topic[row], there] += 1


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
def sort_cells(now: Int32Array, ascending: Int64Array, spread: Spread) -> None:
    """List the partitions of each topic on each broker and count them; `ascending` are all rows by size."""
    brokers = spread.held.shape[1]
    spread.start[:] = 0
    for turn in range(ascending.size):
        base = np.int64(spread.topic[ascending[turn]]) * brokers
        for column in range(now.shape[1]):
            broker = now[ascending[turn], column]
            if broker >= 0:
                spread.start[base + broker + 1] += 1
    for cell in range(spread.start.size - 1):
        spread.held[cell // brokers, cell % brokers] = spread.start[cell + 1]
        spread.start[cell + 1] += spread.start[cell]
    for turn in range(ascending.size):
        row = ascending[turn]
        base = np.int64(spread.topic[row]) * brokers
        for column in range(now.shape[1]):
            broker = now[row, column]
            if broker >= 0:
                spread.row[spread.start[base + broker]] = row
                spread.start[base + broker] += 1
    for cell in range(spread.start.size - 1, 0, -1):
        spread.start[cell] = spread.start[cell - 1]
    spread.start[0] = 0


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


_EXCHANGING = (
    admits,
    slot_of,
    outside,
    may_go,
    change_of,
    weigh,
    first_of_size,
    look,
    keeps_spread,
    find_exchange,
    move,
    carry_out,
    clear,
)
"""What finds and carries out an exchange between two brokers, compiled into both loops."""


@compiled_with(*_EXCHANGING, allocates=False)
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


@compiled_with(*_EXCHANGING, allocates=False)
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
