"""The striped placer's rows, fast: one compiled loop that goes on drawing from java.util.Random.

Gives the rows of `placement.striped.readable_rows`, which says why they are what they are,
and leaves the generator in the same state.

How
Everything that is ever shuffled lies in one array, `items`, cut into segments: segment 0
holds the racks in the order of their stripe; 1 + 2·r and 2 + 2·r hold the fenced and the unfenced
brokers of rack r, racks numbered in hash order. A shuffle of all is thus one pass over the
segments, in order. A remainder by the shrinking bound of a shuffle costs more than the rest of a
draw, so the quotient is guessed by multiplication and put right. What a list remembers lies
in one row of `lists`, one cache line. Indexes are unsigned, as numba else asks of each whether
it counts from the end.

Cost: rows · factor, and a shuffle of all brokers for each round of as many rows.

Source: Kafka metadata/placement/StripedReplicaPlacer, 4.0; java.util.Random, Java 17.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from broker.cluster import Int32Array
from broker.entropy import JAVA_INCREMENT, JAVA_MULTIPLIER
from placement.kernels.compiled import compiled

ZERO: Final = np.uint64(0)
ONE: Final = np.uint64(1)
TWO: Final = np.uint64(2)

STATE_MASK: Final = (1 << 48) - 1
INT32_MAX: Final = (1 << 31) - 1

# What a list remembers, by column of `lists`; `FIRST` is where this epoch began, places are in `items`.
EPOCH: Final = 0
LEFT_COUNT: Final = 1
NEXT: Final = 2
FIRST: Final = 3
START: Final = 4
END: Final = 5
COLUMN_COUNT: Final = 8


@compiled
def fill_striped(
    rows: Int32Array,
    calls: Int32Array,
    initial_items: Int32Array,
    segment_starts: Int32Array,
    unfenced_count: int,
    state: int,
) -> int:
    """Fill `rows` int32[P, W] and return the generator's state after all `calls` int32[T, 2]: partition count, factor.

    A row of a smaller factor than W is left as it is behind its factor.
    `segment_starts` int32[S + 1] cuts `initial_items` int32[R + B], each segment in its order before any shuffle.
    At least one broker is unfenced, and no factor exceeds B.
    """
    items = np.empty_like(initial_items)
    segment_count = segment_starts.shape[0] - 1
    rack_count = np.uint64(segment_starts[1])
    lists = np.zeros((segment_count, COLUMN_COUNT), np.int32)
    # floor(2^32 / bound) + 1: times a 31-bit number, the high half is its quotient by bound, or one more.
    inverses = np.empty(initial_items.shape[0] + 1, np.int64)
    for bound in range(1, inverses.shape[0]):
        inverses[bound] = (1 << 32) // bound + 1

    def next_below(state: int, bound: int) -> tuple[int, int]:
        while True:
            state = (state * JAVA_MULTIPLIER + JAVA_INCREMENT) & STATE_MASK
            drawn = state >> 17
            if bound & (bound - 1) == 0:
                return state, (bound * drawn) >> 31
            value = drawn - ((drawn * inverses[np.uint64(bound)]) >> 32) * bound
            if value < 0:
                value += bound
            if drawn - value + (bound - 1) <= INT32_MAX:
                return state, value

    def next_item(segment: np.uint64, epoch: int) -> int:
        memory = lists[segment]
        if memory[EPOCH] != epoch:
            memory[EPOCH] = epoch
            memory[LEFT_COUNT] = memory[END] - memory[START]
            memory[FIRST] += 1
            if memory[FIRST] >= memory[END]:
                memory[FIRST] = memory[START]
            memory[NEXT] = memory[FIRST]
        if memory[LEFT_COUNT] == 0:
            return -1
        memory[LEFT_COUNT] -= 1
        place = memory[NEXT]
        memory[NEXT] = memory[START] if place + 1 == memory[END] else place + 1
        return int(items[np.uint64(place)])

    row = ZERO
    for call in range(calls.shape[0]):
        items[:] = initial_items
        # The ring of racks, segment 0, is drawn last.
        for drawn_index in range(1, segment_count + 1):
            segment = drawn_index % segment_count
            start, end = segment_starts[segment], segment_starts[segment + 1]
            offset = 0
            if end > start:
                state, offset = next_below(state, end - start)
            lists[segment, EPOCH] = 0
            lists[segment, LEFT_COUNT] = end - start
            lists[segment, NEXT] = lists[segment, FIRST] = start + offset
            lists[segment, START] = start
            lists[segment, END] = end
        ring_place = np.uint64(lists[0, FIRST])
        epoch = 0
        end_row = row + np.uint64(calls[call, 0])
        factor = np.uint64(calls[call, 1])
        while row < end_row:
            if epoch == unfenced_count and unfenced_count > 1:
                for segment in range(segment_count):
                    start = segment_starts[segment]
                    for bound in range(segment_starts[segment + 1] - start, 1, -1):
                        state, offset = next_below(state, bound)
                        one, other = np.uint64(start + bound - 1), np.uint64(start + offset)
                        items[one], items[other] = items[other], items[one]
                epoch = 0
            if ring_place == rack_count:
                ring_place = ZERO
            place = ring_place
            while True:
                item = next_item(TWO + TWO * np.uint64(items[place]), epoch)
                if item >= 0:
                    break
                place += ONE
                if place == rack_count:
                    place = ZERO
            rows[row, ZERO] = item
            leader_place = place
            leader_rack_passed = False
            place = ring_place
            column = ONE
            while column < factor:
                if place == leader_place and not leader_rack_passed:
                    leader_rack_passed = True
                else:
                    unfenced = TWO + TWO * np.uint64(items[place])
                    item = next_item(unfenced, epoch)
                    if item < 0:
                        item = next_item(unfenced - ONE, epoch)
                    if item >= 0:
                        rows[row, column] = item
                        column += ONE
                place += ONE
                if place == rack_count:
                    place = ZERO
            epoch += 1
            ring_place += ONE
            row += ONE
    return state
