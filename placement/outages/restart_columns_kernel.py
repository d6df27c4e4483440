"""Solve the program over batches that bounds a schedule from below, and look for batches that improve it, compiled.

How: `enter_columns` is the revised simplex method with an explicit inverse, over the batches known so far; the one that
weighs most at the present prices enters the basis. `find_heavy` is a tabu search for heavy batches: each turn adds the
broker that gains most and takes out those that clash with it, which may not come back for a while.

Source: Dantzig & Orchard-Hays, "The product form for the inverse in the simplex method", 1954; Wu, Hao & Glover,
"Multi-neighborhood tabu search for the maximum weight clique problem", Annals of Operations Research, 2012.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from placement.outages.restart_search_kernel import ByteArray

FloatArray: TypeAlias = NDArray[np.float64]
EPSILON: Final = 1e-7


def most_gaining(prices: FloatArray, columns: Int32Array) -> tuple[int, float]:
    """Return the column that weighs most above 1, and by how much; -1 - b for a broker b of a negative price."""
    most, entering = EPSILON, columns.shape[0]
    for column in range(columns.shape[0]):
        gain = -1.0
        for broker in columns[column]:
            if broker < 0:
                break
            gain += prices[broker]
        if gain > most:
            most, entering = gain, column
    for broker in range(prices.shape[0]):
        if -prices[broker] > most:
            most, entering = -prices[broker], -1 - broker
    return entering, most


def leaving_row(values: FloatArray, direction: FloatArray) -> int:
    """Return the row of the basis that reaches 0 first; of nearly equal ones the one with the largest pivot."""
    least, leaving = np.inf, -1
    for row in range(values.shape[0]):
        if direction[row] > EPSILON:
            least = min(least, values[row] / direction[row])
    for row in range(values.shape[0]):
        first = direction[row] > EPSILON and values[row] / direction[row] <= least + EPSILON * EPSILON
        if first and (leaving < 0 or direction[row] > direction[leaving]):
            leaving = row
    return leaving


@compiled_with(most_gaining, leaving_row)
def enter_columns(
    inverse: FloatArray,
    values: FloatArray,
    prices: FloatArray,
    basis: Int64Array,
    columns: Int32Array,
    pivots_max: int,
) -> int:
    """Bring the basis to the optimum of the program over `columns`; return the number of pivots.

    `inverse` float64[N, N] is the inverse of the basis, `values` float64[N] the weights of its columns, `prices`
    float64[N] those of the brokers, `basis` int64[N] the rows of `columns` that it is made of. `columns` int32[M, W]
    are the brokers of each batch, -1 pads. A broker may be in several batches: a column that takes a broker b out of
    one, -1 - b, costs nothing and keeps prices from being negative.
    """
    direction = np.zeros(prices.shape[0])
    for pivots in range(pivots_max):
        entering, gain = most_gaining(prices, columns)
        if entering == columns.shape[0]:
            return pivots
        direction[:] = 0
        if entering < 0:
            direction -= inverse[:, -1 - entering]
        else:
            for broker in columns[entering]:
                if broker < 0:
                    break
                direction += inverse[:, broker]
        leaving = leaving_row(values, direction)
        if leaving < 0:
            return pivots
        step = values[leaving] / direction[leaving]
        pivot = inverse[leaving] / direction[leaving]
        for row in range(values.shape[0]):
            if row != leaving and direction[row] != 0:
                for column in range(values.shape[0]):
                    inverse[row, column] -= direction[row] * pivot[column]
                values[row] = max(values[row] - step * direction[row], 0.0)
        inverse[leaving] = pivot
        values[leaving] = step
        basis[leaving] = entering
        prices -= gain * pivot
    return pivots_max


def open_to(
    broker: int, hyperedge_of: Int32Array, held: Int32Array, budget: Int32Array, size: int, batch_max: int, beside: int
) -> bool:
    """Return whether a batch takes a broker once those that clash with it, of the weight `beside`, are out."""
    full = size >= batch_max and beside == 0
    for edge in hyperedge_of[broker]:
        full = full or (edge >= 0 and held[edge] >= budget[edge])
    return not full


def change(
    broker: int, sign: int, weight: int, clash: ByteArray, edges: Int32Array, held: Int32Array, beside: Int64Array
) -> None:
    """Add a broker to the batch, or take it out with `sign` -1: update the weight beside others and its hyperedges."""
    for other in range(beside.shape[0]):
        if clash[broker, other]:
            beside[other] += sign * weight
    for edge in edges:
        if edge >= 0:
            held[edge] += sign


@compiled_with(open_to, change)
def find_heavy(
    tables: tuple[ByteArray, Int32Array, Int32Array],
    batch_max: int,
    weights: Int64Array,
    least: int,
    turns: int,
    start: int,
    found: ByteArray,
) -> int:
    """Fill uint8[R, N] with batches that weigh more than `least`; return how many. Cost: O(turns x N).

    It begins with the broker `start`, whatever it weighs; with the heaviest if that is negative.
    """
    clash, hyperedge_of, budget = tables
    count = weights.shape[0]
    inside, barred_until = np.zeros(count, np.uint8), np.zeros(count, np.int64)
    beside, held = np.zeros(count, np.int64), np.zeros(budget.shape[0], np.int32)
    weight, heaviest, size, kept = np.int64(0), np.int64(0), 0, 0
    state = np.uint64(start + 1)
    for turn in range(turns):
        chosen, most = -1, -(np.int64(1) << 62)
        for broker in range(count):
            if inside[broker] or weights[broker] == 0:
                continue
            gain = weights[broker] - beside[broker]
            if barred_until[broker] > turn and weight + gain <= heaviest:
                continue
            if gain > most and open_to(broker, hyperedge_of, held, budget, size, batch_max, beside[broker]):
                chosen, most = broker, gain
        if turn == 0 and start >= 0:
            chosen, most = start, np.int64(1)
        if most <= 0 and weight > least and kept < found.shape[0]:
            found[kept] = inside
            kept += 1
        heaviest = max(heaviest, weight)
        lightest = -1
        for out in range(count):
            if inside[out] and (lightest < 0 or weights[out] < weights[lightest]):
                lightest = out
        for out in range(count):
            if inside[out] and (clash[chosen, out] if chosen >= 0 else out == lightest):
                inside[out] = 0
                size -= 1
                weight -= weights[out]
                change(out, -1, weights[out], clash, hyperedge_of[out], held, beside)
                state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                barred_until[out] = turn + 4 + np.int64((state >> np.uint64(33)) % np.uint64(7))
        if chosen >= 0:
            inside[chosen] = 1
            size += 1
            weight += weights[chosen]
            change(chosen, 1, weights[chosen], clash, hyperedge_of[chosen], held, beside)
    return kept
