"""Make cluster k of a fleet from the fleet's seed and k alone.

Goals, most important first: (1) the same cluster in every process, whatever the partitioning of the work, the master
and the engine; (2) a cluster of 10,000 partitions in tens of microseconds, so that placing it is what costs.

How: k's seed is derive(fleet seed, k). A few words of its SplitMix64 stream choose the shape, the number of brokers and
topics, and how many brokers are fenced or have no rack; a second stream, derive(fleet seed, k, 1), gives one word a
broker for the order in which racks are dealt, one for the order of fencing, and four a topic: partitions, factor, size
of a replica, growth. A word chooses among n by its high half times n, shifted back: each choice is as likely as the
next but for one part in 2^32 / n. Brokers are shared out over racks by the plan's sizes, largest remainder first; a
rack that would get none takes one from the largest. A share of brokers (fenced, unracked) that is not whole is rounded
up with the chance of its fraction. At least as many brokers stay unfenced as the largest factor
needs, and one broker a rack keeps its rack.

Sizes are drawn from 4,096 parts of equal chance by twelve bits of a word, so that no platform's exp or log makes two
machines differ. The quantile at its middle stands for each part, rounded to six digits and whole bytes; it is computed
in decimal arithmetic, which is correctly rounded everywhere; only the normal quantile itself is the C library's,
rounded to nine digits before use.

    fixed       every size is the median
    lognormal   median · exp(sigma · z), z the normal quantile: at most z = ±3.67
    pareto      median · (2 · (1 - u))^(-1 / alpha): the smallest is median / 2^(1 / alpha)

Example:
    >>> from spark_analysis.fleet.reading import load_recipe
    >>> cluster = make_cluster(Fleet.of(load_recipe("uneven-racks")), 7)
    >>> cluster.broker_count, cluster.topic_count, cluster.rack_names
    (20, 200, ('rack-01', 'rack-02', 'rack-03'))

Left out: gaps in broker ids; the ids of a simulated cluster's brokers are 0, 1, 2, …

Source: `broker.entropy` for the generator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from statistics import NormalDist
from typing import Final, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from spark_analysis.fleet.recipe import RackPlan, Recipe, Shape, SizeLaw, Span

WordArray: TypeAlias = NDArray[np.uint64]

NO_RACK: Final = -1
_HEAD_WORD_COUNT: Final = 5
_BODY_STREAM: Final = 1
PART_COUNT: Final = 4_096
PART_BITS: Final = 12
_EXACT: Final = Context(prec=20, rounding=ROUND_HALF_EVEN)
_SIX_DIGITS: Final = Context(prec=6, rounding=ROUND_HALF_EVEN)
GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
"""What SplitMix64 adds to its state for each word."""


@attrs.frozen(kw_only=True, eq=False)
class SimulatedCluster:
    """Hold a cluster before its topics are placed.

    Shapes: `rack_index` int32[B], -1 without a rack; `fenced` bool[B]; `partition_counts` (at creation), `grown_counts`
    (at the end) and `factors` int32[T]; `size_bytes` int64[T], the bytes of one replica, or None.
    """

    number: int
    shape: Shape
    rack_names: tuple[str, ...]
    rack_index: Int32Array
    fenced: NDArray[np.bool_]
    partition_counts: Int32Array
    grown_counts: Int32Array
    factors: Int32Array
    size_bytes: Int64Array | None

    @property
    def broker_count(self) -> int:
        """Return the number of registered brokers; their ids are 0 to broker_count - 1."""
        return int(self.rack_index.shape[0])

    @property
    def topic_count(self) -> int:
        """Return the number of topics."""
        return int(self.factors.shape[0])


@attrs.frozen(eq=False)
class ShapePlan:
    """Hold a shape and its choices as columns, computed once per fleet.

    `partitions` int32[n]; `factors` int32[m] and `factor_edges` int64[m], the sums of their weights; `sizes`
    int64[4096] of quantiles, or empty; growth has a chance of `growth_chance` in 2^53.
    """

    shape: Shape
    rack_names: tuple[str, ...]
    partitions: Int32Array
    factors: Int32Array
    factor_edges: Int64Array
    sizes: Int64Array
    growth_chance: int
    growth_times: int

    @classmethod
    def of(cls, shape: Shape) -> ShapePlan:
        """Return the columns of a shape."""
        factors = np.array(shape.topics.factors, dtype=np.int64)
        growth = shape.growth
        return cls(
            shape=shape,
            rack_names=tuple(f"rack-{index + 1:02d}" for index in range(len(shape.racks.sizes))),
            partitions=np.array(shape.topics.partitions, dtype=np.int32),
            factors=factors[:, 0].astype(np.int32),
            factor_edges=np.cumsum(factors[:, 1]),
            sizes=np.empty(0, dtype=np.int64) if shape.sizes is None else quantiles(shape.sizes),
            growth_chance=0 if growth is None else int(growth.topics * 2**53),
            growth_times=1 if growth is None else growth.times,
        )


@attrs.frozen(eq=False)
class Fleet:
    """Hold a recipe with the choices of its shapes as columns, from which executors make clusters.

    `weights` int64[S] are those of the shapes, `spans` int64[S, 4] the least and the number of choices of brokers, then
    of topics.
    """

    recipe: Recipe
    plans: tuple[ShapePlan, ...]
    weights: Int64Array
    spans: Int64Array

    @classmethod
    def of(cls, recipe: Recipe) -> Fleet:
        """Return the fleet of a recipe."""
        shapes = recipe.shapes
        spans = [[end for span in (shape.brokers, shape.topics.count) for end in _choices(span)] for shape in shapes]
        return cls(
            recipe,
            tuple(ShapePlan.of(shape) for shape in shapes),
            np.array([shape.weight for shape in shapes], dtype=np.int64),
            np.array(spans, dtype=np.int64),
        )


def _choices(span: Span) -> tuple[int, int]:
    return span.low, span.high - span.low + 1


def _mixed(states: WordArray) -> WordArray:
    """Return the output words of SplitMix64 in these states."""
    states = (states ^ (states >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    states = (states ^ (states >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return states ^ (states >> np.uint64(31))


def seeds_of(seed: int, numbers: Int64Array, *keys: int) -> WordArray:
    """Return derive(seed, number, *keys) of broker.entropy for each number, uint64[n]."""
    word = _mixed(np.array([seed], dtype=np.uint64) + GAMMA)
    for key in (numbers, *(np.array([key]) for key in keys)):
        word = _mixed((word + GAMMA) ^ _mixed(key.astype(np.uint64) + GAMMA))
    return word >> np.uint64(1)


def words(seeds: WordArray, count: int) -> WordArray:
    """Return the first `count` 64-bit words of SplitMix64 for each of n seeds, uint64[n, count]."""
    return _mixed(seeds[:, None] + GAMMA * np.arange(1, count + 1, dtype=np.uint64))


def choose(drawn: WordArray, bound: int | Int64Array) -> Int64Array:
    """Return a number in 0..bound-1 for each random word; bounds are below 2^31."""
    bounds = np.asarray(bound).astype(np.uint64)
    return (((drawn >> np.uint64(32)) * bounds) >> np.uint64(32)).astype(np.int64)


def choose_weighted(drawn: WordArray, weights: Int64Array) -> Int64Array:
    """Return an index into `weights` for each random word; the chance of an index is proportional to its weight."""
    edges = np.cumsum(weights)
    return np.searchsorted(edges, choose(drawn, int(edges[-1])), side="right").astype(np.int64)


def make_cluster(fleet: Fleet, number: int) -> SimulatedCluster:
    """Return cluster `number` of the fleet. The cost is linear in brokers and topics."""
    return next(make_clusters(fleet, [number]))


def make_clusters(fleet: Fleet, numbers: Sequence[int]) -> Iterator[SimulatedCluster]:
    """Yield the clusters of these numbers, equal to those of `make_cluster`, at a part of the cost."""
    places = np.array(numbers, dtype=np.int64)
    heads = words(seeds_of(fleet.recipe.seed, places), _HEAD_WORD_COUNT)
    bodies = seeds_of(fleet.recipe.seed, places, _BODY_STREAM)
    shapes = choose_weighted(heads[:, 0], fleet.weights)
    spans = fleet.spans[shapes]
    broker_counts = spans[:, 0] + choose(heads[:, 1], spans[:, 1])
    topic_counts = spans[:, 2] + choose(heads[:, 2], spans[:, 3])
    rows = zip(numbers, shapes.tolist(), broker_counts.tolist(), topic_counts.tolist(), heads.tolist(), strict=True)
    for row, (number, shape, broker_count, topic_count, head) in enumerate(rows):
        plan = fleet.plans[shape]
        body = words(bodies[row : row + 1], 2 * broker_count + 4 * topic_count)[0]
        rack_words, fence_words = body[:broker_count], body[broker_count : 2 * broker_count]
        drawn, size_bytes = _topics(plan, body[2 * broker_count :].reshape(topic_count, 4))
        yield SimulatedCluster(
            number=number,
            shape=plan.shape,
            rack_names=plan.rack_names,
            rack_index=_racks(plan.shape.racks, rack_words, head[4]),
            fenced=_fenced(plan.shape, fence_words, head[3]),
            partition_counts=drawn[0],
            grown_counts=drawn[1],
            factors=drawn[2],
            size_bytes=size_bytes if plan.sizes.size else None,
        )


def _topics(plan: ShapePlan, drawn: WordArray) -> tuple[Int32Array, Int64Array]:
    """Return partition counts, grown counts and factors, int32[3, T], and sizes, int64[T] if there are any.

    Partition counts are equally likely; sizes are quantiles. Each topic has four words, uint64[T, 4].
    """
    counts = plan.partitions[choose(drawn[:, 0], plan.partitions.size)]
    chosen = np.searchsorted(plan.factor_edges, choose(drawn[:, 1], int(plan.factor_edges[-1])), side="right")
    grows = drawn[:, 3] >> np.uint64(11) < plan.growth_chance
    found = np.stack((counts, np.where(grows, counts * plan.growth_times, counts), plan.factors[chosen]))
    sizes = plan.sizes[drawn[:, 2] >> np.uint64(64 - PART_BITS)] if plan.sizes.size else plan.sizes
    return found.astype(np.int32), sizes


def _fenced(shape: Shape, drawn: WordArray, word: int) -> NDArray[np.bool_]:
    """Return which brokers are fenced, bool[B]: the first ones in the drawn order."""
    fenced = np.zeros(drawn.size, dtype=np.bool_)
    count = min(_part(shape.fenced, drawn.size, word), drawn.size - shape.topics.factor_max)
    if count:
        fenced[np.argsort(drawn, kind="stable")[:count]] = True
    return fenced


def _part(share: float, count: int, word: int) -> int:
    """Return `share` of `count`, rounded up with the chance of its fraction."""
    whole = int(share * count)
    return whole + (word / 2**64 < share * count - whole)


def _racks(plan: RackPlan, drawn: WordArray, word: int) -> Int32Array:
    """Return each broker's rack: the first in the drawn order get none, the plan's sizes deal the others."""
    rack_index = np.full(drawn.shape[0], NO_RACK, dtype=np.int32)
    if not plan.sizes:
        return rack_index
    broker_count = drawn.shape[0]
    unracked_count = min(_part(plan.unracked, broker_count, word), broker_count - len(plan.sizes))
    counts = share_out(broker_count - unracked_count, plan.sizes)
    order = np.argsort(drawn, kind="stable")
    rack_index[order[unracked_count:]] = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    return rack_index


def share_out(count: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return `count` shared out in the proportion of `sizes`, each at least 1.

    Remainders go to the largest fractions, to the first of equals. A size that would have none takes one from the
    largest share. `count` is at least the number of sizes.

    >>> share_out(20, (10, 8, 2)), share_out(7, (4, 4, 2)), share_out(4, (6, 6, 6, 1))
    ((10, 8, 2), (3, 3, 1), (1, 1, 1, 1))
    """
    total = sum(sizes)
    parts = [count * size // total for size in sizes]
    by_fraction = sorted(range(len(sizes)), key=lambda rack: (-(count * sizes[rack] % total), rack))
    for rack in by_fraction[: count - sum(parts)]:
        parts[rack] += 1
    for rack in range(len(parts)):
        if not parts[rack]:
            parts[parts.index(max(parts))] -= 1
            parts[rack] = 1
    assert sum(parts) == count, (count, sizes)
    return tuple(parts)


def quantiles(law: SizeLaw) -> Int64Array:
    """Return the sizes in bytes of the 4,096 equally likely parts of the distribution, ascending, int64[4096]."""
    return np.array([_quantile(law, 2 * part + 1) for part in range(PART_COUNT)], dtype=np.int64)


def _quantile(law: SizeLaw, odd: int) -> int:
    """Return the size at chance odd / 8192."""
    median = Decimal(law.median_bytes)
    if law.law == "fixed":
        return law.median_bytes
    if law.law == "lognormal":
        z = Decimal(f"{NormalDist().inv_cdf(odd / (2 * PART_COUNT)):.9f}")
        factor = _EXACT.exp(_EXACT.multiply(Decimal(str(law.spread)), z))
    else:
        left = _EXACT.divide(Decimal(2 * PART_COUNT - odd), Decimal(PART_COUNT))
        factor = _EXACT.power(left, _EXACT.divide(Decimal(-1), Decimal(str(law.spread))))
    return int(_SIX_DIGITS.multiply(median, factor).to_integral_value(ROUND_HALF_EVEN))
