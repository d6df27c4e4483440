"""Batches of different lengths: near the bound where concurrency is tight and sizes are skewed; the bound is one."""

from __future__ import annotations

import random
from collections.abc import Sequence

import attrs
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from broker.cluster import SIZE_UNKNOWN, BrokerView, ClusterView, Int64Array, PartitionTable, TopicView
from broker.ids import BrokerId
from placement.planning.batch_bound import batched_bound, batched_seconds
from placement.planning.moves import Moves, Rates
from placement.planning.reassignment import Reassignment
from placement.planning.schedule import Limits, ScheduleError, schedule
from tests.oracles.groupings import groupings
from tests.placement.planning.cases import plan_of


def skewed_plan(seed: int, brokers: int, partitions: int, adds: int, sigma: float) -> Reassignment:
    """Return a plan in which every partition of factor 2 gains `adds` replicas on random brokers."""
    chance = random.Random(seed)
    replicas, targets = [], []
    for _ in range(partitions):
        drawn = chance.sample(range(brokers), 2 + adds)
        replicas.append(drawn[:2])
        targets.append([drawn[0], *drawn[2:]])
    return plan_of(replicas, targets, [int(chance.lognormvariate(20, sigma)) + 1 for _ in range(partitions)], brokers)


@pytest.mark.deep
@pytest.mark.parametrize("sigma", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize(
    ("brokers", "partitions", "adds", "concurrency"),
    [(12, 150, 1, 1), (12, 80, 2, 1), (12, 450, 1, 3), (20, 400, 2, 3), (12, 300, 3, 5), (12, 1_500, 1, 10)],
)
def test_skewed_sizes_take_at_most_a_fifth_more_than_any_batches(
    brokers: int, partitions: int, adds: int, concurrency: int, sigma: float
) -> None:
    found = schedule(skewed_plan(5, brokers, partitions, adds, sigma), Limits(concurrency=concurrency))
    assert len(found.batches) <= 32
    assert found.batched_bound_seconds >= found.bound.seconds
    assert (1 - 1e-9) * found.batched_bound_seconds <= found.seconds <= 1.2 * found.batched_bound_seconds


def test_equal_moves_go_to_batches_from_the_busiest_brokers_on() -> None:
    """In the order given, 33 partitions of three new replicas took 10 batches; a broker has 8 of them."""
    found = schedule(skewed_plan(2, 27, 33, 3, 0.0), Limits(concurrency=1))
    assert len(found.batches) == 8


moves_of_few = st.lists(st.tuples(st.integers(0, 1), st.integers(2, 4), st.integers(0, 9)), min_size=1, max_size=6)


@settings(max_examples=40)
@given(moves_of_few, st.integers(1, 3))
def test_no_batches_of_few_moves_beat_the_bound(moves: list[tuple[int, int, int]], concurrency: int) -> None:
    count = len(moves)
    least = float("inf")
    for batch_of in groupings(count):
        loads: dict[tuple[int, int], list[int]] = {}
        for (source, target, size), batch in zip(moves, batch_of, strict=True):
            for link in (source, target):
                loads.setdefault((batch, link), []).append(size)
        if all(len(sizes) <= concurrency for sizes in loads.values()):
            longest = dict.fromkeys(batch_of, 0)
            for (batch, _), sizes in loads.items():
                longest[batch] = max(longest[batch], sum(sizes))
            least = min(least, sum(longest.values()))
    links = np.array([link for source, target, _ in moves for link in (source, target)])
    seconds = np.array([float(size) for *_, size in moves for _ in range(2)])
    assert batched_seconds(links, seconds, seconds, concurrency) <= least


moves_to_two = st.lists(
    st.tuples(st.permutations(range(4)), st.integers(1, 3), st.integers(0, 9)), min_size=1, max_size=5
)


def moves_of(drawn: list[tuple[list[int], int, int]]) -> Moves:
    """Return moves of so many bytes from the first broker of each to one, two or three of the others."""
    targets = [[*brokers[1 : 1 + count], *[-1] * (3 - count)] for brokers, count, _ in drawn]
    return Moves(
        broker_count=4,
        places=np.arange(len(drawn), dtype=np.int64),
        source=np.array([brokers[0] for brokers, *_ in drawn], dtype=np.int32),
        targets=np.array(targets, dtype=np.int32),
        sizes=np.array([size for *_, size in drawn], dtype=np.int64),
        counts=np.array([count for _, count, _ in drawn], dtype=np.int64),
        sizes_known=True,
    )


def least_of_all(drawn: list[tuple[list[int], int, int]], concurrency: int, rates: Rates) -> float:
    """Return the time of the fastest batches of all, each assignment tried."""
    least = float("inf")
    for batch_of in groupings(len(drawn)):
        loads: dict[tuple[int, str, int], list[float]] = {}
        for (brokers, count, size), batch in zip(drawn, batch_of, strict=True):
            loads.setdefault((batch, "out", brokers[0]), []).append(size * count / float(rates.bytes_out[brokers[0]]))
            for target in brokers[1 : 1 + count]:
                loads.setdefault((batch, "in", target), []).append(size / float(rates.bytes_in[target]))
        if all(len(times) <= concurrency for times in loads.values()):
            longest = dict.fromkeys(batch_of, 0.0)
            for (batch, *_), times in loads.items():
                longest[batch] = max(longest[batch], sum(times))
            least = min(least, sum(longest.values()))
    return least


@settings(max_examples=30)
@example([([0, 1, 2], 2, 5), ([2, 1, 3], 2, 5), ([3, 1, 0], 2, 5)], 1, [1] * 8)  # All at broker 1: 30 s.
@given(moves_to_two, st.integers(1, 3), st.lists(st.integers(1, 3), min_size=8, max_size=8))
def test_no_batches_of_moves_with_several_targets_beat_the_bound(
    drawn: list[tuple[list[int], int, int]], concurrency: int, speeds: list[int]
) -> None:
    rates = Rates(bytes_in=np.array(speeds[:4], dtype=np.float64), bytes_out=np.array(speeds[4:], dtype=np.float64))
    assert batched_bound(moves_of(drawn), rates, concurrency) <= least_of_all(drawn, concurrency, rates) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("links", "seconds", "concurrency", "bound"),
    [
        ([0, 0, 0, 1], [5.0, 4.0, 3.0, 9.0], 1, 16.0),  # 9, and then 4 and 3.
        ([0, 0, 0, 1], [5.0, 4.0, 3.0, 9.0], 2, 12.0),  # 9 beside 5 and 4, and then 3.
        ([0, 0, 0, 1], [5.0, 4.0, 3.0, 9.0], 3, 12.0),
        ([0, 0, 1, 1], [7.0, 1.0, 5.0, 5.0], 1, 12.0),  # 7 at one link, and then 5 at the other.
        ([], [], 1, 0.0),
    ],
)
def test_the_bound_adds_the_longest_moves_of_all_links_up(
    links: list[int], seconds: list[float], concurrency: int, bound: float
) -> None:
    times = np.array(seconds)
    assert batched_seconds(np.array(links, dtype=np.int64), times, times, concurrency) == bound


