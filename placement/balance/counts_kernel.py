"""Mark partitions on too few racks, in one compiled pass.

Replicas are broker positions, int32[P, W], -1 anywhere for "none"; positions lie in 0..B-1. No memory is
held beyond the answer.

Example: rows [0, 1] and [0, 2] of brokers in the racks 0, 0 and 1 of two: the first is marked.

Left out: which racks they are; placement/balance/constraints.py says it in words.

Source: what spread over racks is possible follows Kafka's rack-aware placers (KIP-36): a partition
of factor f on R racks can stand in min(f, R) of them.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array
from broker.compiled import compiled

ByteArray: TypeAlias = NDArray[np.uint8]


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
