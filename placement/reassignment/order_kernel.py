"""Write replicas in the order of a plan: who stays keeps his place, and the leader comes first, compiled.

What it decides: the order of each partition's target. A new replica takes the place of one that leaves, in the order of
both; replicas beyond the former number stand at the end. Then the leader comes first, unless it leads anyway: because
it is the first live replica, or because it led before and the first one is fenced.

Example: 1, 2, 3 with broker 4 for broker 2 and leader 4: 4, 1, 3; with leader 1: 1, 4, 3.

Source: ours; Kafka prefers the first replica of the list as the leader.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array
from broker.compiled import compiled_with


def holds(row: Int32Array, broker: int) -> bool:
    """Return whether a row holds a broker."""
    found = False
    for column in range(row.size):
        found = found or row[column] == broker
    return found


@compiled_with(holds, allocates=False)
def write_order(
    before: Int32Array,
    now: Int32Array,
    leader: Int32Array,
    former: Int32Array,
    fenced: NDArray[np.bool_],
    target: Int32Array,
) -> None:
    """Fill `target` int32[P, V] with the replicas `now` int32[P, V], in the order that `before` int32[P, W] suggests.

    Brokers are positions, -1 pads. `leader` int32[P] is who leads, -1 for none; `former` int32[P] who led before.
    """
    for row in range(now.shape[0]):
        size = place = 0
        target[row, :] = -1
        for column in range(before.shape[1]):
            broker = before[row, column]
            if broker < 0:
                continue
            if not holds(now[row], broker):
                while place < now.shape[1] and (now[row, place] < 0 or holds(before[row], now[row, place])):
                    place += 1
                if place == now.shape[1]:
                    continue
                broker = now[row, place]
                place += 1
            target[row, size] = broker
            size += 1
        for column in range(place, now.shape[1]):
            broker = now[row, column]
            if broker >= 0 and not holds(before[row], broker):
                target[row, size] = broker
                size += 1
        if leader[row] < 0 or size == 0 or target[row, 0] == leader[row]:
            continue
        if fenced[target[row, 0]] and target[row, 0] == before[row, 0] and leader[row] == former[row]:
            continue
        for column in range(size):
            if target[row, column] == leader[row]:
                for left in range(column, 0, -1):
                    target[row, left] = target[row, left - 1]
                target[row, 0] = leader[row]
                break
