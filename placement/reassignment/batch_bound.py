"""Bound the time of batches that run one after the other from below, given how many moves a link has at a time.

What it decides: the seconds that no schedule in batches beats, however many batches it has. Without a concurrency that
is the bound of any order (placement/reassignment/moves.py).

How: number the batches of any schedule from the longest, T1 >= T2 >= ... A link has at most C = `concurrency` moves in
a batch, so j - 1 batches hold at most C (j - 1) of its moves, and one of its C (j - 1) + 1 longest is in a later one:

    Tj >= a(j) = max over links of the time of the move of rank C (j - 1) + 1
    T(j+1) + T(j+2) + ... >= b(j) = max over links of the time of all but the C j longest moves

So the batches take at least a(1) + ... + a(j) + b(j), for every j; j = 0 is the bound of any order.

Example: moves of 5 s and 3 s from broker 1, and of 5 s and 3 s to broker 2, one at a time: batches of 5 s and 3 s.

    >>> batched_seconds(np.array([0, 0, 1, 1]), np.array([5.0, 3.0, 5.0, 3.0]), concurrency=1)
    8.0
    >>> batched_seconds(np.array([0, 0, 1]), np.array([1.0, 1.0, 9.0]), concurrency=1)
    10.0

Left out: that the links of one move are in one batch, which makes some schedules longer still.

Source: ours; with one move at a time, the bound of Kesselman & Kogan, "Nonpreemptive scheduling of optical switches",
IEEE Transactions on Communications, 2007.
"""

from __future__ import annotations

import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.reassignment.moves import FloatArray, Moves, Rates


def link_seconds(moves: Moves, rates: Rates) -> FloatArray:
    """Return how long each move keeps each of its links busy, float64[M, W + 1]; 0 where there is no link."""
    links = moves.links()
    copies = np.ones(links.shape, dtype=np.int64)
    copies[:, -1] = moves.counts
    per_second = np.concatenate([rates.bytes_in, rates.bytes_out])
    with np.errstate(divide="ignore", invalid="ignore"):
        taken = moves.sizes[:, None] * copies / per_second[links]
    return np.where((links >= 0) & (moves.sizes[:, None] > 0), taken, 0.0)


def batched_bound(moves: Moves, rates: Rates, concurrency: int | None) -> float:
    """Return the seconds that no batches of at most `concurrency` moves a link beat; None is no limit."""
    links = moves.links()
    busy = links >= 0
    return batched_seconds(links[busy], link_seconds(moves, rates)[busy], concurrency or max(moves.count, 1))


def batched_seconds(links: Int32Array | Int64Array, seconds: FloatArray, concurrency: int) -> float:
    """Return the bound for the links of all moves, int[E], each busy for `seconds` float64[E]. Cost: O(E log E)."""
    if not links.size:
        return 0.0
    order = np.lexsort((-seconds, links))
    mine, times = links[order], seconds[order]
    rank = np.arange(mine.size) - np.searchsorted(mine, mine)
    batch = rank // concurrency
    count = int(batch.max()) + 1
    longest = np.zeros(count, dtype=np.float64)
    np.maximum.at(longest, batch[rank % concurrency == 0], times[rank % concurrency == 0])
    by_batch = np.argsort(batch, kind="stable")
    ends = np.searchsorted(batch[by_batch], np.arange(count + 1))
    # From the last group of moves to the first: what each link still has to move after j batches.
    rest, bound = np.zeros(int(mine.max()) + 1, dtype=np.float64), float(longest.sum())
    for j in range(count - 1, -1, -1):
        group = by_batch[ends[j] : ends[j + 1]]
        np.add.at(rest, mine[group], times[group])
        bound = max(bound, float(longest[:j].sum() + rest.max()))
    return bound
