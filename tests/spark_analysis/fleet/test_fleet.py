"""Clusters of a fleet: the same whoever makes them, and placed as the placers themselves would."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.cluster import BrokerView, Int32Array
from broker.entropy import RandomSource
from placement.placers.classic import ClassicPlacer, grow_topic
from placement.placers.striped import StripedPlacer
from placement.spec import PlacementSpec
from spark_analysis.fleet.count import Placed, count_placed, describe_placed
from spark_analysis.fleet.generate import (
    PART_COUNT,
    Fleet,
    SimulatedCluster,
    make_cluster,
    make_clusters,
    quantiles,
    share_out,
)
from spark_analysis.fleet.place import broker_views, place_cluster, placer_random, topic_ends
from spark_analysis.fleet.reading import load_recipe
from spark_analysis.fleet.recipe import Growth, RackPlan, Recipe, Shape, SizeLaw, Span, TopicPlan
from spark_analysis.tables.cluster_rows import measure_rows

SEEDS = st.integers(0, 2**62)

UNEVEN = RackPlan((3, 2, 1))


def recipe(seed: int, racks: RackPlan = UNEVEN, *, fenced: float = 0.1) -> Recipe:
    shapes = [
        Shape(
            name=name,
            brokers=Span(6, 11),
            racks=racks,
            fenced=fenced,
            placers=("classic", "striped"),
            topics=TopicPlan(Span(0, 6), partitions, ((1, 1), (3, 4))),
            sizes=SizeLaw("lognormal", 1 << 20, 1.0),
            growth=Growth(0.5, 3),
            min_insync_replicas=2,
        )
        for name, partitions in (("a", (1, 2, 5)), ("b", (7, 30)))
    ]
    return Recipe(name="test", cluster_count=10, seed=seed, shapes=tuple(shapes))


def digest(cluster: SimulatedCluster, seed: int) -> str:
    parts = [cluster.rack_index, cluster.fenced, cluster.grown_counts, cluster.factors, cluster.size_bytes]
    parts += [place_cluster(cluster, name, seed=seed) for name in ("classic", "striped")]
    return hashlib.sha256(b"".join(part.tobytes() for part in parts if part is not None)).hexdigest()[:16]


@given(st.integers(0, 200), st.lists(st.integers(1, 20), min_size=1, max_size=8))
def test_shares_add_up_and_leave_no_rack_empty(spare: int, sizes: list[int]) -> None:
    count = spare + len(sizes)
    shares = share_out(count, tuple(sizes))
    assert sum(shares) == count
    assert min(shares) >= 1
    fair = [count * size / sum(sizes) for size in sizes]
    assert all(abs(share - part) < 1 for share, part in zip(shares, fair, strict=True)) or min(fair) < 1
    assert all(share <= max(part + 1, 1) for share, part in zip(shares, fair, strict=True))


@pytest.mark.parametrize("shape", load_recipe("uneven-racks").shapes, ids=lambda shape: shape.name)
def test_racks_are_as_their_shape_names_them(shape: Shape) -> None:
    """Shares that are whole are met: 20 brokers on 10, 8 and 2 are not 9, 8 and 3."""
    fleet = Fleet.of(Recipe(name="r", cluster_count=1, seed=2, shapes=(shape,)))
    assert " ".join(map(str, np.bincount(make_cluster(fleet, 0).rack_index).tolist())) == shape.name


@pytest.mark.parametrize("racks", [UNEVEN, RackPlan((2, 1), 0.4)], ids=str)
@pytest.mark.parametrize("fenced", [0.0, 0.4])
def test_placers_that_share_an_optimum_have_the_measures_of_each_alone(fenced: float, racks: RackPlan) -> None:
    """Fenced brokers are used by the striped placer only; of unracked ones each placer makes another share."""
    fleet = Fleet.of(recipe(5, racks, fenced=fenced))
    for number in range(4):
        cluster = make_cluster(fleet, number)
        for names in (("classic", "striped"), ("striped", "classic")):
            other = None
            for name in names:
                rows = place_cluster(cluster, name, seed=5)
                alone = count_placed(cluster, rows, placer=name, source="s")
                other = count_placed(cluster, rows, placer=name, source="s", other=other)
                assert measures_of(other) == measures_of(alone)


def measures_of(placed: Placed) -> object:
    described = describe_placed([placed], "s")
    rows, uneven = measure_rows(np.zeros(1, dtype=np.int64), described.placers, described.shares)
    return uneven.tolist(), None if rows is None else rows.to_pylist()


def test_a_cluster_is_a_function_of_seed_and_number_alone() -> None:
    fleet = Fleet.of(recipe(7))
    forward = [digest(cluster, 7) for cluster in make_clusters(fleet, range(8))]
    backward = [digest(make_cluster(Fleet.of(recipe(7)), number), 7) for number in reversed(range(8))]
    assert forward == backward[::-1]
    assert len(set(forward)) == 8
    assert digest(make_cluster(Fleet.of(recipe(8)), 0), 8) != forward[0]


@pytest.mark.parametrize(("fenced", "pinned"), [(0.0, "50bd07e9097365b2"), (0.1, "f5bbcceb3ec9b5c8")])
def test_the_fleets_of_earlier_versions_are_made_again(fenced: float, pinned: str) -> None:
    """A recipe's clusters and placements never change: pinned before draws and placing were compiled as a whole.

    Those with fenced brokers since the classic placer is given the unfenced ones; all since racks get their whole
    shares, which changes nothing else: with the former shares both are what they were.
    """
    digests = hashlib.sha256()
    for seed, racks in ((7, UNEVEN), (11, RackPlan()), (12, RackPlan((2, 1), 0.4)), (13, RackPlan((1,)))):
        fleet = Fleet.of(recipe(seed, racks, fenced=fenced))
        for number in range(20):
            digests.update(digest(make_cluster(fleet, number), seed).encode("ascii"))
    assert digests.hexdigest()[:16] == pinned


@pytest.mark.deep
def test_a_cluster_is_the_same_in_a_process_with_another_hash_seed() -> None:
    program = (
        "from tests.spark_analysis.fleet.test_fleet import *\n"
        "print([digest(make_cluster(Fleet.of(recipe(7)), k), 7) for k in range(3)])"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert seen == {f"{[digest(make_cluster(Fleet.of(recipe(7)), k), 7) for k in range(3)]}\n"}


@settings(max_examples=8)
@given(SEEDS, st.integers(0, 1000))
def test_what_the_recipe_asks_for_is_what_is_made(seed: int, number: int) -> None:
    cluster = make_cluster(Fleet.of(recipe(seed, RackPlan((3, 2, 1), 0.3), fenced=0.9)), number)
    assert 6 <= cluster.broker_count <= 11
    assert cluster.broker_count - cluster.fenced.sum() >= 3
    assert set(cluster.rack_index.tolist()) >= {0, 1, 2}
    assert set(cluster.partition_counts.tolist()) <= set(cluster.shape.topics.partitions)
    assert set((cluster.grown_counts // np.maximum(1, cluster.partition_counts)).tolist()) <= {1, 3}


class _CallByCall:
    """The classic placer and its caller for growth, one call a topic: what the compiled loop must give."""

    def __init__(self, registered: Sequence[BrokerView], random: RandomSource) -> None:
        # Kafka's callers listed the brokers that had a session in ZooKeeper.
        brokers = [broker for broker in registered if not broker.fenced]
        # Kafka's callers drop all racks when some are missing (RackAwareMode.Safe).
        whole = all(broker.rack is not None for broker in brokers)
        self.brokers = brokers if whole else [BrokerView(id=broker.id) for broker in brokers]
        self.random = random

    def place(self, cluster: SimulatedCluster) -> Int32Array:
        ends = topic_ends(cluster)
        rows = np.full((int(ends[-1]) if ends.size else 0, cluster.shape.topics.factor_max), -1, dtype=np.int32)
        firsts = (ends - cluster.grown_counts).tolist()
        for topic, first in enumerate(firsts):
            spec = PlacementSpec(0, int(cluster.partition_counts[topic]), int(cluster.factors[topic]))
            made = ClassicPlacer().place(spec, self.brokers, self.random)
            rows[first : first + spec.partition_count, : spec.replication_factor] = made
        for topic, first in enumerate(firsts):
            created, grown = int(cluster.partition_counts[topic]), int(cluster.grown_counts[topic])
            if grown > created:
                added = grow_topic("t", rows[first : first + created], grown, self.brokers)
                rows[first + created : first + grown, : added.shape[1]] = added
        return rows


RACKS = st.sampled_from([RackPlan(), RackPlan((1,)), RackPlan((3, 2, 1)), RackPlan((1, 1)), RackPlan((2, 1), 0.4)])


@settings(max_examples=8)
@given(SEEDS, st.integers(0, 50), RACKS, st.sampled_from([0.0, 0.1, 0.5]))
def test_the_classic_loop_places_as_the_placer_call_by_call(
    seed: int, number: int, racks: RackPlan, fenced: float
) -> None:
    cluster = make_cluster(Fleet.of(recipe(seed, racks, fenced=fenced)), number)
    expected = _CallByCall(broker_views(cluster), placer_random(cluster, "classic", seed=seed)).place(cluster)
    assert place_cluster(cluster, "classic", seed=seed).tolist() == expected.tolist()


@settings(max_examples=6)
@given(SEEDS, st.integers(0, 50), RACKS)
def test_striped_topics_are_created_and_grown_on_one_generator(seed: int, number: int, racks: RackPlan) -> None:
    cluster = make_cluster(Fleet.of(recipe(seed, racks)), number)
    random, brokers = placer_random(cluster, "striped", seed=seed), broker_views(cluster)
    rows = place_cluster(cluster, "striped", seed=seed)
    firsts = topic_ends(cluster) - cluster.grown_counts
    zero = np.zeros_like(firsts)
    for starts, ends in ((zero, cluster.partition_counts), (cluster.partition_counts, cluster.grown_counts)):
        for topic in np.flatnonzero(ends > starts).tolist():
            start, end, factor = int(starts[topic]), int(ends[topic]), int(cluster.factors[topic])
            made = StripedPlacer().place(PlacementSpec(start, end - start, factor), brokers, random)
            assert rows[firsts[topic] + start : firsts[topic] + end, :factor].tolist() == made.tolist()


def test_a_lognormal_size_has_its_median_and_its_tail() -> None:
    sizes = quantiles(SizeLaw("lognormal", 2 << 30, 1.5))
    assert (np.diff(sizes) >= 0).all()
    assert sizes[PART_COUNT // 2 - 1] < 2 << 30 < sizes[PART_COUNT // 2]
    assert (int(sizes[0]), int(sizes[-1])) == (8754410, 526784000000)


def test_a_pareto_size_is_twice_the_least_at_the_median_when_alpha_is_one() -> None:
    sizes = quantiles(SizeLaw("pareto", 1 << 20, 1.0))
    assert abs(int(sizes[0]) - (1 << 19)) < 100
    assert abs(int(sizes[PART_COUNT // 2]) - (1 << 20)) < 500
