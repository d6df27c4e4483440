"""Define a fleet as values: shapes drawn by weight, and the brokers, racks and topics of each shape's clusters.

Goals, most important first: equal recipes are equal fleets, as a recipe holds everything that a fleet depends on; the
size of a fleet is bounded before any cluster is made.

Constraints: values are checked here; `fleet/reading.py` turns a TOML file into them and names the key that is wrong.

Example: ten clusters of six brokers on three racks, a hundred topics of twelve partitions:
    >>> shape = Shape(
    ...     name="even",
    ...     brokers=Span(6, 6),
    ...     racks=RackPlan(sizes=(1, 1, 1)),
    ...     topics=TopicPlan(count=Span(100, 100), partitions=(12,), factors=((3, 1),)),
    ... )
    >>> Recipe(name="ten", cluster_count=10, seed=1, shapes=(shape,)).shapes[0].topics.factor_max
    3

Left out: topics that are deleted, brokers that come and go; both change a cluster over time, and a fleet is many
clusters at one moment.
"""

from __future__ import annotations

import functools
from typing import Final

import attrs

from broker.errors import UsageError
from broker.ids import INT64_MAX

CLUSTER_COUNT_MAX: Final = 1_000_000
BROKER_COUNT_MAX: Final = 5_000  # Several times the largest clusters known.
RACK_COUNT_MAX: Final = 100
TOPIC_COUNT_MAX: Final = 1_000_000
CLUSTER_PARTITION_COUNT_MAX: Final = 2_000_000  # Twice the largest clusters known: 24 MB a matrix at factor 3.
FACTOR_MAX: Final = 32
WEIGHT_MAX: Final = 1_000_000
GROWTH_TIMES_MAX: Final = 100
SEED_MAX: Final = INT64_MAX


@attrs.frozen
class Span:
    """Define a range of whole numbers from `low` to `high`, both included, equally likely."""

    low: int
    high: int


@attrs.frozen
class RackPlan:
    """Define each rack's share of brokers, none without racks; `unracked` is the share of brokers without one, 0..1."""

    sizes: tuple[int, ...] = ()
    unracked: float = 0.0


@attrs.frozen
class TopicPlan:
    """Define the number of topics, the partition counts, equally likely, and the weighted replication factors."""

    count: Span
    partitions: tuple[int, ...]
    factors: tuple[tuple[int, int], ...]

    @functools.cached_property
    def factor_max(self) -> int:
        """Return the largest replication factor that can be drawn."""
        return max(factor for factor, _ in self.factors)

    @functools.cached_property
    def factor_min(self) -> int:
        """Return the smallest replication factor that can be drawn."""
        return min(factor for factor, _ in self.factors)


@attrs.frozen
class SizeLaw:
    """Define the distribution of the bytes of one replica, drawn once per topic (fleet/generate.py).

    `law` is fixed, lognormal or pareto. `spread` is sigma of the lognormal, alpha of the pareto, and unused when fixed.
    """

    law: str
    median_bytes: int
    spread: float = 0.0


@attrs.frozen
class Growth:
    """Let topics grow after all are created: each with probability `topics`, to `times` its partitions."""

    topics: float
    times: int


@attrs.frozen(kw_only=True)
class Shape:
    """Define one kind of cluster: its brokers, racks, topics and placers, and its weight among the shapes."""

    name: str
    brokers: Span
    topics: TopicPlan
    weight: int = 1
    racks: RackPlan = RackPlan()
    fenced: float = 0.0
    placers: tuple[str, ...] = ("striped",)
    sizes: SizeLaw | None = None
    growth: Growth | None = None
    min_insync_replicas: int = 1

    def __attrs_post_init__(self) -> None:
        if self.topics.factor_max > self.brokers.low:
            raise UsageError(
                f"{self.name}: topics of factor {self.topics.factor_max} need as many brokers; "
                f"the shape's smallest cluster has {self.brokers.low}"
            )
        if len(self.racks.sizes) > self.brokers.low:
            raise UsageError(
                f"{self.name}: {len(self.racks.sizes)} racks need as many brokers; "
                f"the shape's smallest cluster has {self.brokers.low}"
            )
        times = self.growth.times if self.growth is not None else 1
        partition_count = self.topics.count.high * max(self.topics.partitions) * times
        if partition_count > CLUSTER_PARTITION_COUNT_MAX:
            raise UsageError(
                f"{self.name}: a cluster could have {partition_count} partitions; "
                f"allowed are {CLUSTER_PARTITION_COUNT_MAX}"
            )


@attrs.frozen(kw_only=True)
class Recipe:
    """Define a whole fleet: `cluster_count` clusters, each of one of `shapes`, all drawn from `seed`.

    `text` is the TOML that the recipe was read from, for the report.
    """

    name: str
    cluster_count: int
    seed: int
    shapes: tuple[Shape, ...]
    source: str = "inline"
    text: str = ""

    def __attrs_post_init__(self) -> None:
        if not self.shapes:
            raise UsageError("a recipe needs at least one shape")
        names = [shape.name for shape in self.shapes]
        if len(set(names)) != len(names):
            raise UsageError(f"shapes need names of their own; found {', '.join(names)}")
