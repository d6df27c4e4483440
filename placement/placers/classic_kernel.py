"""Compute the classic placer's rows in one compiled loop over calls, partitions and candidate brokers.

Gives the rows of `placement.placers.classic.readable_rows`, which says why they are what they are.

Source: org.apache.kafka.admin.AdminUtils, 4.0.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from broker.cluster import Int32Array
from broker.compiled import compiled

ZERO: Final = np.uint64(0)
ONE: Final = np.uint64(1)


@compiled
def fill_classic(
    rows: Int32Array, calls: Int32Array, ring_values: Int32Array, ring_racks: Int32Array, rack_count: int
) -> None:
    """Fill `rows` int32[P, W] with ring values; sums of indexes must stay below 2^31.

    A row of a smaller factor than W is left as it is behind its factor.
    `calls` int32[T, 5] are start partition, partition count, factor, start index and shift; `ring_values` and
    `ring_racks` (codes below `rack_count`) int32[N]. Brokers without racks are in one rack: it has its replica at once.
    """
    size = np.uint64(ring_values.shape[0])
    # A ring of one broker has no followers, so it never steps.
    step_count = max(ONE, size - ONE)
    step_growth = np.uint64(rack_count) % step_count
    rack_total = np.uint64(rack_count)
    row_of_rack = np.full(rack_count, -1, np.int32)
    row_of_broker = np.full(ring_values.shape[0], -1, np.int32)
    row = ZERO
    for call in range(calls.shape[0]):
        start_partition = np.uint64(calls[call, 0])
        end_row = row + np.uint64(calls[call, 1])
        factor = np.uint64(calls[call, 2])
        leader = (start_partition + np.uint64(calls[call, 3])) % size
        place_in_round = start_partition % size
        shift = np.uint64(calls[call, 4])
        if start_partition > ZERO and place_in_round == ZERO:
            shift += ONE
        first_step = shift * np.uint64(rack_count) % step_count
        while row < end_row:
            rows[row, ZERO] = ring_values[leader]
            mark = np.int32(row)
            row_of_broker[leader] = mark
            row_of_rack[np.uint64(ring_racks[leader])] = mark
            racks_used = ONE
            steps_until_leader = step_count - first_step
            position = leader + ONE + first_step
            if position >= size:
                position -= size
            column = ONE
            while column < factor:
                if racks_used < rack_total:
                    rack = np.uint64(ring_racks[position])
                    eligible = row_of_rack[rack] != mark
                    if eligible:
                        row_of_rack[rack] = mark
                        racks_used += ONE
                else:
                    eligible = row_of_broker[position] != mark
                if eligible:
                    row_of_broker[position] = mark
                    rows[row, column] = ring_values[position]
                    column += ONE
                position += ONE
                steps_until_leader -= ONE
                if steps_until_leader == ZERO:
                    steps_until_leader = step_count
                    position += ONE
                if position >= size:
                    position -= size
            leader += ONE
            if leader == size:
                leader = ZERO
            place_in_round += ONE
            if place_in_round == size:
                place_in_round = ZERO
                first_step += step_growth
                if first_step >= step_count:
                    first_step -= step_count
            row += ONE
