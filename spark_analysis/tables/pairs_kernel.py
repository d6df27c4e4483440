"""Count the partitions that brokers share, in one compiled loop over replicas."""

from __future__ import annotations

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled


@compiled
def count_shared(positions: Int32Array, shared: Int64Array) -> None:
    """Add to shared int64[B, B], at (lesser, greater), the rows of `positions` int32[P, W] that hold both; -1 pads."""
    for row in range(positions.shape[0]):
        for first in range(positions.shape[1]):
            for second in range(first + 1, positions.shape[1]):
                one, other = positions[row, first], positions[row, second]
                if one >= 0 and other >= 0 and one != other:
                    shared[min(one, other), max(one, other)] += 1
