"""Move whole partitions between brokers until the bytes of each lie within its bounds, the largest first, compiled.

How. A partition keeps the replicas that the rules allow, those on the emptier brokers first; missing ones go to the
brokers furthest below the middle of their bounds. Then replicas move, the largest first, so that few of them do:

1. from a broker that has too much to one that lacks as much;
2. from a broker that has too much to any with room, or to one that lacks bytes from any that can spare them;
3. the smallest one that ends what is left of either.

So the bytes that move are about the greater of what brokers have too much and what they lack, in all. A move may
exceed what is left of a broker's need by 1/256 of the whole need: one move then ends it, not five ever smaller ones.

Source: ours; the largest first as in first-fit decreasing (Johnson 1973).
"""

from __future__ import annotations

from typing import NamedTuple

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from placement.planning.exchange_graph import Shape
from placement.planning.exchange_kernel import admits, slot_of

FILLS = 0
"""A move takes no more than a broker has too much, or brings no more than it lacks."""
ENDS = 1
"""A move takes at least what a broker has too much, or brings at least what it lacks."""
ALLOWED = 2
"""A move leaves a broker within its bounds."""


class Loads(NamedTuple):
    """Hold the bytes of a replica of each partition, `size` int64[P], and those of brokers, int64[B].

    `spare` is by how much a move may exceed a broker's need. `held` int64[T, B] counts the replicas of each topic on
    each broker where `topic_low` and `topic_high` bound them; all three have no rows where they do not.
    """

    size: Int64Array
    load: Int64Array
    low: Int64Array
    high: Int64Array
    spare: Int64Array
    held: Int64Array
    topic_low: Int64Array
    topic_high: Int64Array


def takes(loads: Loads, broker: int, size: int, rule: int) -> bool:
    """Return whether a broker may receive so many bytes under a rule."""
    lacks = loads.low[broker] - loads.load[broker]
    if size > loads.high[broker] - loads.load[broker]:
        return False
    if rule == FILLS:
        return bool(lacks > 0 and size <= lacks + loads.spare[broker])
    return bool(rule == ALLOWED or 0 < lacks <= size)


def gives(loads: Loads, broker: int, size: int, rule: int) -> bool:
    """Return whether a broker may give so many bytes away under a rule."""
    over = loads.load[broker] - loads.high[broker]
    if size > loads.load[broker] - loads.low[broker]:
        return False
    if rule == FILLS:
        return bool(over > 0 and size <= over + loads.spare[broker])
    return bool(rule == ALLOWED or 0 < over <= size)


def keeps_topic(loads: Loads, topic: int, giver: int, taker: int) -> bool:
    """Return whether a replica of a topic may go from one broker to another within the bounds by topic."""
    if loads.held.shape[0] == 0:
        return True
    fits = loads.held[topic, taker] < loads.topic_high[topic, taker]
    return bool(fits and loads.held[topic, giver] > loads.topic_low[topic, giver])


def may_hold(shape: Shape, now: Int32Array, row: int, column: int, broker: int) -> bool:
    """Return whether the replica in a column may be on `broker` instead."""
    if shape.group[broker] < 0 or slot_of(now, row, broker) >= 0:
        return False
    is_able = shape.receives[broker] and shape.fresh[shape.kind[row]] and slot_of(shape.stays, row, broker) < 0
    if not is_able and slot_of(shape.before, row, broker) < 0:
        return False
    return bool(admits(shape, now, row, column, shape.group[broker]))


def move(shape: Shape, now: Int32Array, loads: Loads, row: int, column: int, broker: int) -> None:
    """Put the replica in a column on a broker."""
    giver = now[row, column]
    loads.load[giver] -= loads.size[row]
    loads.load[broker] += loads.size[row]
    if loads.held.shape[0] > 0:
        loads.held[shape.topic[row], giver] -= 1
        loads.held[shape.topic[row], broker] += 1
    now[row, column] = broker


def target_of(shape: Shape, now: Int32Array, loads: Loads, row: int, column: int, rule: int) -> int:
    """Return the broker that lacks most of those that may take the replica in a column, -1 if none may."""
    best = -1
    for broker in range(shape.group.size):
        lacks = loads.low[broker] - loads.load[broker]
        if best >= 0 and lacks <= loads.low[best] - loads.load[best]:
            continue
        if not takes(loads, broker, loads.size[row], rule) or not may_hold(shape, now, row, column, broker):
            continue
        if keeps_topic(loads, shape.topic[row], now[row, column], broker):
            best = broker
    return best


@compiled_with(slot_of, admits, takes, gives, keeps_topic, may_hold, move, target_of, allocates=False)
def move_in_order(
    shape: Shape, now: Int32Array, loads: Loads, rows: Int64Array, brokers: Int32Array, out_rule: int, in_rule: int
) -> int:
    """Move the replicas of `rows` from `brokers`, in this order, wherever both rules allow it; return how many."""
    moved = 0
    for place in range(rows.size):
        row, broker = rows[place], brokers[place]
        if not gives(loads, broker, loads.size[row], out_rule):
            continue
        column = slot_of(now, row, broker)
        target = target_of(shape, now, loads, row, column, in_rule) if column >= 0 else -1
        if target >= 0:
            move(shape, now, loads, row, column, target)
            moved += 1
    return moved


def emptiest(shape: Shape, now: Int32Array, loads: Loads, row: int, among_former: bool) -> int:
    """Return the broker furthest below the middle of its bounds that may join a partition, -1 if none may."""
    best, least = -1, 0
    count = shape.before.shape[1] if among_former else shape.group.size
    for place in range(count):
        broker = shape.before[row, place] if among_former else place
        if broker < 0:
            continue
        above = 2 * loads.load[broker] - loads.low[broker] - loads.high[broker]
        if (best < 0 or above < least) and may_hold(shape, now, row, -1, broker):
            best, least = broker, above
    return best


@compiled_with(slot_of, admits, may_hold, emptiest, allocates=False)
def begin(shape: Shape, now: Int32Array, loads: Loads, order: Int64Array) -> int:
    """Fill `now`, -1 everywhere, with former replicas that the rules keep, and with those that are missing.

    `loads.load` starts with all former replicas. Return the first row without a place, -1 if each has one.
    """
    for turn in range(order.size):
        row = order[turn]
        for column in range(shape.factor[shape.kind[row]]):
            broker = emptiest(shape, now, loads, row, True)
            if broker < 0:
                break
            now[row, column] = broker
        for place in range(shape.before.shape[1]):
            broker = shape.before[row, place]
            if broker >= 0 and slot_of(now, row, broker) < 0:
                loads.load[broker] -= loads.size[row]
    for turn in range(order.size):
        row = order[turn]
        for column in range(shape.factor[shape.kind[row]]):
            if now[row, column] >= 0:
                continue
            broker = emptiest(shape, now, loads, row, False)
            if broker < 0:
                return int(row)
            now[row, column] = broker
            loads.load[broker] += loads.size[row]
    return -1
