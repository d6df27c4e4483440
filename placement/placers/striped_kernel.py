"""Compute the striped placer's rows in one compiled loop that draws from java.util.Random.

Gives the rows of `placement.placers.striped.readable_rows`, which says why they are what they are,
and leaves the generator in the same state.

Source: Kafka metadata/placement/StripedReplicaPlacer, 4.0; java.util.Random, Java 17.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from broker.entropy import JAVA_INCREMENT, JAVA_MULTIPLIER

ZERO: Final = np.uint64(0)
ONE: Final = np.uint64(1)

STATE_MASK: Final = (1 << 48) - 1
INT32_MAX: Final = (1 << 31) - 1

RING: Final = 0
"""The segment of the ring."""

# What a list remembers, by column of `lists`; places are in `items`.
EPOCH: Final = 0
GIVEN_COUNT: Final = 1
FIRST: Final = 2  # Where it began in this epoch; of the ring, where it begins in this row.
END: Final = 3
LENGTH: Final = 4
COLUMN_COUNT: Final = 8  # One cache line.


def inverses_up_to(bound_max: int) -> Int64Array:
    """Return floor(2^32 / bound) + 1 for each bound, to compute the quotient of a 31-bit number."""
    inverses = np.empty(bound_max + 1, np.int64)
    for bound in range(1, bound_max + 1):
        inverses[bound] = (1 << 32) // bound + 1
    return inverses


def next_below(state: int, bound: int, inverses: Int64Array) -> tuple[int, int]:
    """Return the generator's next state and `nextInt(bound)`."""
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


def begin_lists(lists: Int64Array, segment_starts: Int32Array, inverses: Int64Array, state: int) -> int:
    """Reset every list for a call and draw its offset, the ring of racks last; return the generator's state."""
    for drawn_index in range(1, lists.shape[0] + 1):
        segment = drawn_index % lists.shape[0]
        start = segment_starts[segment]
        length = segment_starts[segment + 1] - start
        offset = 0
        if length > 0:
            state, offset = next_below(state, length, inverses)
        lists[segment, EPOCH] = 0
        lists[segment, GIVEN_COUNT] = 0
        lists[segment, FIRST] = start + offset
        lists[segment, END] = start + length
        lists[segment, LENGTH] = length
    return state


def shuffle_lists(items: Int32Array, segment_starts: Int32Array, inverses: Int64Array, state: int) -> int:
    """Shuffle the ring of racks, then every list of brokers; return the generator's state."""
    for segment in range(segment_starts.shape[0] - 1):
        start = segment_starts[segment]
        for bound in range(segment_starts[segment + 1] - start, 1, -1):
            state, offset = next_below(state, bound, inverses)
            one, other = np.uint64(start + bound - 1), np.uint64(start + offset)
            items[one], items[other] = items[other], items[one]
    return state


def next_item(items: Int32Array, lists: Int64Array, segment: np.uint64, epoch: int) -> int:
    """Return the next item of a list in `epoch`, or -1 if the list has no item left."""
    given_count = lists[segment, GIVEN_COUNT]
    first = lists[segment, FIRST]
    length = lists[segment, LENGTH]
    end = lists[segment, END]
    if lists[segment, EPOCH] != epoch:
        lists[segment, EPOCH] = epoch
        given_count = 0
        first += 1
        if first >= end:
            first = end - length
        lists[segment, FIRST] = first
    if given_count == length:
        return -1
    lists[segment, GIVEN_COUNT] = given_count + 1
    place = first + given_count
    if place >= end:
        place -= length
    return int(items[np.uint64(place)])


def fill_row(row: Int32Array, factor: np.uint64, items: Int32Array, lists: Int64Array, epoch: int) -> None:
    """Choose a partition's leader, then its followers, by walking the ring of racks from its offset."""
    ring_start = np.uint64(lists[RING, FIRST])
    rack_count = np.uint64(lists[RING, END])
    place = ring_start
    while True:
        item = next_item(items, lists, np.uint64(items[place]), epoch)
        if item >= 0:
            break
        place += ONE
        if place == rack_count:
            place = ZERO
    row[ZERO] = item
    place_to_pass = place
    place = ring_start
    column = ONE
    while column < factor:
        if place == place_to_pass:
            place_to_pass = rack_count  # Passed once; no place is that.
        else:
            unfenced = np.uint64(items[place])
            item = next_item(items, lists, unfenced, epoch)
            if item < 0:
                item = next_item(items, lists, unfenced - ONE, epoch)
            if item >= 0:
                row[column] = item
                column += ONE
        place += ONE
        if place == rack_count:
            place = ZERO


@compiled_with(inverses_up_to, next_below, begin_lists, shuffle_lists, next_item, fill_row)
def fill_striped(
    rows: Int32Array,
    calls: Int32Array,
    initial_items: Int32Array,
    segment_starts: Int32Array,
    unfenced_count: int,
    state: int,
) -> int:
    """Fill `rows` int32[P, W] for `calls` int32[T, 2] (partition count, factor); return the generator's final state.

    A row of a smaller factor than W is left as it is behind its factor.
    `segment_starts` int32[S + 1] cuts `initial_items` int32[R + B], each segment in its order before any shuffle.
    At least one broker is unfenced, and no factor exceeds B.
    """
    items = np.empty_like(initial_items)
    lists = np.zeros((segment_starts.shape[0] - 1, COLUMN_COUNT), np.int64)
    inverses = inverses_up_to(initial_items.shape[0])
    row = ZERO
    for call in range(calls.shape[0]):
        items[:] = initial_items
        state = begin_lists(lists, segment_starts, inverses, state)
        epoch = 0
        end_row = row + np.uint64(calls[call, 0])
        factor = np.uint64(calls[call, 1])
        while row < end_row:
            if epoch == unfenced_count and unfenced_count > 1:
                state = shuffle_lists(items, segment_starts, inverses, state)
                epoch = 0
            fill_row(rows[row], factor, items, lists, epoch)
            epoch += 1
            lists[RING, FIRST] += 1
            if lists[RING, FIRST] == lists[RING, END]:
                lists[RING, FIRST] = 0
            row += ONE
    return state
