"""Count the leaders that brokers take over when brokers, pairs, racks, or racks with one more are lost, compiled.

What it decides: for each set of lost brokers, the most leaders that one surviving broker takes over, and the most that
one leads afterwards.

How: `order` is that of succession.py. A broker's leaders go to the second of their rows; a pair's too, but where the
second is the other of the pair, to the third. A rack's go to the first of the row outside of it; with one more broker
lost, those that it then leads go to the second outside.

Cost: brokers O(P), pairs O(P + B^3 / 2) of additions on arrays in cache, racks O(R (P + B^2)).

Source: ours; compare with `lost.outage` of one set.
"""

from __future__ import annotations

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled


@compiled
def fill_takeovers(order: Int32Array, led_count: Int32Array, leaders: Int32Array, takeovers: Int32Array) -> None:
    """Fill int32[B], the partitions led, and int32[B, B], how many of a row's leaders go to a column's broker."""
    for row in range(order.shape[0]):
        if led_count[row] > 0:
            leaders[order[row, 0]] += 1
        if led_count[row] > 1:
            takeovers[order[row, 0], order[row, 1]] += 1


@compiled
def fill_pair_pile_up(
    order: Int32Array,
    led_count: Int32Array,
    leaders: Int32Array,
    takeovers: Int32Array,
    taken_max: Int32Array,
    leaders_max: Int32Array,
) -> None:
    """Fill int32[B (B - 1) / 2] each: the most leaders taken over by one broker, and the most led by one afterwards."""
    broker_count = leaders.shape[0]
    pair_count = taken_max.shape[0]
    end = np.zeros(pair_count + 1, np.int64)
    for row in range(order.shape[0]):
        if led_count[row] > 2:
            low, high = min(order[row, 0], order[row, 1]), max(order[row, 0], order[row, 1])
            end[low * (2 * broker_count - low - 1) // 2 + high - low] += 1
    for pair in range(pair_count):
        end[pair + 1] += end[pair]
    thirds = np.zeros(end[pair_count], np.int32)
    for row in range(order.shape[0]):
        if led_count[row] > 2:
            low, high = min(order[row, 0], order[row, 1]), max(order[row, 0], order[row, 1])
            pair = low * (2 * broker_count - low - 1) // 2 + high - low - 1
            thirds[end[pair]] = order[row, 2]
            end[pair] += 1
    taken = np.zeros(broker_count, np.int32)
    pair = first = 0
    for low in range(broker_count):
        for high in range(low + 1, broker_count):
            for broker in range(broker_count):
                taken[broker] = takeovers[low, broker] + takeovers[high, broker]
            for place in range(first, end[pair]):
                taken[thirds[place]] += 1
            first = end[pair]
            taken[low] = -leaders[low]
            taken[high] = -leaders[high]
            most = most_led = np.int32(0)
            for broker in range(broker_count):
                most = max(most, taken[broker])
                most_led = max(most_led, taken[broker] + leaders[broker])
            taken_max[pair] = most
            leaders_max[pair] = most_led
            pair += 1


@compiled
def fill_rack_pile_up(
    order: Int32Array,
    led_count: Int32Array,
    rack_of_broker: Int32Array,
    rack: int,
    leaders: Int32Array,
    taken: Int32Array,
    takeovers: Int32Array,
) -> None:
    """Fill int32[B], leaders once `rack` is lost, those taken over, and int32[B, B], who takes over from whom then."""
    for row in range(order.shape[0]):
        first = -1
        for place in range(led_count[row]):
            broker = order[row, place]
            if rack_of_broker[broker] == rack:
                continue
            if first < 0:
                first = broker
                leaders[first] += 1
                if place > 0:
                    taken[first] += 1
                continue
            takeovers[first, broker] += 1
            break


def pair_count_of(broker_count: int) -> int:
    """Return the number of pairs of brokers, which is the length of a column of pairs."""
    return broker_count * (broker_count - 1) // 2


def pair_columns(broker_count: int) -> tuple[Int64Array, Int64Array]:
    """Return the rows of the first and of the second broker of every pair, in the order of a column of pairs."""
    first, second = np.triu_indices(broker_count, 1)
    return first.astype(np.int64), second.astype(np.int64)
