"""The loops over every replica of a simulated cluster, compiled, all topics of the cluster in one call.

What they compute is defined elsewhere, and tests hold them equal to it: `java_draws` to
`broker.entropy.JavaRandom`, `count_topics` and `count_brokers` to `placement.audit` and
`placement.loads`. They exist because a call per topic costs more in Python than placing the topic:
10,000 clusters of 200 topics are two million topics.

Brokers are positions 0..B-1, which in a simulated cluster are also their ids.

Cost: replicas, plus topics times brokers where topics are counted.

Left out: placing, whose loops are in placement/kernels.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from placement.kernels.compiled import compiled

BoolArray: TypeAlias = NDArray[np.bool_]


@compiled
def java_draws(state: int, bounds: Int32Array, drawn: Int32Array) -> int:
    """Fill `drawn` with nextInt(bound) for each of `bounds`, from the 48-bit `state`; return the state after."""
    for index in range(bounds.shape[0]):
        bound = np.int64(bounds[index])
        while True:
            state = (state * 0x5DEECE66D + 0xB) & 0xFFFFFFFFFFFF
            bits = state >> 17
            if bound & (bound - 1) == 0:
                value = (bound * bits) >> 31
                break
            value = bits % bound
            if bits - value + (bound - 1) <= 0x7FFFFFFF:
                break
        drawn[index] = value
    return state


@compiled
def count_brokers(
    rows: Int32Array, fenced: BoolArray, ends: Int64Array, sizes: Int64Array, brokers: Int64Array
) -> None:
    """Add up what each broker holds: fill brokers int64[3, B] as `count_topics` does."""
    row = np.uint64(0)
    for topic in range(ends.shape[0]):
        size = sizes[topic]
        end = np.uint64(ends[topic])
        while row < end:
            leaderless = True
            for column in range(rows.shape[1]):
                position = rows[row, np.uint64(column)]
                if position >= 0:
                    broker = np.uint64(position)
                    brokers[0, broker] += 1
                    brokers[2, broker] += size
                    if leaderless and not fenced[broker]:
                        brokers[1, broker] += 1
                        leaderless = False
            row += np.uint64(1)


@compiled
def count_topics(
    rows: Int32Array, fenced: BoolArray, ends: Int64Array, sizes: Int64Array, brokers: Int64Array, topics: Int64Array
) -> None:
    """Add up what each broker holds, and how far each topic spreads. The first unfenced replica leads.

    `fenced` bool[B]; `ends` int64[T]: the row after each topic's last; `sizes` int64[T]: bytes of one replica.
    Fills brokers int64[3, B]: replicas, leaders, bytes; topics int64[7, T]: replicas, brokers that
    hold one, most replicas on one, replica moves, partitions led, most leaders on one, leader moves.
    """
    broker_count = brokers.shape[1]
    held = np.zeros((2, broker_count), np.int32)
    row = np.uint64(0)
    for topic in range(ends.shape[0]):
        held[:] = 0
        end = np.uint64(ends[topic])
        while row < end:
            leaderless = True
            for column in range(rows.shape[1]):
                position = rows[row, np.uint64(column)]
                if position >= 0:
                    broker = np.uint64(position)
                    held[0, broker] += 1
                    if leaderless and not fenced[broker]:
                        held[1, broker] += 1
                        leaderless = False
            row += np.uint64(1)
        for kind in range(2):
            total = most = holders = np.int64(0)
            for place in range(broker_count):
                count = np.int64(held[kind, place])
                total += count
                most = max(most, count)
                holders += count > 0
                brokers[kind, place] += count
            floor = total // broker_count
            ceiling = floor + (total % broker_count > 0)
            excess = lack = np.int64(0)
            for place in range(broker_count):
                count = np.int64(held[kind, place])
                excess += max(count - ceiling, 0)
                lack += max(floor - count, 0)
            if kind == 0:
                topics[0, topic] = total
                topics[1, topic] = holders
                topics[2, topic] = most
                topics[3, topic] = max(excess, lack)
            else:
                topics[4, topic] = total
                topics[5, topic] = most
                topics[6, topic] = max(excess, lack)
        for place in range(broker_count):
            brokers[2, place] += held[0, place] * sizes[topic]
