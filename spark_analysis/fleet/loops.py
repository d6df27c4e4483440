"""Compile the loops over every topic and replica of a simulated cluster, one call for all topics of the cluster.

Goals, most important first: each loop equals its readable twin; no Python call per topic, which would cost more than
placing the topic: 10,000 clusters of 200 topics are two million topics.

How: tests hold the loops equal to their twins: `fill_words`, `fill_seeds` and `java_draws` to the generators and
`derive` of `broker.entropy`, `draw_topics` to `choose` of generate.py, `count_brokers` to
`placement.balance.loads`. Brokers are positions 0..B-1, which in a simulated cluster are
also their ids. The cost is linear in replicas.

Left out: placing, whose loops are in placement/placers.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled, compiled_with

BoolArray: TypeAlias = NDArray[np.bool_]
WordArray: TypeAlias = NDArray[np.uint64]

GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
"""What SplitMix64 adds to its state for each word."""


@compiled
def java_draws(state: int, bound: int, drawn: Int32Array) -> int:
    """Fill int32[n, m], row by row, with java.util.Random.nextInt(bound) from the 48-bit `state`; return the next."""
    for row in range(drawn.shape[0]):
        for column in range(drawn.shape[1]):
            while True:
                state = (state * 0x5DEECE66D + 0xB) & 0xFFFFFFFFFFFF
                bits = state >> 17
                if bound & (bound - 1) == 0:
                    value = (bound * bits) >> 31
                    break
                value = bits % bound
                if bits - value + (bound - 1) <= 0x7FFFFFFF:
                    break
            drawn[row, column] = value
    return state


@compiled
def draw_topics(
    topic_words: WordArray,
    partitions: Int32Array,
    factors: Int32Array,
    factor_edges: Int64Array,
    sizes: Int64Array,
    growth_chance: int,
    growth_times: int,
    drawn: Int32Array,
    size_bytes: Int64Array,
) -> None:
    """Draw partition count, factor, size of a replica and growth of each topic from four words a topic, uint64[T, 4].

    `partitions` are equally likely; `factors` by the sums of their weights up to each, `factor_edges`; `sizes`,
    int64[2^n], are quantiles, or empty. Growth has a chance of `growth_chance` in 2^53. Fills drawn int32[3, T]:
    partition counts, grown counts, factors; and size_bytes int64[T] if there are sizes.
    """
    high_bits, growth_bits = np.uint64(32), np.uint64(11)
    partition_bound, factor_bound = np.uint64(partitions.size), np.uint64(factor_edges[-1])
    size_bits, bound = np.uint64(64), sizes.size
    while bound > 1:
        bound >>= 1
        size_bits -= np.uint64(1)
    for topic in range(topic_words.shape[0]):
        count = partitions[((topic_words[topic, 0] >> high_bits) * partition_bound) >> high_bits]
        chosen = np.int64(((topic_words[topic, 1] >> high_bits) * factor_bound) >> high_bits)
        place = 0
        while factor_edges[place] <= chosen:
            place += 1
        drawn[0, topic] = count
        grows = np.int64(topic_words[topic, 3] >> growth_bits) < growth_chance
        drawn[1, topic] = count * growth_times if grows else count
        drawn[2, topic] = factors[place]
        if sizes.size:
            size_bytes[topic] = sizes[topic_words[topic, 2] >> size_bits]


def mixed(word: np.uint64) -> np.uint64:
    """Return the output word of SplitMix64 in this state."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@compiled_with(mixed)
def fill_words(states: WordArray, words: WordArray) -> None:
    """Fill each row of uint64[n, m] with the stream of SplitMix64 from its state, uint64[n]."""
    for row in range(words.shape[0]):
        state = states[row]
        for column in range(words.shape[1]):
            state += GAMMA
            words[row, column] = mixed(state)


@compiled_with(mixed)
def fill_seeds(seed: int, numbers: Int64Array, keys: Int64Array, seeds: WordArray) -> None:
    """Fill uint64[n] with derive(seed, number, *keys) for each of the numbers, int64[n]."""
    for place in range(numbers.size):
        word = mixed(np.uint64(seed) + GAMMA)
        word = mixed((word + GAMMA) ^ mixed(np.uint64(numbers[place]) + GAMMA))
        for key in keys:
            word = mixed((word + GAMMA) ^ mixed(np.uint64(key) + GAMMA))
        seeds[place] = word >> np.uint64(1)


@compiled
def count_brokers(
    rows: Int32Array, fenced: BoolArray, counts: Int32Array, sizes: Int64Array, brokers: Int64Array
) -> None:
    """Add replicas, leaders and bytes of each broker to brokers int64[3, B]; the first unfenced replica leads."""
    row = np.uint64(0)
    for topic in range(counts.shape[0]):
        size = sizes[topic]
        end = row + np.uint64(counts[topic])
        while row < end:
            leaderless = True
            for column in range(rows.shape[1]):
                position = rows[row, np.uint64(column)]
                if position >= 0:
                    broker = np.uint64(position)
                    brokers[0, broker] += 1
                    if size > 0:
                        brokers[2, broker] += size
                    if leaderless and not fenced[broker]:
                        brokers[1, broker] += 1
                        leaderless = False
            row += np.uint64(1)
