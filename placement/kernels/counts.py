"""Count replicas and leaders per broker, and mark rows that stand on too few racks: one compiled pass each.

Both take replicas as broker positions, int32[P, W], the preferred leader first, -1 anywhere
for "none"; positions lie in 0..B-1. They hold no memory beyond their answers.

Example: rows [0, 1] and [1, -1] of two brokers count replicas [1, 2] and leaders [1, 1].

Left out: bytes; weigh the rows with `numpy.bincount` where sizes are known.

Source: what spread over racks is possible follows Kafka's rack-aware placers (KIP-36): a partition
of factor f on R racks can stand in min(f, R) of them.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled

ByteArray: TypeAlias = NDArray[np.uint8]


@compiled
def count_per_broker(replicas_as_positions: Int32Array, broker_count: int) -> tuple[Int64Array, Int64Array]:
    """Return (replica_counts, leader_counts), int64[B] each. A row's leader is what stands first, if anything."""
    replica_counts = np.zeros(broker_count, np.int64)
    leader_counts = np.zeros(broker_count, np.int64)
    row_count, width = replicas_as_positions.shape
    for row in range(row_count):
        for column in range(width):
            position = replicas_as_positions[row, column]
            if position >= 0:
                replica_counts[np.uint64(position)] += 1
                if column == 0:
                    leader_counts[np.uint64(position)] += 1
    return replica_counts, leader_counts


@compiled
def rack_spread_shortfall(replicas_as_positions: Int32Array, rack_of_broker: Int32Array, rack_count: int) -> ByteArray:
    """Return uint8[P]: 1 for a row on fewer racks than min(its factor, rack_count), else 0.

    `rack_of_broker` int32[B] are codes 0..rack_count-1; -1, for a broker without rack, adds none.
    """
    row_count, width = replicas_as_positions.shape
    short = np.zeros(row_count, np.uint8)
    row_of_rack = np.full(rack_count, -1, np.int64)
    for row in range(row_count):
        factor = 0
        racks_used = 0
        for column in range(width):
            position = replicas_as_positions[row, column]
            if position < 0:
                continue
            factor += 1
            rack = rack_of_broker[np.uint64(position)]
            if rack >= 0 and row_of_rack[np.uint64(rack)] != row:
                row_of_rack[np.uint64(rack)] = row
                racks_used += 1
        if racks_used < min(factor, rack_count):
            short[row] = 1
    return short
