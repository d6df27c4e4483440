"""Cut partitions into parts, and choose the brokers of each partition from those of its parts (compiled).

What it decides: how many parts a partition is cut into (parts.py), and where it stands once its parts are placed
(whole_partitions.py), before exchanges (band_kernel.py) make that better.

Constraints: sets of brokers come from the parts' flow, which kept the rules; a broker that fills a gap keeps them too.

Example: a partition of 5 bytes in units of 2 has 3 parts if its broker has lost bytes to rounding, else 2.

Left out: a choice among more than `SETS_MAX` sets of a partition.

Source: ours.
"""

from __future__ import annotations

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from placement.reassignment.band_kernel import Loads
from placement.reassignment.exchange_graph import Shape
from placement.reassignment.exchange_kernel import admits, slot_of

SETS_MAX = 16
"""Sets of brokers that one partition can choose from."""


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
