"""Draw which brokers are down, stratified by their number, so that rare outages are seen.

Draws are made for each number k of brokers down and weigh P(k) together: estimates stay unbiased. Half of the draws
follow P(k), half are equal for all k with P(k) above `TAIL`; where that would be too many k, all draws have equal
weight. Brokers of one k are taken from random permutations, one after another.

    >>> drawn = strata(broker_count=2, down_chance=0.5, draw_count=13)
    >>> drawn.down_count.tolist(), round(float(drawn.weight[drawn.down_count > 0].sum()), 9)
    ([0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2], 0.75)

Source: Cochran, Sampling Techniques, 3rd ed., chapter 5; `broker.entropy.SplitMix64` for the random words.
"""

from __future__ import annotations

import functools
import math
from typing import Final, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with

Float64Array: TypeAlias = NDArray[np.float64]
WordArray: TypeAlias = NDArray[np.uint64]
TAIL: Final = 1e-12
WORD_DRAWS: Final = 64
DRAWS_MIN: Final = 64
DRAWS_MAX: Final = 1 << 20
_STRATA_SHARE: Final = 4  # Fewer draws than so many a stratum are of equal weight.


@attrs.frozen(eq=False)
class Strata:
    """Hold how many brokers are down in each draw, int32[N] ascending, and the weight of each, float64[N]."""

    down_count: Int32Array
    weight: Float64Array


@attrs.frozen(eq=False)
class Draws:
    """Hold the draws as bits, 64 per word: uint64[B, W] for brokers down, and for brokers lost.

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
        equal = np.minimum(np.searchsorted(edges, places * edges[-1]), broker_count).astype(np.int32)
        return Strata(equal, np.full(draw_count, 1 / draw_count))
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


def next_word(stream: WordArray) -> np.uint64:
    """Return the next 64 random bits."""
    stream[0] += np.uint64(0x9E3779B97F4A7C15)
    word = stream[0]
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.uint64 = word ^ (word >> np.uint64(31))
    return mixed


def next_chance(stream: WordArray) -> float:
    """Return a number between 0 and 1, neither included."""
    return (float(next_word(stream) >> np.uint64(11)) + 0.5) * 1.1102230246251565e-16


def next_below(stream: WordArray, bound: int) -> int:
    """Return a number in 0..bound-1; `bound` is below 2^31, so that none is likelier by more than one part in 2^32."""
    return int(((next_word(stream) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


def next_wait(stream: WordArray, mean: float) -> float:
    """Return an exponentially distributed time with this mean."""
    return -mean * math.log(next_chance(stream))


@compiled_with(next_word, next_chance, next_below)
def fill_down(stream: WordArray, down_count: Int32Array, lost_chance: float, down: WordArray, lost: WordArray) -> None:
    """Set in `down` and `lost`, uint64[B, W], the bits of the brokers of each draw; `down_count` says how many."""
    broker_count = down.shape[0]
    order = np.arange(broker_count)
    taken = broker_count
    for draw in range(down_count.shape[0]):
        wanted = down_count[draw]
        if broker_count - taken < wanted:
            for place in range(broker_count - 1, 0, -1):
                other = next_below(stream, place + 1)
                order[place], order[other] = order[other], order[place]
            taken = 0
        bit = np.uint64(1) << np.uint64(draw & 63)
        for place in range(taken, taken + wanted):
            broker = order[place]
            down[broker, draw >> 6] |= bit
            if lost_chance > 0.0 and next_chance(stream) < lost_chance:
                lost[broker, draw >> 6] |= bit
        taken += wanted


def draw(chosen: Strata, *, broker_count: int, lost_chance: float, seed: int) -> Draws:
    """Return the brokers that are down in each draw; each of them is lost with the chance `lost_chance`."""
    word_count = -(-chosen.down_count.size // WORD_DRAWS)
    down = np.zeros((broker_count, word_count), dtype=np.uint64)
    lost = np.zeros_like(down)
    stream = np.array([seed & (1 << 64) - 1], dtype=np.uint64)
    fill_down(stream, chosen.down_count, lost_chance, down, lost)
    return Draws(down, lost, chosen)
