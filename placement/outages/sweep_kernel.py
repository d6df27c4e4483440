"""Count a state of partitions, and the leaders taken over, for every set that is lost, compiled.

A partition is in the state if at least q of its k members T are lost (q <= 0: it is so already). Of one, lost are

    broker b         1 if b in T and q = 1
    pair a, b        the counts of both, less 1 if both are in T and q = 1, plus 1 if both are in T and q = 2
    rack r           1 if r holds q of T or more
    rack r and b     that of r, plus 1 if b in T is not in r and r holds q - 1 of T (`rack_extra`)
"""

from __future__ import annotations

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled


@compiled
def fill_sweep(
    order: Int32Array,
    member_count: Int32Array,
    needed: Int32Array,
    weight: Int64Array,
    rack_of_broker: Int32Array,
    single: Int64Array,
    pair: Int64Array,
    rack: Int64Array,
    rack_extra: Int64Array,
) -> int:
    """Fill int64[B], int64[B (B - 1) / 2], int64[R] and int64[R, B]; return the sum for no lost broker.

    `weight` int64[P] is what a partition counts, or holds one number for all. `pair` may be empty: then it is not
    filled. `rack_of_broker` int32[B] holds -1 for none.
    """
    base = 0
    broker_count = single.shape[0]
    with_pairs = pair.shape[0] > 0
    for row in range(order.shape[0]):
        need, members = needed[row], member_count[row]
        amount = weight[row] if weight.shape[0] > 1 else weight[0]
        if need <= 0:
            base += amount
            continue
        for place in range(members):
            broker = order[row, place]
            if need == 1:
                single[broker] += amount
            if need <= 2 and with_pairs:
                signed = -amount if need == 1 else amount
                for other_place in range(place + 1, members):
                    other = order[row, other_place]
                    low, high = min(broker, other), max(broker, other)
                    pair[low * (2 * broker_count - low - 1) // 2 + high - low - 1] += signed
            its_rack = rack_of_broker[broker]
            if its_rack < 0:
                continue
            held, is_first = 0, True
            for other_place in range(members):
                if rack_of_broker[order[row, other_place]] == its_rack:
                    held += 1
                    is_first = is_first and other_place >= place
            if not is_first:
                continue
            if held >= need:
                rack[its_rack] += amount
            if held == need - 1 or need == 1:
                change = -amount if need == 1 else amount
                for other_place in range(members):
                    other = order[row, other_place]
                    if rack_of_broker[other] != its_rack:
                        rack_extra[its_rack, other] += change
    return base


@compiled
def fill_pair_takeovers(
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
