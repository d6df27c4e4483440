"""Define the allowed final bytes of each broker, and check that no placement is more even than their middle.

Bytes are taken as divisible, and a broker's share is its capacity, 1 where none is given. Brokers stand in blocks, the
fullest first; blocks 1..j hold the fewest bytes that the rules can leave on them, each broker by its share. The
tolerance t of a broker with mean m allows m (1 - t) to m (1 + t), and for goals that only drain or restore racks what
it had; both ends are moved to where sums of whole partitions can lie.

Source: ours; Frank & Murota, "Decreasing minimization on M-convex sets", Mathematical Programming, 2021, for blocks.
"""

from __future__ import annotations

import itertools
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int64Array
from placement.balance.loads import summed_by
from placement.planning.certificate import Proof, faults_of_blocks, least_within
from placement.planning.question import Question

MILLIONTHS: Final = 1_000_000
"""Tolerances are whole millionths."""


@attrs.frozen(eq=False)
class Pool:
    """Hold what sums of whole partitions can be: the sums of the k smallest and of the k greatest, int64[N + 1]."""

    smallest: Int64Array
    greatest: Int64Array
    divisor: int

    @classmethod
    def of_sizes(cls, sizes: Int64Array) -> Pool:
        """Return the pool of partitions of these sizes, each of which a broker may hold or not."""
        ordered = np.sort(sizes)
        sums = [np.concatenate([[0], np.cumsum(part)]).astype(np.int64) for part in (ordered, ordered[::-1])]
        return cls(sums[0], sums[1], int(np.gcd.reduce(sizes)) if sizes.size else 0)

    def inside(self, low: Int64Array, high: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return the least and the greatest sums from `low` to `high` that these bounds allow.

        The least is above the greatest where no sum lies there.
        """
        step, count = max(self.divisor, 1), self.smallest.size - 1
        most = np.searchsorted(self.smallest, high, side="right") - 1
        highest = np.minimum(high, self.greatest[np.maximum(most, 0)]) // step * step
        least = np.searchsorted(self.greatest, low, side="left")
        lowest = np.maximum(low, self.smallest[np.minimum(least, count)])
        lowest = -(-lowest // step) * step
        return np.where((low > 0) & (least <= count), lowest, low), np.where(high >= 0, highest, high)


@attrs.frozen(eq=False, kw_only=True)
class ByteBounds:
    """Hold the bytes that brokers shall end with: even ones within the tolerance, and those asked; int64[B] each."""

    even_low: Int64Array
    even_high: Int64Array
    low: Int64Array
    high: Int64Array


def block_totals(question: Question, block: Int64Array, count: int) -> Int64Array:
    """Return the bytes of each of `count` blocks, so that the first j hold the least that they can hold."""
    totals, before = [], 0
    for last in range(count):
        total = question.total if last == count - 1 else least_within(question, (block >= 0) & (block <= last))
        totals.append(total - before)
        before = total
    return np.array(totals, dtype=np.int64)


def are_ordered(totals: Int64Array, shares: Int64Array) -> bool:
    """Return whether bytes for each unit of a share never rise from block to block; `shares` are those of blocks."""
    pairs = list(zip(totals.tolist(), shares.tolist(), strict=True))
    return all(one[0] * two[1] >= two[0] * one[1] for one, two in itertools.pairwise(pairs))


def bounds_of(
    question: Question,
    block: Int64Array,
    totals: Int64Array,
    *,
    shares: Int64Array,
    tolerance: int,
    before: Int64Array | None,
) -> ByteBounds:
    """Return the bounds around the means of the blocks; `tolerance` in millionths.

    `before` int64[B] are the loads that may stay as uneven as they were, None where they may not.
    """
    live = question.live
    low, high = np.zeros(live.size, dtype=np.int64), np.zeros(live.size, dtype=np.int64)
    of_block = summed_by(block[live], shares[live], totals.size)
    for place in np.flatnonzero(live).tolist():
        number = int(block[place])
        mean, parts = int(totals[number]) * int(shares[place]), int(of_block[number]) * MILLIONTHS
        low[place] = -(-mean * (MILLIONTHS - tolerance) // parts)
        high[place] = mean * (MILLIONTHS + tolerance) // parts
    even_low, even_high = low, high
    if before is not None:
        low, high = np.minimum(low, before), np.maximum(high, before)
    assert question.weights is not None
    pool = Pool.of_sizes(question.weights[question.wanted > 0])
    inner, outer = pool.inside(low - question.base, high - question.base)
    return ByteBounds(
        even_low=even_low,
        even_high=even_high,
        low=np.where(live, inner + question.base, 0),
        high=np.where(live, outer + question.base, 0),
    )


def faults_of_byte_bounds(
    question: Question, proof: Proof, *, shares: Int64Array, tolerance: int, before: Int64Array
) -> list[str]:
    """Return what is wrong with bounds in bytes; `before` int64[B] are the bytes before the plan."""
    live = question.live
    of_block = summed_by(proof.block[live], shares[live], proof.totals.size)
    faults = faults_of_blocks(question, proof, of_block, in_order=are_ordered(proof.totals, of_block))
    if faults:
        return faults
    bounds = bounds_of(
        question,
        proof.block,
        proof.totals,
        shares=shares,
        tolerance=tolerance,
        before=None if proof.is_even else before,
    )
    for name, wanted in attrs.asdict(bounds).items():
        if not np.array_equal(getattr(proof, name)[live], wanted[live]):
            faults.append(f"{name} is not what was asked for")
    return faults
