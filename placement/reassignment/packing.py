"""Pack moves into batches of different lengths, so that large moves share a batch and its time is paid once.

What it decides: the batch of each move where a link has at most `concurrency` moves at a time and no disk limits.

How: moves go longest first, of equals those of the busiest brokers first, into the batch that they lengthen least. A
batch is given a length beforehand, up to which moves cost nothing: first a part of what it would take if each link
moved its longest first, so many at a time as it may; then the same for all batches. Each part is tried, as none is best
everywhere.

Example: from broker 0 to broker 1 moves of 5 and 3 s, from broker 2 to broker 3 too, one at a time: both of 5 s share a
batch, both of 3 s the next.

    >>> links = np.array([[1, 4], [1, 4], [3, 6], [3, 6]], dtype=np.int32)
    >>> seconds = np.array([[5.0, 5.0], [3.0, 3.0], [5.0, 5.0], [3.0, 3.0]])
    >>> pack_moves(np.array([0, 2, 1, 3]), links, seconds, np.zeros(2), 8, 1).tolist()
    [0, 1, 0, 1]

Left out: search for better batches afterwards.

Source: longest processing time first (Graham 1969); Kesselman & Kogan, "Nonpreemptive scheduling of optical switches",
IEEE Transactions on Communications, 2007.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from broker.cluster import Int64Array
from placement.reassignment.batch_bound import batched_bound, link_seconds
from placement.reassignment.batches_kernel import pack_moves
from placement.reassignment.moves import FloatArray, Moves, Rates

PARTS: Final = (0.8, 0.5)
"""Shares of the lower bound that are given to batches beforehand; on random plans less or more was slower."""


def packings(moves: Moves, rates: Rates, concurrency: int, least: int, batch_count_max: int) -> Iterator[Int64Array]:
    """Yield batches of each move, int64[M]; only such as have room for every move. Cost: O(moves x batches) each.

    `least` is the number of batches that the busiest link needs.
    """
    links, seconds = moves.links(), link_seconds(moves, rates)
    moves_of = np.bincount(links[links >= 0], minlength=2 * moves.broker_count)
    beside = np.where(links >= 0, moves_of[links], 0)
    order = np.lexsort((np.arange(moves.count), -beside.sum(axis=1), -beside.max(axis=1), -seconds.max(axis=1)))
    bound = batched_bound(moves, rates, concurrency)
    most = min(batch_count_max, 2 * least + 1)
    for lengths in _lengths(moves, seconds, concurrency, least, most) if np.isfinite(bound) else ():
        given = lengths * (bound / max(float(lengths.sum()), np.finfo(np.float64).tiny))
        for part in PARTS:
            batch_of = pack_moves(order, links, seconds, given * part, 2 * moves.broker_count, concurrency)
            if not (batch_of < 0).any():
                yield np.unique(batch_of, return_inverse=True)[1]


def _lengths(moves: Moves, seconds: FloatArray, concurrency: int, least: int, most: int) -> Iterator[FloatArray]:
    """Yield the lengths of up to `most` batches relative to each other, float64[most]."""
    links = moves.links()
    mine, times = links[links >= 0], seconds[links >= 0]
    order = np.lexsort((-times, mine))
    rank = np.arange(mine.size) - np.searchsorted(mine[order], mine[order])
    groups = np.zeros((2 * moves.broker_count, most), dtype=np.float64)
    np.add.at(groups, (mine[order], rank // concurrency), times[order])
    yield groups.max(axis=0, initial=0.0)
    for count in sorted({least, min(most, least * 5 // 4 + 1)}):
        yield (np.arange(most) < count).astype(np.float64)
