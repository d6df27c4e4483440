"""Add up the least that every partition can cost at given prices of brokers, compiled.

What it decides: for one topic's partitions, the least of the sum over a partition's brokers of (cost + price), over
all sets of brokers that the rules allow. This is the part of a plan's lower bound that depends on the partitions, and
it shares nothing with the solver.

Constraints: f replicas are placed on live brokers besides those that stay on fenced ones. Let a groups be open: those
of which no fenced broker holds the partition, with a live broker that is not cordoned or that holds it. If f <= a, each
open group holds at most one and the others none; else each open group holds at least one and the rest are anywhere. A
broker that did not hold the partition costs `fresh` and must receive; the former leader saves `lead`.

How: with f <= a, the cheapest broker of each open group, then the f cheapest groups; with f > a, the cheapest broker of
each open group, then the cheapest of all that are left. The cheapest fresh brokers are sorted once, so a partition
looks at f and its own brokers only.

Example: prices 0 and -1, fresh 1, one partition on broker 0: min(0, 1 - 1) = 0.

Left out: the brokers' part of the bound (certificate.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with

FAR = 1 << 60
"""Costs more than anything: no broker there can be had."""

PART_BITS = 30
"""Bits of a cost that are added up apart from the higher ones."""


class Rules(NamedTuple):
    """Hold the brokers of a cluster: `group` int64[B] by rack, `live`, `stays` (fenced) and `receives` bool[B].

    Groups 0..G-1 are those of live and fenced brokers; `open_size` int64[G] counts the live brokers of each, and
    `closed` bool[G] tells where all of these are cordoned.
    """

    group: Int64Array
    live: NDArray[np.bool_]
    stays: NDArray[np.bool_]
    receives: NDArray[np.bool_]
    open_size: Int64Array
    closed: NDArray[np.bool_]


class Prices(NamedTuple):
    """Hold the prices int64[B], what a new replica costs and a kept leader saves, and what can be sorted once.

    `brokers` are all that receive, cheapest first; `groups` those with such a broker, by `best` int64[G], the price of
    the group's cheapest.
    """

    price: Int64Array
    fresh: int
    lead: int
    brokers: Int64Array
    groups: Int64Array
    best: Int64Array


def insert(values: Int64Array, count: int, value: int) -> int:
    """Insert a value into the `count` least of ascending `values`, all of which are in use; drop the greatest."""
    place = count - 1
    if place < 0 or values[place] <= value:
        return 0
    while place > 0 and values[place - 1] > value:
        values[place] = values[place - 1]
        place -= 1
    values[place] = value
    return 1


def former_cost(rules: Rules, prices: Prices, held: Int32Array, leader: int, group: int) -> int:
    """Return the cost of the cheapest live former broker of a group, FAR if there is none."""
    least = FAR
    for column in range(held.size):
        broker = held[column]
        if broker >= 0 and rules.live[broker] and rules.group[broker] == group:
            cost = prices.price[broker] - (prices.lead if broker == leader else 0)
            least = min(least, cost)
    return least


def is_former(held: Int32Array, broker: int) -> bool:
    """Return whether a broker held the partition."""
    found = False
    for column in range(held.size):
        found = found or held[column] == broker
    return found


def is_open(rules: Rules, held: Int32Array, group: int) -> bool:
    """Return whether a group is open to the partition."""
    if rules.open_size[group] == 0 or is_barred(rules, held, group):
        return False
    for column in range(held.size):
        broker = held[column]
        if broker >= 0 and rules.live[broker] and rules.group[broker] == group:
            return True
    return not rules.closed[group]


def is_barred(rules: Rules, held: Int32Array, group: int) -> bool:
    """Return whether a fenced broker of the group keeps the partition."""
    for column in range(held.size):
        broker = held[column]
        if broker >= 0 and rules.stays[broker] and rules.group[broker] == group:
            return True
    return False


def fresh_cost(prices: Prices, group: int) -> int:
    """Return the cost of a group's cheapest broker that receives, FAR if the group has none.

    A former broker that comes first is taken for a fresh one here, which is dearer than it is: its own cost counts too.
    """
    return FAR if prices.best[group] >= FAR else int(prices.best[group] + prices.fresh)


def narrow(rules: Rules, prices: Prices, held: Int32Array, leader: int, factor: int, least: Int64Array) -> int:
    """Return the least cost with at most one replica in an open group; `least` is room to work in."""
    least[:factor] = FAR
    for column in range(held.size):  # Groups of former brokers, each once.
        broker = held[column]
        if broker < 0 or not rules.live[broker] or is_barred(rules, held, rules.group[broker]):
            continue
        group, seen = rules.group[broker], False
        for other in range(column):
            before = held[other]
            seen = seen or (before >= 0 and rules.live[before] and rules.group[before] == group)
        if not seen:
            cost = min(former_cost(rules, prices, held, leader, group), fresh_cost(prices, group))
            insert(least, factor, cost)
    for place in range(prices.groups.size):
        group = prices.groups[place]
        cost = prices.best[group] + prices.fresh
        if least[factor - 1] <= cost:
            break
        if not is_barred(rules, held, group) and former_cost(rules, prices, held, leader, group) >= FAR:
            insert(least, factor, cost)
    return total_of(least, factor)


def total_of(least: Int64Array, factor: int) -> int:
    """Return the sum of the least costs; FAR if one is missing."""
    total = 0
    for place in range(factor):
        if least[place] >= FAR:
            return FAR
        total += least[place]
    return total


def wide(rules: Rules, prices: Prices, held: Int32Array, leader: int, factor: int, least: Int64Array) -> int:
    """Return the least cost with at least one replica in every open group; `least` is room to work in."""
    taken = least[factor:]  # The broker taken for each open group.
    total = count = 0
    for group in range(rules.open_size.size):
        if not is_open(rules, held, group):
            continue
        cost, chosen = FAR, -1
        for place in range(prices.brokers.size):
            broker = prices.brokers[place]
            if rules.group[broker] == group and not is_former(held, broker):
                cost, chosen = prices.price[broker] + prices.fresh, broker
                break
        for column in range(held.size):
            broker = held[column]
            if broker < 0 or not rules.live[broker] or rules.group[broker] != group:
                continue
            own = prices.price[broker] - (prices.lead if broker == leader else 0)
            if own < cost:
                cost, chosen = own, broker
        if chosen < 0:
            return FAR
        taken[count] = chosen
        count += 1
        total += cost
    rest = factor - count
    least[:rest] = FAR
    for column in range(held.size):
        broker = held[column]
        if broker >= 0 and rules.live[broker] and not is_taken(taken, count, broker):
            insert(least, rest, prices.price[broker] - (prices.lead if broker == leader else 0))
    for place in range(prices.brokers.size):
        broker = prices.brokers[place]
        if rest == 0 or least[rest - 1] <= prices.price[broker] + prices.fresh:
            break
        if not is_former(held, broker) and not is_taken(taken, count, broker):
            insert(least, rest, prices.price[broker] + prices.fresh)
    others = total_of(least, rest)
    return FAR if others >= FAR else total + others


def is_taken(taken: Int64Array, count: int, broker: int) -> bool:
    """Return whether a broker is among the first `count` taken."""
    found = False
    for place in range(count):
        found = found or taken[place] == broker
    return found


@compiled_with(
    insert, former_cost, is_former, is_barred, is_open, fresh_cost, narrow, total_of, wide, is_taken, allocates=False
)
def least_cost(
    rules: Rules,
    prices: Prices,
    rows: Int32Array,
    wanted: Int64Array,
    leader: Int32Array,
    scale: Int64Array,
    chosen: Int64Array,
    room: Int64Array,
    total: Int64Array,
) -> bool:
    """Add up the least costs of the partitions `chosen`, rows of `rows` int32[P, W]; False where one has no place.

    `wanted` int64[P] are the replicas on live brokers, `leader` int32[P] the broker that saves `lead`, -1 for none;
    `room` int64[512 + G] is room to work in. Each partition's least cost counts `scale` int64[P] times. The sum is
    total[0] * 2^PART_BITS + total[1], as it may need more than 64 bits.
    """
    total[0] = total[1] = 0
    for place in range(chosen.size):
        row = chosen[place]
        factor = wanted[row]
        if factor == 0:
            continue
        held = rows[row]
        open_count = 0
        for group in range(rules.open_size.size):
            if rules.open_size[group] > 0 and not rules.closed[group]:
                open_count += 1
        for column in range(held.size):  # Groups of former brokers, each once: closed ones are open, fenced ones not.
            broker = held[column]
            if broker < 0 or rules.open_size[rules.group[broker]] == 0:
                continue
            group, earlier = rules.group[broker], False
            for other in range(column):
                earlier = earlier or (held[other] >= 0 and rules.group[held[other]] == group)
            if not earlier:
                open_count += int(is_open(rules, held, group)) - int(not rules.closed[group])
        if factor <= open_count:
            cost = narrow(rules, prices, held, leader[row], factor, room)
        else:
            cost = wide(rules, prices, held, leader[row], factor, room)
        if cost >= FAR:
            return False
        cost *= scale[row]
        total[0] += cost >> PART_BITS
        total[1] += cost & (1 << PART_BITS) - 1
    return True
