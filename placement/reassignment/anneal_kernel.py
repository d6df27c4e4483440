"""Exchange replicas at random, by simulated annealing, until a plan copies few bytes (compiled).

What it decides: which replicas a plan moves where exchanges that save bytes (band_kernel.py) are stuck: a broker both
gives and receives, because no single exchange brings it, and its partner, into their bands.

How. Simulated annealing. What counts is the bytes copied and, some times as much, the bytes outside the bands. A step
draws a replica, most often a new one, and a broker for it, most often one that held it; three times in four that broker
gives a partition back, half of these of about the same size. A step that is worse by d is taken if d is less than the
heat times a number drawn with an exponential distribution. The heat falls from stage to stage.

Constraints: the numbers drawn are those of one seed and no logarithm is taken, so that the same input gives the same
plan everywhere. Every exchange keeps the rules of placement; bands may be left, by little in the end.

Example: broker 0 gave 8 bytes and received 3 where it should have given 5: the replicas of 8 and of 3 bytes are taken
back and one of 5 is given, in two steps of which the first is worse.

Left out: heat that adapts itself.

Source: Kirkpatrick, Gelatt & Vecchi, "Optimization by simulated annealing", Science, 1983; the generator is Knuth's
MMIX.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from placement.reassignment.band_kernel import (
    Loads,
    Sorted,
    change_of,
    first_of_size,
    keeps_spread,
    may_go,
    move,
    outside,
)
from placement.reassignment.exchange_graph import Shape
from placement.reassignment.exchange_kernel import admits, slot_of

PENALTY = 3.0
"""What a byte outside a band costs, in bytes copied: more than the exchange that mends it, but not forbidden."""

_NEAR = 4


class Fresh(NamedTuple):
    """Hold the new replicas at the beginning of a stage: their partitions and brokers, int64[N] each."""

    row: Int64Array
    broker: Int64Array


def draw(seed: Int64Array, bound: int) -> int:
    """Return a number from 0 to less than `bound`; `seed` int64[1] goes on."""
    seed[0] = seed[0] * 6364136223846793005 + 1442695040888963407
    return int(((seed[0] >> 33) & 0x7FFFFFFF) % bound)


def draw_patience(seed: Int64Array) -> float:
    """Return a number of about an exponential distribution with mean 1: halvings until a coin falls, and a part."""
    bits = draw(seed, 1 << 30)
    halvings = 0
    while bits & 1 and halvings < 30:
        bits >>= 1
        halvings += 1
    return 0.6931 * (halvings + draw(seed, 1 << 20) / (1 << 20))


def draw_back(loads: Loads, held: Sorted, seed: Int64Array, broker: int, given: int) -> int:
    """Return a partition that a broker held at the beginning of a stage, -1 if it held none.

    Half the time it is one of about the size of the partition `given`; with bounds by topic, most often of its topic.
    """
    rows, first, last = held.row, held.start[broker], held.start[broker + 1]
    if loads.spread.held.shape[0] > 0 and draw(seed, 4) > 0:
        cell = np.int64(loads.spread.topic[given]) * loads.load.size + broker
        rows, first, last = loads.spread.row, loads.spread.start[cell], loads.spread.start[cell + 1]
    if first == last:
        return -1
    if draw(seed, 2) == 0:
        return int(rows[first + draw(seed, last - first)])
    place = first_of_size(loads, rows, first, last, loads.size[given]) - _NEAR + draw(seed, 2 * _NEAR)
    return int(rows[min(max(place, first), last - 1)])


def excess_after(loads: Loads, here: int, there: int, bytes_given: int) -> int:
    """Return how far two brokers move out of their bands, in bytes, when one gives the other some bytes."""
    before = outside(loads, here, loads.load[here]) + outside(loads, there, loads.load[there])
    own, other = loads.load[here] - bytes_given, loads.load[there] + bytes_given
    return outside(loads, here, own) + outside(loads, there, other) - before


def draw_given(
    shape: Shape, now: Int32Array, held: Sorted, fresh: Fresh, seed: Int64Array
) -> tuple[int, int, int, int]:
    """Return a partition, the broker that gives it, the one that shall have it, and what that gives back, -1 if open.

    The partition is -1 where the draw led to nothing.
    """
    kind = draw(seed, 10)
    if kind >= 8:
        row = held.row[draw(seed, held.start[-1])]
        here = now[row, draw(seed, now.shape[1])]
        return row, here, draw(seed, shape.group.size), -1
    drawn = draw(seed, fresh.row.size)
    row, here = fresh.row[drawn], fresh.broker[drawn]
    if kind < 5:
        return row, here, shape.before[row, draw(seed, shape.before.shape[1])], -1
    if kind == 7:
        return row, here, draw(seed, shape.group.size), -1
    drawn = draw(seed, fresh.row.size)
    return row, here, fresh.broker[drawn], fresh.row[drawn]


@compiled_with(
    slot_of,
    admits,
    outside,
    may_go,
    change_of,
    keeps_spread,
    move,
    first_of_size,
    draw,
    draw_patience,
    draw_back,
    excess_after,
    draw_given,
    allocates=False,
)
def anneal(
    shape: Shape,
    now: Int32Array,
    loads: Loads,
    held: Sorted,
    fresh: Fresh,
    seed: Int64Array,
    steps: int,
    heat: float,
) -> int:
    """Try `steps` random exchanges of replicas at a heat in bytes; return how many were carried out."""
    made = 0
    for _ in range(steps):
        row, here, there, back = draw_given(shape, now, held, fresh, seed)
        if here < 0 or there < 0 or here == there or shape.group[here] < 0 or shape.group[there] < 0:
            continue
        if slot_of(now, row, here) < 0:
            continue
        if back < 0 and draw(seed, 4) > 0:
            back = draw_back(loads, held, seed, there, row)
        if back >= 0 and (back == row or slot_of(now, back, there) < 0):
            continue
        if not keeps_spread(loads.spread, here, there, row, back):
            continue
        size = loads.size[row]
        worse = float(change_of(shape, row, here, there)) * size
        if back >= 0:
            worse += float(change_of(shape, back, there, here)) * loads.size[back]
            size -= loads.size[back]
        worse += PENALTY * excess_after(loads, here, there, size)
        if worse > 0 and worse >= heat * draw_patience(seed):
            continue
        if not may_go(shape, now, row, here, there) or (back >= 0 and not may_go(shape, now, back, there, here)):
            continue
        move(now, loads, row, here, there)
        if back >= 0:
            move(now, loads, back, there, here)
        made += 1
    return made
