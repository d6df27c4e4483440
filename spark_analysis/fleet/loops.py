"""The loops over every replica of a simulated cluster, compiled, all topics of the cluster in one call.

What they compute is defined elsewhere, and tests hold them equal to it: `java_draws` to
`broker.entropy.JavaRandom`, the two `classic_` loops to `placement.classic`, `count_topics`
to `placement.audit` and `placement.loads`. They exist because a call per topic costs more in
Python than placing the topic: 10,000 clusters of 200 topics are two million topics.

Brokers are positions 0..B-1, which in a simulated cluster are also their ids. A call of the
placer is one topic created or grown: `firsts` is the row of the matrix that it fills first,
`starts` and `shifts` are what Kafka draws for it.

Cost: replicas placed, plus topics times brokers for the counts.

Left out: the striped placer, whose own compiled loop is called topic by topic.
"""

from __future__ import annotations

import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.kernels.compiled import compiled


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
def classic_rows(
    rows: Int32Array,
    broker_count: int,
    firsts: Int64Array,
    start_partitions: Int32Array,
    counts: Int32Array,
    factors: Int32Array,
    starts: Int32Array,
    shifts: Int32Array,
) -> None:
    """Fill `rows` as the classic placer does on brokers without racks."""
    ring = max(1, broker_count - 1)
    for call in range(counts.shape[0]):
        partition = start_partitions[call]
        leader = (partition + starts[call]) % broker_count
        until_shift = broker_count - partition % broker_count
        step = shifts[call] % ring
        if partition > 0 and until_shift == broker_count:
            step = (step + 1) % ring
        for row in range(firsts[call], firsts[call] + counts[call]):
            rows[row, 0] = leader
            place = leader + 1 + step
            last = leader + ring
            for column in range(1, factors[call]):
                if place > last:
                    place -= ring
                rows[row, column] = place if place < broker_count else place - broker_count
                place += 1
            leader += 1
            if leader == broker_count:
                leader = 0
            until_shift -= 1
            if until_shift == 0:
                until_shift = broker_count
                step += 1
                if step == ring:
                    step = 0


@compiled
def classic_rack_rows(
    rows: Int32Array,
    ring: Int32Array,
    ring_racks: Int32Array,
    rack_count: int,
    firsts: Int64Array,
    start_partitions: Int32Array,
    counts: Int32Array,
    factors: Int32Array,
    starts: Int32Array,
    shifts: Int32Array,
) -> None:
    """Fill `rows` as the classic placer does on brokers that all have a rack; `ring` is the rack-alternated list."""
    size = ring.shape[0]
    steps = max(1, size - 1)
    row_of_rack = np.full(rack_count, -1, np.int64)
    row_of_broker = np.full(size, -1, np.int64)
    for call in range(counts.shape[0]):
        partition = start_partitions[call]
        leader = (partition + starts[call]) % size
        until_shift = size - partition % size
        first_step = shifts[call] * rack_count % steps
        if partition > 0 and until_shift == size:
            first_step = (first_step + rack_count) % steps
        for row in range(firsts[call], firsts[call] + counts[call]):
            rows[row, 0] = ring[leader]
            row_of_broker[leader] = row
            row_of_rack[ring_racks[leader]] = row
            racks_used = 1
            step = first_step
            column = 1
            while column < factors[call]:
                position = leader + 1 + step
                if position >= size:
                    position -= size
                step += 1
                if step == steps:
                    step = 0
                rack = ring_racks[position]
                if racks_used < rack_count:
                    if row_of_rack[rack] == row:
                        continue
                    row_of_rack[rack] = row
                    racks_used += 1
                elif row_of_broker[position] == row:
                    continue
                row_of_broker[position] = row
                rows[row, column] = ring[position]
                column += 1
            leader += 1
            if leader == size:
                leader = 0
            until_shift -= 1
            if until_shift == 0:
                until_shift = size
                first_step = (first_step + rack_count) % steps


@compiled
def count_topics(
    rows: Int32Array,
    leaders: Int32Array,
    ends: Int64Array,
    sizes: Int64Array,
    brokers: Int64Array,
    topics: Int64Array,
) -> None:
    """Add up what each broker holds, and how far each topic spreads.

    `ends` int64[T]: the row after each topic's last. `sizes` int64[T]: bytes of one replica.
    Fills brokers int64[3, B]: replicas, leaders, bytes; topics int64[7, T]: replicas, brokers that
    hold one, most replicas on one, replica moves, partitions led, most leaders on one, leader moves.
    """
    broker_count = brokers.shape[1]
    held = np.zeros((2, broker_count), np.int32)
    first = 0
    for topic in range(ends.shape[0]):
        held[:] = 0
        for row in range(first, ends[topic]):
            for column in range(rows.shape[1]):
                if rows[row, column] >= 0:
                    held[0, rows[row, column]] += 1
            if leaders[row] >= 0:
                held[1, leaders[row]] += 1
        first = ends[topic]
        for kind in range(2):
            total = most = holders = np.int64(0)
            for broker in range(broker_count):
                count = np.int64(held[kind, broker])
                total += count
                most = max(most, count)
                holders += count > 0
                brokers[kind, broker] += count
            floor = total // broker_count
            ceiling = floor + (total % broker_count > 0)
            excess = lack = np.int64(0)
            for broker in range(broker_count):
                count = np.int64(held[kind, broker])
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
        for broker in range(broker_count):
            brokers[2, broker] += held[0, broker] * sizes[topic]
