"""Prices rise by the reached blocks below a node, and by one more for the nodes of a reached block that were not."""

from __future__ import annotations

import numpy as np

from placement.reassignment.exchange_graph import Room
from placement.reassignment.settle_kernel import find_rises


def test_prices_rise_by_the_reached_blocks_below_and_within_a_reached_block() -> None:
    order, level = np.array([0, 0, 1, 1, 2, 2, 3]), np.array([4, -1, -1, -1, 0, -1, -1])
    room = Room(**dict.fromkeys(Room._fields, np.zeros(order.size, np.int64)))
    room = room._replace(
        reached=np.ones(4, np.bool_), below=np.full(4, 9, np.int64), raised=np.full(order.size, 9, np.int64)
    )
    assert find_rises(order, level, room) == 2
    assert room.reached.tolist() == [True, False, True, False]
    assert room.below.tolist() == [0, 1, 1, 2]
    assert room.raised.tolist() == [0, 1, 1, 1, 1, 2, 2]