def test_without_a_concurrency_the_bound_is_that_of_any_order() -> None:
    plan = skewed_plan(1, 8, 60, 2, 1.5)
    rates = Rates(bytes_in=np.linspace(1e6, 2e6, 8), bytes_out=np.linspace(3e6, 1e6, 8))
    found = schedule(plan, Limits(rates=rates))
    assert found.batched_bound_seconds == pytest.approx(found.bound.seconds)
    assert batched_bound(Moves.of(plan), rates, 1) > 1.1 * found.bound.seconds


@pytest.mark.parametrize("free_bytes", [None, np.full(8, 10**12)])
@pytest.mark.parametrize("slow", [range(8), [3]])
def test_a_link_without_a_rate_never_ends(slow: Sequence[int], free_bytes: Int64Array | None) -> None:
    """The batches keep the concurrency all the same, and are no more than with equal rates."""
    plan, bytes_in = skewed_plan(1, 8, 20, 1, 1.0), np.ones(8)
    bytes_in[slow] = 0
    limits = Limits(concurrency=2, free_bytes=free_bytes)
    found = schedule(plan, attrs.evolve(limits, rates=Rates(bytes_in=bytes_in, bytes_out=np.ones(8))))
    assert found.seconds == found.batched_bound_seconds == np.inf
    assert found.notes == ()
    assert len(found.batches) <= len(schedule(plan, limits).batches)
    for part in found.parts():
        links = Moves.of(part).links()
        assert np.bincount(links[links >= 0]).max() <= 2


def freeing(own_bytes: int, *, free_bytes: int) -> tuple[Reassignment, Limits]:
    """Partition 0 leaves broker 1, whose replica has `own_bytes`; partition 1, of 1000 bytes, comes to it."""
    view = ClusterView.build(
        name="n",
        source="s",
        format="f",
        brokers=[BrokerView(id=BrokerId(each)) for each in (1, 2, 3, 4)],
        topics=(TopicView("t"),),
        partitions=PartitionTable(
            topic_index=[0, 0],
            partition_ids=[0, 1],
            replicas=[[4, 1], [4, 3]],
            leader=[4, 4],
            replica_size_bytes=[[1000, own_bytes], [1000, 1000]],
        ),
    )
    free = np.array([free_bytes, -1, -1, -1], dtype=np.int64)
    return Reassignment(view=view, rows=[0, 1], replicas=[[4, 2], [4, 1]]), Limits(free_bytes=free)


@pytest.mark.parametrize(("own_bytes", "free_bytes"), [(SIZE_UNKNOWN, 0), (400, 600)])
def test_a_replica_that_goes_frees_its_own_bytes_or_those_of_a_copy_where_unknown(
    own_bytes: int, free_bytes: int
) -> None:
    plan, limits = freeing(own_bytes, free_bytes=free_bytes)
    assert [batch.tolist() for batch in schedule(plan, limits).batches] == [[0], [1]]


def test_a_replica_that_goes_frees_no_more_than_its_own_bytes() -> None:
    with pytest.raises(ScheduleError, match="broker 1 has 600 bytes free"):
        schedule(*freeing(399, free_bytes=600))


def test_batches_far_above_the_bound_say_so() -> None:
    found = schedule(skewed_plan(1, 12, 80, 2, 1.0), Limits(concurrency=1))
    wide = attrs.evolve(found, batch_seconds=1.3 * found.batch_seconds)
    times = wide.seconds / wide.batched_bound_seconds
    assert wide.notes == (
        f"the batches take {times:.2f} times the least time of any batches within the limits, as far as it is known; "
        "faster ones may exist",
    )
    assert attrs.evolve(wide, sizes_known=False).notes == ()
