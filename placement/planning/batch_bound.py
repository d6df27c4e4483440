"""Bound the time of batches that run one after the other from below, given how many moves a link has at a time.

How: a move is in one batch with all its links, so its batch lasts at least as long as the move takes: its time at the
slowest of its links. Number the batches of any schedule from the longest, T1 >= T2 >= ... A link has at most C =
`concurrency` moves in a batch, so j - 1 batches hold at most C (j - 1) of its moves, and one of its C (j - 1) + 1
longest is in a later one:

    Tj >= a(j) = max over links of the time of the move of rank C (j - 1) + 1

The later batches hold all but C j moves of a link at least, and last as long as the link is busy with these, and as
long as C of them take on average:

    T(j+1) + T(j+2) + ... >= b(j) = max over links of the link's seconds of all but the C j with most seconds, and of
                                    the time of all but the C j longest moves / C

So the batches take at least a(1) + ... + a(j) + b(j), for every j; j = 0 is the bound of any order.

Example: moves of 5 s and 3 s from broker 1, and of 5 s and 3 s to broker 2, one at a time: batches of 5 s and 3 s.

    >>> links, seconds = np.array([0, 0, 1, 1]), np.array([5.0, 3.0, 5.0, 3.0])
    >>> batched_seconds(links, seconds, seconds, concurrency=1)
    8.0

Two moves to broker 0 take 1 s there and 4 s elsewhere: one at a time that is 8 s, not 2.

    >>> batched_seconds(np.array([0, 0]), np.array([1.0, 1.0]), np.array([4.0, 4.0]), concurrency=1)
    8.0

Source: ours; with one move at a time, the bound of Kesselman & Kogan, "Nonpreemptive scheduling of optical switches",
IEEE Transactions on Communications, 2007.
"""

from __future__ import annotations

import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.planning.moves import FloatArray, Moves, Rates


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
    links, seconds = moves.links(), link_seconds(moves, rates)
    busy = links >= 0
    longest = np.broadcast_to(seconds.max(axis=1, initial=0.0)[:, None], links.shape)
    return batched_seconds(links[busy], seconds[busy], longest[busy], concurrency or max(moves.count, 1))


def batched_seconds(
    links: Int32Array | Int64Array, seconds: FloatArray, move_seconds: FloatArray, concurrency: int
) -> float:
    """Return the bound for the links of all moves, int[E], each busy for `seconds` float64[E]. Cost: O(E log E).

    `move_seconds` float64[E], no less, is the time of the whole move.
    """
    if not links.size:
        return 0.0
    mine, times, rank = by_rank(links, move_seconds)
    first = rank % concurrency == 0
    longest = np.zeros(int(rank.max()) // concurrency + 1, dtype=np.float64)
    np.maximum.at(longest, rank[first] // concurrency, times[first])
    before = np.concatenate([[0.0], np.cumsum(longest)])
    later = np.maximum(
        _rest(*by_rank(links, seconds), concurrency), _rest(mine, times, rank, concurrency) / concurrency
    )
    return float((before + later).max())


def by_rank(
    links: Int32Array | Int64Array, seconds: FloatArray
) -> tuple[Int32Array | Int64Array, FloatArray, Int64Array]:
    """Return links, seconds and rank of each, by link; the longest of a link is of rank 0."""
    order = np.lexsort((-seconds, links))
    mine = links[order]
    return mine, seconds[order], np.arange(mine.size) - np.searchsorted(mine, mine)


def _rest(links: Int32Array | Int64Array, seconds: FloatArray, rank: Int64Array, concurrency: int) -> FloatArray:
    """Return the most seconds of a link without its first 0, C, 2 C, ... moves, C being the concurrency."""
    batch = rank // concurrency
    count = int(batch.max()) + 1
    by_batch = np.argsort(batch, kind="stable")
    ends = np.searchsorted(batch[by_batch], np.arange(count + 1))
    rest, most = np.zeros(int(links.max()) + 1, dtype=np.float64), np.zeros(count + 1, dtype=np.float64)
    for each in range(count - 1, -1, -1):
        group = by_batch[ends[each] : ends[each + 1]]
        np.add.at(rest, links[group], seconds[group])
        most[each] = rest.max()
    return most
