"""Choose which brokers are down in each draw, with weights that make rare outages count as they should.

What it decides: each broker is down with the same chance, alone and independently; of those that are down, each is lost
with its disks with a given chance. A draw is one state of the cluster. That three brokers of a hundred are down at one
time has a chance of one in 10^5, so a thousand plain draws would never see it. Draws are therefore made for each number
k of brokers down, about equally many for each, and weigh P(k) together (stratified sampling): estimates stay unbiased.

How: half of the draws follow P(k), half are equal for all k with P(k) above `TAIL`; k = 0 has one draw, as its draws
are all alike. Where that would be too many k, all draws are plain, of equal weight. Brokers of one k are taken from
random permutations, one after another, so that with k = 1 every broker has its turn.

Example: with two brokers that are down half of the time, one or both are down in three quarters of it:
    >>> drawn = strata(broker_count=2, down_chance=0.5, draw_count=13)
    >>> drawn.down_count.tolist(), round(float(drawn.weight[drawn.down_count > 0].sum()), 9)
    ([0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2], 0.75)

Left out: brokers that fail because another did; racks and power cuts are events of their own (availability.py).

Source: Cochran, Sampling Techniques, 3rd ed., chapter 5.
"""

from __future__ import annotations

import functools
import math
from typing import Final, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from placement.risks.draws_kernel import fill_down
from placement.risks.streams import WordArray

Float64Array: TypeAlias = NDArray[np.float64]
TAIL: Final = 1e-12
WORD_DRAWS: Final = 64
DRAWS_MIN: Final = 64
DRAWS_MAX: Final = 1 << 20
_STRATA_SHARE: Final = 4  # Fewer draws than so many a stratum are plain draws.


@attrs.frozen(eq=False)
class Strata:
    """Hold how many brokers are down in each draw, int32[N] ascending, and the weight of each, float64[N]."""

    down_count: Int32Array
    weight: Float64Array


@attrs.frozen(eq=False)
class Draws:
    """Hold the draws as bits, 64 a word: uint64[B, W] for brokers that are down, and for those that are lost.

    Draw i is bit i % 64 of word i // 64; `strata` has its weight. Bits after the last draw are 0.
    """

    down: WordArray
    lost: WordArray
    strata: Strata


@functools.lru_cache(maxsize=256)
def strata(*, broker_count: int, down_chance: float, draw_count: int, least: int = 1) -> Strata:
    """Return how many of the brokers are down in each of `draw_count` draws; each number has `least` draws or more."""
    chances = binomial(broker_count, down_chance)
    numbers = np.flatnonzero(chances > TAIL)
    counts = _shares(numbers, chances[numbers], draw_count, least)
    if counts is None:
        edges = np.cumsum(chances)
        places = (np.arange(draw_count) + 0.5) / draw_count
        plain = np.minimum(np.searchsorted(edges, places * edges[-1]), broker_count).astype(np.int32)
        return Strata(plain, np.full(draw_count, 1 / draw_count))
    weights = chances[numbers] / chances[numbers].sum() / counts
    return Strata(np.repeat(numbers, counts).astype(np.int32), np.repeat(weights, counts))


def _shares(numbers: Int64Array, chances: Float64Array, draw_count: int, least: int) -> Int64Array | None:
    """Return the number of draws for each number of brokers down; None if there are too few draws for so many."""
    if numbers.size * max(_STRATA_SHARE, least) > draw_count and numbers.size > 1:
        return None
    same = numbers == 0
    counts = np.where(same, least, 0)
    others = np.flatnonzero(~same)
    if not others.size:
        return counts
    left = draw_count - int(counts.sum()) - least * others.size
    wanted = left * (0.5 * chances[others] / chances[others].sum() + 0.5 / others.size)
    more = np.floor(wanted).astype(np.int64)
    more[np.argsort(more - wanted, kind="stable")[: left - int(more.sum())]] += 1
    counts[others] = least + more
    return counts.astype(np.int64)


def binomial(count: int, chance: float) -> Float64Array:
    """Return the chance of each number 0..count of successes, float64[count + 1].

    >>> binomial(2, 0.5).tolist()
    [0.25, 0.5, 0.25]
    """
    if chance <= 0 or chance >= 1:
        sure = np.zeros(count + 1)
        sure[count if chance >= 1 else 0] = 1.0
        return sure
    whole = math.lgamma(count + 1)
    logs = [
        whole - math.lgamma(k + 1) - math.lgamma(count - k + 1) + k * math.log(chance)
        + (count - k) * math.log1p(-chance)
        for k in range(count + 1)
    ]  # fmt: skip
    chances: Float64Array = np.round(np.exp(np.array(logs)), 15)
    return chances


def draw(chosen: Strata, *, broker_count: int, lost_chance: float, seed: int) -> Draws:
    """Return the brokers that are down in each draw; each of them is lost with the chance `lost_chance`."""
    word_count = -(-chosen.down_count.size // WORD_DRAWS)
    down = np.zeros((broker_count, word_count), dtype=np.uint64)
    lost = np.zeros_like(down)
    stream = np.array([seed & (1 << 64) - 1], dtype=np.uint64)
    fill_down(stream, chosen.down_count, lost_chance, down, lost)
    return Draws(down, lost, chosen)
